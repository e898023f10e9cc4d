// What can be wrong with a PostgreSQL that holds an outbox. Each check is one function that turns a
// row of sql/doctor.sql into findings.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_schema.hpp"

namespace postrider {
namespace store::postgres {
namespace {

using Severity = FindingSeverity;
using Findings = std::vector<Finding>;

/// How long the look for a pooler may take: a pool of one makes the second connection wait.
constexpr milliseconds pooler_patience{2000};

/// Columns of doctor_server.
struct Server {
  explicit Server(const Rows& rows)
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

std::string seconds_text(std::int64_t ms) {
  return fmt::format("{} s", ms / 1000);
}

/// A prepared statement that vanished or that somebody else has prepared: what a pooler that lends
/// the server's session for one transaction does to us.
bool speaks_of_pooler(const Error& error) {
  return error.native_code.starts_with("26") || error.native_code == "42P05";
}

Finding transaction_pooler(std::string subject) {
  return {"pooler_in_transaction_mode",
          Severity::error,
          std::move(subject),
          "a pooler lends the server's session for one transaction at a time.",
          "Prepared statements and settings of the session go to whoever comes next: a relay fails "
          "or, worse, works with another's settings.",
          "Connect Postrider directly, or by a pool in session mode."};
}

void check_durability(const Server& server, Findings& findings) {
  if (server.fsync == "off") {
    findings.push_back({"fsync_off", Severity::error, "server", "fsync is off.",
                        "A power failure can damage the whole cluster, and take back commits whose "
                        "events have left.",
                        "ALTER SYSTEM SET fsync = on; then restart the server."});
  }
  if (server.full_page_writes == "off") {
    findings.push_back({"full_page_writes_off", Severity::warning, "server",
                        "full_page_writes is off.",
                        "A page that was written in part when the power failed stays damaged, "
                        "unless the file system writes pages whole.",
                        "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();"});
  }
}

void check_role_settings(const Server& server, const Examination& examination, Findings& findings) {
  if (server.in_recovery) {
    findings.push_back({"standby", Severity::error, "server", "the server is a standby.",
                        "Nothing can be written here: a relay does not start.",
                        "Point Postrider at the primary."});
  } else if (server.read_only == "on") {
    findings.push_back({"read_only", Severity::error, "role " + server.role,
                        "default_transaction_read_only is on.",
                        "Every write of this role is refused.",
                        "Switch it off for the role or the database, or use another role."});
  }
  if (server.replication_role == "replica") {
    findings.push_back({"triggers_bypassed", Severity::error, "role " + server.role,
                        "session_replication_role is replica.",
                        "Our triggers do not fire: events of such a session get no number, and "
                        "order and history are not guarded.",
                        "Reset session_replication_role for the role and the database."});
  }
  const auto timeout = server.statement_timeout;
  if (timeout > milliseconds::zero() && timeout < examination.store_timeout) {
    findings.push_back({"statement_timeout_short", Severity::warning, "role " + server.role,
                        fmt::format("statement_timeout is {} ms, and a call of the relay may take "
                                    "{} ms.",
                                    timeout.count(), examination.store_timeout.count()),
                        "Reading a batch is cut off under load, and begins anew each time.",
                        "Raise statement_timeout for this role, or lower relay.store_timeout."});
  }
  if (server.autovacuum == "off") {
    findings.push_back({"autovacuum_off", Severity::warning, "server", "autovacuum is off.",
                        "Marks leave dead rows that nobody removes: reading slows down, and the "
                        "disk fills.",
                        "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();"});
  }
}

void check_connections(const Server& server, const Examination& examination, Findings& findings) {
  if (server.connected * 100 < server.connections * examination.most_connections_percent) return;
  findings.push_back(
      {"connections_scarce", Severity::warning, "server",
       fmt::format("{} of {} connections are in use.", server.connected, server.connections),
       "The next relay that starts or reconnects may be refused.",
       "Raise max_connections, or find in pg_stat_activity who keeps them."});
}

void check_commits(const Server& server, const Rows& rows, Findings& findings) {
  const auto finding = [](std::string subject) {
    return Finding{"synchronous_commit_off",
                   Severity::warning,
                   std::move(subject),
                   "synchronous_commit is off.",
                   "Events are safe, as the trigger raises it for their transactions. A receipt of "
                   "the inbox, or any other commit, can be lost in a crash after it was answered.",
                   "Set synchronous_commit to on, or at least to local, for who writes here."};
  };
  if (rows.empty() && server.synchronous_commit == "off") findings.push_back(finding("server"));
  for (int row = 0; row < rows.size(); ++row) {
    const std::string role(rows.text(row, 0));
    findings.push_back(finding(role.empty() ? "database" : "role " + role));
  }
}

void check_prepared(const Rows& rows, const Examination& examination, Findings& findings) {
  for (int row = 0; row < rows.size(); ++row) {
    const auto age = rows.integer(row, 1);
    const auto aggregates = rows.integer(row, 3);
    const auto waiting = rows.integer(row, 4);
    if (waiting == 0 && milliseconds(age) < examination.prepared_age) continue;
    const std::string gid(rows.text(row, 0));
    findings.push_back(
        {"prepared_transaction", waiting > 0 ? Severity::error : Severity::warning, gid,
         fmt::format("the transaction was prepared {} ago by {}; it holds the locks of {} "
                     "aggregates, and {} sessions wait for these.",
                     seconds_text(age), rows.text(row, 2), aggregates, waiting),
         "Its events stay invisible, writers of its aggregates wait, and vacuum removes nothing "
         "that is younger.",
         fmt::format("Find its coordinator; else COMMIT PREPARED or ROLLBACK PREPARED '{}'.",
                     gid)});
  }
}

void check_oldest_transaction(const Rows& rows, const Examination& examination,
                              Findings& findings) {
  if (rows.empty() || milliseconds(rows.integer(0, 4)) < examination.transaction_age) return;
  findings.push_back({"transaction_old", Severity::warning,
                      fmt::format("process {}", rows.small_integer(0, 0)),
                      fmt::format("a transaction of {} ({}, {}) is open for {}.", rows.text(0, 1),
                                  rows.text(0, 2).empty() ? "no application name" : rows.text(0, 2),
                                  rows.text(0, 3), seconds_text(rows.integer(0, 4))),
                      "Vacuum removes nothing that died since, so that marks pile up as dead rows.",
                      fmt::format("End it where it was begun, or SELECT pg_terminate_backend({}).",
                                  rows.small_integer(0, 0))});
}

void check_sequence(const Rows& rows, Findings& findings) {
  if (rows.empty()) return;
  const auto cache = rows.integer(0, 0);
  const auto increment = rows.integer(0, 1);
  if (cache == 1 && increment == 1 && !rows.boolean(0, 2)) return;
  findings.push_back({"sequence_changed", Severity::error, "outbox_events_seq",
                      fmt::format("CACHE is {}, INCREMENT {}, and it is {}.", cache, increment,
                                  rows.boolean(0, 2) ? "CYCLE" : "NO CYCLE"),
                      "Sessions draw numbers ahead: order within an aggregate is lost, and a relay "
                      "passes events over.",
                      "ALTER SEQUENCE outbox_events_seq CACHE 1 INCREMENT 1 NO CYCLE"});
}

void check_tables(const Rows& rows, Findings& findings) {
  for (int row = 0; row < rows.size(); ++row) {
    const std::string table(rows.text(row, 0));
    if (!rows.boolean(row, 1)) {
      findings.push_back({"table_missing", Severity::error, table, "the table is not there.",
                          "What needs it fails.",
                          "Restore it from a backup; `postrider migrate --print` shows it."});
    }
    if (rows.boolean(row, 2)) {
      findings.push_back({"table_unlogged", Severity::error, table, "the table is UNLOGGED.",
                          "A crash empties it, and no standby has it.",
                          fmt::format("ALTER TABLE {} SET LOGGED", table)});
    }
    if (rows.boolean(row, 3)) {
      findings.push_back({"row_security", Severity::error, table, "row level security is on.",
                          "A policy can hide rows: what a relay does not see, it does not deliver.",
                          fmt::format("ALTER TABLE {} DISABLE ROW LEVEL SECURITY", table)});
    }
    if (rows.boolean(row, 4)) {
      findings.push_back({"autovacuum_off", Severity::warning, table,
                          "autovacuum is off for the table.",
                          "Marks leave dead rows that nobody removes.",
                          fmt::format("ALTER TABLE {} RESET (autovacuum_enabled)", table)});
    }
  }
}

void check_triggers(const Rows& rows, Findings& findings) {
  for (int row = 0; row < rows.size(); ++row) {
    const std::string trigger(rows.text(row, 0));
    const auto enabled = rows.text(row, 1);
    findings.push_back(
        {enabled.empty() ? "trigger_missing" : "trigger_disabled", Severity::error, trigger,
         enabled.empty() ? "the trigger is not there."
                         : fmt::format("the trigger is {}.",
                                       enabled == "D" ? "disabled" : "enabled for replicas only"),
         trigger == "outbox_events_before_insert"
             ? "No event gets a number any more: inserts fail, or order is lost."
             : "Rows can be changed in ways that a relay does not expect.",
         enabled.empty() ? "Make it again; `postrider migrate --print` shows it."
                         : "ALTER TABLE … ENABLE TRIGGER " + trigger});
  }
}

void check_indexes(const Rows& rows, Findings& findings) {
  for (int row = 0; row < rows.size(); ++row) {
    const std::string index(rows.text(row, 0));
    findings.push_back({"index_invalid", Severity::error, index, "the index is not valid.",
                        "It answers nothing, and if it is a unique one it guards nothing.",
                        fmt::format("REINDEX INDEX CONCURRENTLY {}", index)});
  }
}

void check_rights(const Server& server, const Rows& rows, Findings& findings) {
  for (int row = 0; row < rows.size(); ++row) {
    const std::string relation(rows.text(row, 0));
    const std::string right(rows.text(row, 1));
    const auto kind = relation.ends_with("_seq") ? "SEQUENCE " : "";
    findings.push_back({"right_missing", Severity::error, relation,
                        fmt::format("role {} lacks {}.", server.role, right),
                        "What it is used for fails at the first such call.",
                        fmt::format("GRANT {} ON {}{} TO {}", right, kind, relation, server.role)});
  }
}

/// Columns of doctor_marks.
void check_marks(const ServerIdentity& identity, const Rows& rows, Findings& findings) {
  const std::string servers(rows.text(0, 0));
  const auto position = rows.integer(0, 1);
  const auto highest = rows.integer(0, 2);
  const auto given_out = rows.integer_if(0, 3);
  const bool foreign = !servers.empty() && servers != identity.system;
  if (foreign) {
    findings.push_back({"marks_of_another_server", Severity::warning, "outbox_partitions",
                        fmt::format("the marks were stored on the system {}, and this one is {}.",
                                    servers, identity.system),
                        "This is a copy: the next relay reads once what is unrouted. If the "
                        "original still has a relay, both send.",
                        "Make sure that only one of the two databases has a relay."});
  }
  if (given_out && *given_out < std::max(highest, position)) {
    findings.push_back(
        {"sequence_behind", Severity::error, "outbox_events_seq",
         fmt::format("the last number given out is {}, and {} is in use.", *given_out,
                     std::max(highest, position)),
         "The next events get numbers that are taken or that were passed.",
         fmt::format("SELECT setval('outbox_events_seq', {})", std::max(highest, position))});
  }
  if (rows.boolean(0, 4)) {
    findings.push_back({"xid_ahead", foreign ? Severity::note : Severity::warning, "outbox_events",
                        "rows carry transaction numbers that this server has not reached.",
                        "They come from another server, by a dump or by hand.",
                        "Nothing, after a restore; else find out who writes `xid`."});
  }
}

void check_rows(const Rows& rows, Findings& findings) {
  const auto held = rows.integer(0, 0);
  const auto open = rows.integer(0, 1);
  if (held + open == 0) return;
  findings.push_back({"rows_contradict", Severity::error, "outbox_deliveries",
                      fmt::format("{} held deliveries belong to routed events, and {} others to "
                                  "events that are not routed.",
                                  held, open),
                      "No relay writes that: such events are sent twice, or never.",
                      "Find out who wrote to these tables, and see the guarantees' page."});
}

/// A statement and who reads its rows.
struct TransactionCheck {
  std::string_view statement;
  void (*check)(const Rows& rows, const Examination& examination, Findings& findings);
};
constexpr std::array transaction_checks = {
    TransactionCheck{"doctor_prepared", check_prepared},
    TransactionCheck{"doctor_oldest_transaction", check_oldest_transaction}};

struct CatalogCheck {
  std::string_view statement;
  void (*check)(const Rows& rows, Findings& findings);
};
constexpr std::array catalog_checks = {
    CatalogCheck{"doctor_sequence", check_sequence}, CatalogCheck{"doctor_tables", check_tables},
    CatalogCheck{"doctor_triggers", check_triggers}, CatalogCheck{"doctor_indexes", check_indexes}};

class PostgresDoctor final : public Doctor {
 public:
  PostgresDoctor(PostgresOptions options, const Clock& clock)
      : connection_(std::move(options), Use::people), clock_(clock) {}

