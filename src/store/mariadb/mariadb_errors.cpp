#include "store/mariadb/mariadb_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace postrider::store::mariadb {
namespace {

using enum ErrorCode;
using enum Disposition;

constexpr std::string_view wait_and_repeat =
    "Try again; if it stays, look for a long transaction with SHOW ENGINE INNODB STATUS.";
constexpr std::string_view repeat_transaction = "Repeat the whole transaction.";
constexpr std::string_view reach_server =
    "Check that the server runs and that host and port of the URL are right.";
constexpr std::string_view check_login = "Check user and password of the URL.";
constexpr std::string_view grant = "Grant the role the rights that the documentation names.";
constexpr std::string_view migrate = "Run `postrider migrate`.";
constexpr std::string_view keep_rule = "Change the row so that it keeps the rule.";
constexpr std::string_view report_defect = "This is a defect of Postrider: please report it.";
constexpr std::string_view fewer_connections =
    "Raise max_connections on the server, or run fewer programs.";

constexpr std::array error_table = {
    ErrorRow{1020, "a row was changed since it was read", conflict, retry, repeat_transaction,
             true},
    ErrorRow{1021, "the server's disk is full", storage_failed, retry,
             "Free space on the server's disk."},
    ErrorRow{1030, "the storage engine failed", storage_failed, stop,
             "Look into the server's error log."},
    ErrorRow{1040, "the server has no connection left", unavailable, retry, fewer_connections},
    ErrorRow{1044, "the user may not use this database", permission_denied, stop, grant},
    ErrorRow{1045, "user or password were refused", auth_failed, stop, check_login},
    ErrorRow{1048, "a column that must have a value has none", invalid_argument, reject, keep_rule},
    ErrorRow{1049, "there is no such database", not_found, stop,
             "Create the database, or correct its name in the URL."},
    ErrorRow{1053, "the server is shutting down", unavailable, retry, reach_server},
    ErrorRow{1054, "a column is missing", schema_mismatch, stop, migrate},
    ErrorRow{1062, "a unique key is taken", already_exists, reject,
             "Use another key; nothing was written."},
    ErrorRow{1064, "the server does not understand the statement", internal, stop, report_defect},
    ErrorRow{1114, "the table or the disk is full", storage_failed, retry,
             "Free space on the server's disk."},
    ErrorRow{1129, "the server refuses this host", unavailable, stop,
             "Run FLUSH HOSTS on the server."},
    ErrorRow{1130, "the server refuses this host", auth_failed, stop, check_login},
    ErrorRow{1142, "the user lacks a right on a table", permission_denied, stop, grant},
    ErrorRow{1143, "the user lacks a right on a column", permission_denied, stop, grant},
    ErrorRow{1146, "a table is missing", schema_mismatch, stop, migrate},
    ErrorRow{1153, "the statement is larger than max_allowed_packet", limit_exceeded, reject,
             "Make the payload smaller, or raise max_allowed_packet on the server."},
    ErrorRow{1203, "the user has no connection left", unavailable, retry, fewer_connections},
    ErrorRow{1205, "a lock is held by somebody else", busy, retry, wait_and_repeat, true},
    ErrorRow{1213, "a deadlock was found", conflict, retry, repeat_transaction, true},
    ErrorRow{1226, "the user has used up a limit", unavailable, retry, fewer_connections},
    ErrorRow{1227, "the user lacks a right of the server", permission_denied, stop,
             "Grant it, or set log_bin_trust_function_creators = 1 where triggers are refused."},
    ErrorRow{1264, "a number is out of its range", invalid_argument, reject, keep_rule},
    ErrorRow{1290, "the server runs read-only", primary_not_writable, stop,
             "Connect to the primary."},
    ErrorRow{1292, "a time or number cannot be read", invalid_argument, reject, keep_rule},
    ErrorRow{1317, "the statement was interrupted", timeout, retry, "Try again with more time."},
    ErrorRow{1366, "a text is not valid in its character set", invalid_argument, reject, keep_rule},
    ErrorRow{1370, "the user lacks a right on a routine", permission_denied, stop, grant},
    ErrorRow{1406, "a value is too long for its column", limit_exceeded, reject,
             "Make the value smaller."},
    ErrorRow{1419, "triggers need a right of the server", permission_denied, stop,
             "Set log_bin_trust_function_creators = 1, or migrate as a user with SUPER."},
    ErrorRow{1451, "other rows refer to the row", not_found, reject,
             "Check that nothing refers to what is deleted."},
    ErrorRow{1452, "the row that is referred to is not there", not_found, reject,
             "Check that the event still exists."},
    ErrorRow{1644, "a trigger refuses the change", invalid_argument, reject,
             "Events, final deliveries and the audit do not change: write a new event instead."},
    ErrorRow{1698, "user or password were refused", auth_failed, stop, check_login},
    ErrorRow{1792, "the transaction is read-only", primary_not_writable, stop,
             "Connect to the primary."},
    ErrorRow{1836, "the server runs read-only", primary_not_writable, stop,
             "Connect to the primary."},
    ErrorRow{1927, "the connection was killed", unavailable, retry, repeat_transaction},
    ErrorRow{1969, "the statement took too long", timeout, retry, "Try again with more time."},
    ErrorRow{2002, "the server cannot be reached", unavailable, retry, reach_server},
    ErrorRow{2003, "the server cannot be reached", unavailable, retry, reach_server},
    ErrorRow{2005, "the server's name is unknown", unavailable, retry, reach_server},
    ErrorRow{2006, "the connection was lost", unavailable, retry, reach_server},
    ErrorRow{2013, "the connection was lost", unavailable, retry, reach_server},
    ErrorRow{2020, "the statement is larger than max_allowed_packet", limit_exceeded, reject,
             "Make the payload smaller, or raise max_allowed_packet on the server."},
    ErrorRow{2026, "TLS could not be agreed on", unavailable, stop,
             "Check the server's certificate and tls_ca of the URL."},
    ErrorRow{2055, "the connection was lost", unavailable, retry, reach_server},
    ErrorRow{3024, "the statement took too long", timeout, retry, "Try again with more time."},
    ErrorRow{4025, "a rule of the table is broken", invalid_argument, reject, keep_rule},
    ErrorRow{4031, "the connection was idle for too long", unavailable, retry, reach_server},
    ErrorRow{4086, "a sequence has run out", storage_failed, stop,
             "Raise the sequence's maximum with ALTER SEQUENCE."},
};

const ErrorRow* find_row(unsigned native) noexcept {
  const auto* const row = std::find_if(error_table.begin(), error_table.end(),
                                       [&](const ErrorRow& each) { return each.native == native; });
  return row == error_table.end() ? nullptr : row;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_PRIMARY") ==
                              std::string_view::npos;
}

/// The constraint or key that the server names, which is one of our own words; else nothing.
std::string_view broken_rule(unsigned native, std::string_view message) {
  const std::string_view before = native == 4025 ? "CONSTRAINT `" : "' for key '";
  const char end = native == 4025 ? '`' : '\'';
  if (native != 4025 && native != 1062) return {};
  // The last one: a value may hold the same words.
  const auto at = native == 4025 ? message.find(before) : message.rfind(before);
  if (at == std::string_view::npos) return {};
  const auto name = message.substr(at + before.size());
  const auto rule = name.substr(0, name.find(end));
  return is_name(rule) ? rule : std::string_view();
}

Error commit_in_doubt(std::string_view doing, std::string native) {
  return {commit_unknown, in_doubt,
          fmt::format("{}: the answer to COMMIT is missing. Look whether it happened before you "
                      "repeat it.",
                      doing),
          "mariadb", std::move(native)};
}

}  // namespace

