// What can be wrong with a PostgreSQL that holds an outbox: which statements are asked in which
// order, and who reads their rows.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_doctor_checks.hpp"
#include "store/postgres/postgres_schema.hpp"

namespace postrider {
namespace store::postgres {
namespace {

using Severity = FindingSeverity;

/// How long the look for a pooler may take: a pool of one makes the second connection wait.
constexpr milliseconds pooler_patience{2000};

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
    const ExaminedServer server(*rows);
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
  Result<void> examine_schema(const ExaminedServer& server, const Examination& examination,
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
    if (auto done = check_rights_for(server, examination, deadline, findings); !done) {
      return done;
    }
    if (examination.purpose != Purpose::writer) {
      if (auto done = compare_versions(deadline, findings); !done) return done;
    }
    if (auto done = examine_catalog(server, deadline, findings); !done) return done;
    const bool reads_partitions =
        examination.purpose == Purpose::relay || examination.purpose == Purpose::reader;
    if (!reads_partitions) return {};
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

  static std::string_view word_of(Purpose purpose) {
    switch (purpose) {
      case Purpose::writer:
        return "writer";
      case Purpose::reader:
        return "reader";
      case Purpose::worker:
        return "worker";
      case Purpose::relay:
        break;
    }
    return "relay";
  }

  Result<void> check_rights_for(const ExaminedServer& server, const Examination& examination,
                                Deadline deadline, Findings& findings) {
    Call call{"doctor_rights"};
    const auto purpose = examination.purpose;
    call.parameters.text(word_of(purpose));
    call.parameters.boolean(purpose == Purpose::relay && examination.schedules);
    const auto rows = ask(std::move(call), deadline);
    if (!rows) return rows.error();
    check_rights(server, *rows, findings);
    return {};
  }

  Result<void> examine_catalog(const ExaminedServer& server, Deadline deadline,
                               Findings& findings) {
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
  void find_pooler(const ExaminedServer& server, Deadline deadline, Findings& findings) {
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