  Result<Diagnosis> examine(const Examination& examination, Deadline deadline) override {
    Diagnosis diagnosis;
    auto done = examine_all(examination, deadline, diagnosis);
    if (done) return diagnosis;
    if (!speaks_of_pooler(done.error())) return done.error();
    diagnosis.findings.push_back(transaction_pooler("connection"));
    return diagnosis;
  }

 private:
  Result<void> examine_all(const Examination& examination, Deadline deadline,
                           Diagnosis& diagnosis) {
    const auto rows = ask({"doctor_server"}, deadline);
    if (!rows) return rows.error();
    const Server server(*rows);
    diagnosis.facts = {
        {"server", "PostgreSQL " + server.version},
        {"system", connection_.identity().system},
        {"role", server.role},
        {"schema", connection_.names().schema},
        {"max_prepared_transactions", server.max_prepared_transactions},
        {"connections", fmt::format("{} of {}", server.connected, server.connections)},
        {"sees other sessions", server.sees_everybody ? "yes" : "no"}};
    auto& findings = diagnosis.findings;
    check_durability(server, findings);
    check_role_settings(server, examination, findings);
    check_connections(server, examination, findings);
    if (auto done = compare_clocks(examination, deadline, findings); !done) return done;
    find_pooler(server, deadline, findings);
    for (const auto& [statement, check] : transaction_checks) {
      const auto found = ask({statement}, deadline);
      if (!found) return found.error();
      check(*found, examination, findings);
    }
    return examine_schema(server, examination, deadline, diagnosis);
  }

