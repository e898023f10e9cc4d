// What can be wrong with a MariaDB that holds an outbox.

#include <fmt/format.h>

#include <utility>

#include <postrider/store/mariadb.hpp>

#include "store/mariadb/mariadb_connection.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store/mariadb/mariadb_schema.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider {
namespace store::mariadb {
namespace {

namespace statements = sql::store_mariadb;
using Severity = FindingSeverity;
using Findings = std::vector<Finding>;

/// The default largest payload, every byte of it escaped, and as much for the rest.
constexpr std::int64_t default_payload_packet = std::int64_t{4} << 20U;

/// Columns of doctor_server.
struct ExaminedMariadb {
  std::string version;
  std::int64_t flush_log = 1;
  bool binary_log = false;
  std::int64_t sync_binlog = 0;
  bool read_only = false;
  std::int64_t most_packet_bytes = 0;
  std::int64_t connections = 0;
  std::int64_t wait_timeout_s = 0;
  std::int64_t connected = 0;
  std::int64_t cluster_size = 0;
};

ExaminedMariadb read_server(const MariadbQuery& row) {
  return {row.text(0),    row.integer(1), row.integer(2) != 0, row.integer(3), row.integer(4) != 0,
          row.integer(5), row.integer(6), row.integer(7),      row.integer(8), row.integer(9)};
}

void check_log(const ExaminedMariadb& server, Findings& findings) {
  if (server.flush_log != 1) {
    findings.push_back({"log_not_flushed", Severity::warning, "innodb_flush_log_at_trx_commit",
                        fmt::format("innodb_flush_log_at_trx_commit is {}.", server.flush_log),
                        "A crash can take back the last commits after their events were sent.",
                        "Set it to 1."});
  }
  if (server.binary_log && server.sync_binlog != 1) {
    findings.push_back({"binary_log_not_synced", Severity::note, "sync_binlog",
                        fmt::format("sync_binlog is {}.", server.sync_binlog),
                        "After a power cut a replica may miss the last commits, or have too many.",
                        "Set it to 1 where a replica may become the primary."});
  }
}

void check_server_use(const ExaminedMariadb& server, const Examination& examination,
                      Findings& findings) {
  if (server.read_only && examination.purpose != Purpose::reader) {
    findings.push_back({"read_only", Severity::error, "read_only", "the server takes no writes.",
                        "Neither an application nor a relay can work on it.",
                        "Connect to the primary."});
  }
  if (server.most_packet_bytes < default_payload_packet) {
    findings.push_back(
        {"packets_small", Severity::warning, "max_allowed_packet",
         fmt::format("the server takes statements of {} bytes at most.", server.most_packet_bytes),
         "An event's payload takes up to two bytes of a statement for each of its "
         "own: large ones are refused when they are written.",
         "Raise max_allowed_packet to twice the largest payload and some."});
  }
  if (server.connected * 100 >= server.connections * examination.most_connections_percent) {
    findings.push_back(
        {"connections_scarce", Severity::warning, "max_connections",
         fmt::format("{} of {} connections are taken.", server.connected, server.connections),
         "A relay that loses its connection may not get another.",
         "Raise max_connections, or run fewer programs."});
  }
  if (server.cluster_size > 1) {
    findings.push_back(
        {"galera_cluster", Severity::warning, "wsrep_cluster_size",
         fmt::format("the server is one of {} nodes of a Galera cluster.", server.cluster_size),
         "Row locks of one node are unknown to the others: leases, fences and the order of events "
         "hold only where everybody writes to one node.",
         "Let all writers and relays use the same node."});
  }
}

class MariadbDoctor final : public Doctor {
 public:
  MariadbDoctor(MariadbOptions options, const Clock& clock)
      : connection_(std::move(options)), clock_(clock) {}

  Result<Diagnosis> examine(const Examination& examination, Deadline deadline) override {
    if (auto ready = connection_.ready(deadline); !ready) return ready.error();
    Diagnosis diagnosis;
    if (auto done = examine_server(examination, diagnosis); !done) return done.error();
    for (const auto look : {&MariadbDoctor::compare_clocks, &MariadbDoctor::examine_schema,
                            &MariadbDoctor::examine_rows}) {
      if (auto done = (this->*look)(examination, diagnosis.findings); !done) return done.error();
    }
    return diagnosis;
  }

 private:
  Result<void> examine_server(const Examination& examination, Diagnosis& diagnosis) {
    auto row = connection_.query(statements::doctor_server);
    if (!row.next()) return row.result();
    const auto server = read_server(row);
    diagnosis.facts = {
        {"server", "MariaDB " + server.version},
        {"connections", fmt::format("{} of {}", server.connected, server.connections)}};
    check_log(server, diagnosis.findings);
    check_server_use(server, examination, diagnosis.findings);
    return {};
  }

  Result<void> compare_clocks(const Examination& examination, Findings& findings) {
    const auto before = clock_.wall();
    const auto server = connection_.now(std::nullopt);
    if (!server) return server.error();
    const auto after = clock_.wall();
    const auto ahead = *server > after ? *server - after : before - *server;
    if (ahead <= examination.clock_difference) return {};
    findings.push_back(
        {"clocks_differ", Severity::warning, "clock",
         fmt::format("the server's clock is {} s {} this host's.",
                     std::chrono::duration_cast<std::chrono::seconds>(ahead).count(),
                     *server > after ? "ahead of" : "behind"),
         "Leases and due times go by the server's clock and stay right; ids, logs and times that "
         "applications supply do not fit them.",
         "Let both hosts follow one source of time."});
    return {};
  }

  Result<void> examine_schema(const Examination&, Findings& findings) {
    const auto compared = compare_schema(connection_);
    if (!compared && compared.error().code != ErrorCode::schema_mismatch) return compared;
    if (!compared) {
      findings.push_back({"schema_mismatch", Severity::error, "schema", compared.error().message,
                          "Neither an application nor a relay can work on it.",
                          "Run `postrider migrate`."});
      return {};
    }
    auto rows = connection_.query(statements::doctor_triggers);
    const auto missing = texts_of(rows);
    if (!missing) return missing.error();
    for (const auto& trigger : *missing) {
      findings.push_back({"trigger_missing", Severity::error, trigger,
                          "a trigger of ours is not there, or may not be seen by this user.",
                          "Without it events have no number, or history can be changed.",
                          "Run `postrider migrate` down and up on an empty outbox, or create it "
                          "again from the output of `postrider migrate --print`."});
    }
    return {};
  }

  Result<void> examine_rows(const Examination& examination, Findings& findings) {
    if (!examination.deep) return {};
    auto counts = connection_.query(statements::doctor_deep);
    if (!counts.next()) return counts.result();
    const auto contradictions = counts.integer(0) + counts.integer(1) + counts.integer(2);
    if (contradictions == 0) return {};
    findings.push_back(
        {"rows_contradict", Severity::error, "outbox_deliveries",
         fmt::format("{} held rows of routed events, {} rows of events that are not routed and {} "
                     "without an event.",
                     counts.integer(0), counts.integer(1), counts.integer(2)),
         "Somebody has changed rows by hand: events may be sent twice or never.",
         "Compare with a backup, and repair the rows."});
    return {};
  }

  MariadbConnection connection_;
  const Clock& clock_;
};

}  // namespace
}  // namespace store::mariadb

std::unique_ptr<Doctor> make_mariadb_doctor(MariadbOptions options, const Clock& clock) {
  return std::make_unique<store::mariadb::MariadbDoctor>(std::move(options), clock);
}

}  // namespace postrider
