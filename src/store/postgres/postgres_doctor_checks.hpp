#pragma once
/// \file
/// The single checks of `doctor` on PostgreSQL: each turns rows of sql/doctor.sql into findings,
/// and asks nothing itself.

#include <cstdint>
#include <string>
#include <vector>

#include <postrider/diagnosis.hpp>

#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_schema.hpp"

namespace postrider::store::postgres {

using Findings = std::vector<Finding>;

/// Columns of doctor_server.
struct ExaminedServer {
  explicit ExaminedServer(const Rows& rows)
      : version(rows.text(0, 0)),
        fsync(rows.text(0, 1)),
        full_page_writes(rows.text(0, 2)),
        synchronous_commit(rows.text(0, 3)),
        read_only(rows.text(0, 4)),
        replication_role(rows.text(0, 5)),
        autovacuum(rows.text(0, 6)),
        max_prepared_transactions(rows.text(0, 7)),
        statement_timeout(rows.integer(0, 8)),
        connections(rows.integer(0, 9)),
        connected(rows.integer(0, 10)),
        in_recovery(rows.boolean(0, 11)),
        role(rows.text(0, 12)),
        sees_everybody(rows.boolean(0, 13)),
        pid(rows.small_integer(0, 14)) {}

  std::string version;
  std::string fsync;
  std::string full_page_writes;
  std::string synchronous_commit;
  std::string read_only;
  std::string replication_role;
  std::string autovacuum;
  std::string max_prepared_transactions;
  milliseconds statement_timeout;
  std::int64_t connections;
  std::int64_t connected;
  bool in_recovery;
  std::string role;
  bool sees_everybody;
  std::int32_t pid;
};

void check_durability(const ExaminedServer& server, Findings& findings);
void check_role_settings(const ExaminedServer& server, const Examination& examination,
                         Findings& findings);
void check_connections(const ExaminedServer& server, const Examination& examination,
                       Findings& findings);
void check_commits(const ExaminedServer& server, const Rows& rows, Findings& findings);
void check_prepared(const Rows& rows, const Examination& examination, Findings& findings);
void check_oldest_transaction(const Rows& rows, const Examination& examination, Findings& findings);
void check_sequence(const Rows& rows, Findings& findings);
void check_tables(const Rows& rows, Findings& findings);
void check_triggers(const Rows& rows, Findings& findings);
void check_indexes(const Rows& rows, Findings& findings);
void check_rights(const ExaminedServer& server, const Rows& rows, Findings& findings);
void check_marks(const ServerIdentity& identity, const Rows& rows, Findings& findings);
void check_rows(const Rows& rows, Findings& findings);

}  // namespace postrider::store::postgres