  /// Without tables there is nothing more to look at.
  Result<void> examine_schema(const Server& server, const Examination& examination,
                              Deadline deadline, Diagnosis& diagnosis) {
    auto& findings = diagnosis.findings;
    const auto exists = ask({"schema_exists"}, deadline);
    if (!exists) return exists.error();
    if (!exists->boolean(0, 0)) {
      findings.push_back({"schema_missing", Severity::error, connection_.names().schema,
                          "our tables are not there.", "Nothing works without them.",
                          "Run `postrider migrate`, or correct schema and prefix."});
      return {};
    }
    if (auto done = check_rights_for(server, examination.purpose, deadline, findings); !done) {
      return done;
    }
    if (examination.purpose != Purpose::writer) {
      if (auto done = compare_versions(deadline, findings); !done) return done;
    }
    if (auto done = examine_catalog(server, deadline, findings); !done) return done;
    if (examination.purpose == Purpose::writer) return {};
    return examine_rows(examination, deadline, findings);
  }

  Result<void> compare_versions(Deadline deadline, Findings& findings) {
    const auto compared = compare_schema(connection_, deadline);
    if (compared) return {};
    if (compared.error().code != ErrorCode::schema_mismatch) {
      return or_not_examined("schema", compared.error(), findings);
    }
    findings.push_back({"schema_mismatch", Severity::error, connection_.names().schema,
                        compared.error().message, "This build does not work with these tables.",
                        "Do what the message says, before anything else."});
    return {};
  }