std::span<const ErrorRow> error_rows() noexcept {
  return error_table;
}

bool ends_connection(unsigned native) noexcept {
  switch (native) {
    case 1053:
    case 1927:
    case 4031:
      return true;
    default:
      return native >= 2000 && native < 3000 && native != 2020;
  }
}

Error mariadb_error(unsigned native, std::string_view message, std::string_view doing,
                    Phase phase) {
  const auto number = std::to_string(native);
  const ErrorRow* const row = find_row(native);
  if (phase == Phase::commit && (row == nullptr || !row->undoes_commit)) {
    return commit_in_doubt(doing, number);
  }
  if (row == nullptr) {
    return {protocol, retry,
            fmt::format("{}: the server answered error {}. Try again; if it stays, report the "
                        "number.",
                        doing, number),
            "mariadb", number};
  }
  const auto rule = broken_rule(native, message);
  const auto what = rule.empty() ? std::string(row->name) : fmt::format("{} ({})", row->name, rule);
  return {row->code, row->disposition, fmt::format("{}: {}. {}", doing, what, row->advice),
          "mariadb", number};
}

Error deadline_passed(std::string_view doing, Phase phase) {
  if (phase == Phase::commit) return commit_in_doubt(doing, "");
  return {timeout, retry,
          fmt::format("{}: MariaDB did not answer in time. Try again; if it stays, look at the "
                      "server's load and at long transactions.",
                      doing),
          "mariadb", ""};
}

}  // namespace postrider::store::mariadb
