#include "store/postgres/postgres_doctor_checks.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace postrider::store::postgres {
namespace {

using Severity = FindingSeverity;

std::string seconds_text(std::int64_t ms) {
  return fmt::format("{} s", ms / 1000);
}

std::string consequence_without(std::string_view trigger) {
  if (trigger == "outbox_events_before_insert") {
    return "No event gets a number any more: inserts fail, or order is lost.";
  }
  if (trigger.find("_tell_of_") != std::string_view::npos) {
    return "Workers are not woken: jobs wait until they look again.";
  }
  return "Rows can be changed in ways that a relay does not expect.";
}

}  // namespace

void check_durability(const ExaminedServer& server, Findings& findings) {
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

void check_role_settings(const ExaminedServer& server, const Examination& examination,
                         Findings& findings) {
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

void check_connections(const ExaminedServer& server, const Examination& examination,
                       Findings& findings) {
  if (server.connected * 100 < server.connections * examination.most_connections_percent) return;
  findings.push_back(
      {"connections_scarce", Severity::warning, "server",
       fmt::format("{} of {} connections are in use.", server.connected, server.connections),
       "The next relay that starts or reconnects may be refused.",
       "Raise max_connections, or find in pg_stat_activity who keeps them."});
}

void check_commits(const ExaminedServer& server, const Rows& rows, Findings& findings) {
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
         consequence_without(trigger),
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

void check_rights(const ExaminedServer& server, const Rows& rows, Findings& findings) {
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

}  // namespace postrider::store::postgres