  Result<void> check_rights_for(const Server& server, Purpose purpose, Deadline deadline,
                                Findings& findings) {
    Call call{"doctor_rights"};
    call.parameters.text(purpose == Purpose::relay    ? "relay"
                         : purpose == Purpose::writer ? "writer"
                                                      : "reader");
    const auto rows = ask(std::move(call), deadline);
    if (!rows) return rows.error();
    check_rights(server, *rows, findings);
    return {};
  }

  Result<void> examine_catalog(const Server& server, Deadline deadline, Findings& findings) {
    for (const auto& [statement, check] : catalog_checks) {
      const auto rows = ask({statement}, deadline);
      if (!rows) return rows.error();
      check(*rows, findings);
    }
    const auto commits = ask({"doctor_commits"}, deadline);
    // A table that is missing has been told.
    if (!commits) return or_not_examined("synchronous_commit", commits.error(), findings);
    check_commits(server, *commits, findings);
    return {};
  }

  Result<void> examine_rows(const Examination& examination, Deadline deadline, Findings& findings) {
    const auto marks = ask({"doctor_marks"}, deadline);
    if (marks) {
      check_marks(connection_.identity(), *marks, findings);
    } else if (auto told = or_not_examined("marks", marks.error(), findings); !told) {
      return told;
    }
    if (!examination.deep) return {};
    const auto rows = ask({"doctor_deep"}, deadline);
    if (!rows) return or_not_examined("rows", rows.error(), findings);
    check_rows(*rows, findings);
    return {};
  }

  /// A right that is missing, or a table, keeps us from one look and not from the others.
  static Result<void> or_not_examined(std::string subject, const Error& error, Findings& findings) {
    const bool one_look =
        error.code == ErrorCode::permission_denied || error.code == ErrorCode::schema_mismatch;
    if (!one_look) return error;
    findings.push_back({"not_examined", Severity::note, std::move(subject), error.message,
                        "What is wrong there, if anything, is not told.",
                        "Run the doctor with a role that may read our tables."});
    return {};
  }

  Result<void> compare_clocks(const Examination& examination, Deadline deadline,
                              Findings& findings) {
    const auto before = clock_.wall();
    const auto rows = ask({"doctor_clock"}, deadline);
    if (!rows) return rows.error();
    const auto after = clock_.wall();
    const auto server = rows->time(0, 0);
    const auto ahead = server > after ? server - after : before - server;
    if (ahead <= examination.clock_difference) return {};
    findings.push_back(
        {"clocks_differ", Severity::warning, "clock",
         fmt::format("the server's clock is {} s {} this host's.",
                     std::chrono::duration_cast<std::chrono::seconds>(ahead).count(),
                     server > after ? "ahead of" : "behind"),
         "Leases and due times go by the server's clock and stay right; ids, logs and times that "
         "applications supply do not fit them.",
         "Let both hosts follow one source of time."});
    return {};
  }

  /// A pooler answers with a key of its own in place of the server's process. In transaction mode
  /// the session that we had is lent to the next who asks: so somebody asks, and we look whether we
  /// still have it.
  void find_pooler(const Server& server, Deadline deadline, Findings& findings) {
    if (connection_.announced_pid() == server.pid) return;
    const auto left = std::min(deadline.remaining(), pooler_patience);
    PostgresConnection other(connection_.options(), Use::people);
    const auto begun = other.begin(Deadline::after(left));
    if (!begun) {
      if (speaks_of_pooler(begun.error())) findings.push_back(transaction_pooler("connection"));
      return;
    }
    const auto now = ask({"doctor_pid"}, Deadline::after(left));
    other.rollback(Deadline::after(left));
    const bool lent = now ? now->small_integer(0, 0) != server.pid : speaks_of_pooler(now.error());
    findings.push_back(
        lent ? transaction_pooler("connection")
             : Finding{"pooler", Severity::note, "connection",
                       "a pooler stands between us and the server.",
                       "It has to keep the session; this one seems to.",
                       "Leave Postrider's pool in session mode, or connect directly."});
  }

  Result<Rows> ask(Call call, Deadline deadline) {
    auto results = connection_.read(std::vector<Call>{std::move(call)}, deadline);
    if (!results) return results.error();
    return std::move(results->front());
  }

  PostgresConnection connection_;
  const Clock& clock_;
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<Doctor> make_postgres_doctor(PostgresOptions options, const Clock& clock) {
  return std::make_unique<store::postgres::PostgresDoctor>(std::move(options), clock);
}

}  // namespace postrider
