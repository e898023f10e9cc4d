#include "store/postgres/postgres_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace postrider::store::postgres {
namespace {

using enum ErrorCode;
using enum Disposition;

constexpr std::string_view come_back =
    "It is tried again by itself; look at the server if it stays.";
constexpr std::string_view repair_value = "Correct the value.";
constexpr std::string_view migrate = "Run `postrider migrate`, and check schema and prefix.";
constexpr std::string_view report = "Report this as a defect of Postrider.";

// Whole states stand before their class; the first match counts.
constexpr ErrorRow rows[] = {
    {"08P01", protocol, retry, "Check what stands between Postrider and the server.", true},
    {"08", unavailable, retry, come_back, true},
    {"0A000", conflict, retry, "The schema changed under a prepared statement; call again.", true},
    {"22", invalid_argument, reject, repair_value, false},
    {"23505", already_exists, reject, "Nothing was written; give each event its own.", false},
    {"23", invalid_argument, reject, repair_value, false},
    {"25006", primary_not_writable, retry, "Point Postrider at the primary.", true},
    {"25", internal, retry, report, true},
    {"26", conflict, retry, "A prepared statement vanished; connect directly or by session.", true},
    {"28", auth_failed, stop, "Check user, password file and pg_hba.conf.", true},
    {"3D000", not_found, stop, "Create the database, or correct its name.", true},
    {"3F000", schema_mismatch, stop, migrate, true},
    {"40003", commit_unknown, in_doubt, "Look for the event's id before writing it again.", true},
    {"40", conflict, retry, "Repeat the whole transaction.", true},
    {"42501", permission_denied, stop, "Grant the right to the role.", true},
    {"42P01", schema_mismatch, stop, migrate, true},
    {"42703", schema_mismatch, stop, migrate, true},
    {"42704", schema_mismatch, stop, migrate, true},
    {"42883", schema_mismatch, stop, migrate, true},
    {"42P05", config_invalid, stop, "A pooler shares this session; pool by session.", true},
    {"42P06", already_exists, reject, "Choose another schema.", true},
    {"42P07", already_exists, stop, "Remove what is in the way, or choose another prefix.", true},
    {"42710", already_exists, stop, "Remove what is in the way, or choose another prefix.", true},
    {"42723", already_exists, stop, "Remove what is in the way, or choose another prefix.", true},
    {"42", internal, stop, report, true},
    {"53100", storage_failed, retry, "Make room on the server's disk.", true},
    {"53", unavailable, retry, "Raise the server's limit or lower its load.", true},
    {"54", limit_exceeded, reject, "Make the value smaller.", false},
    {"55P03", busy, retry, "Somebody holds the lock; see pg_locks if it stays.", true},
    {"55006", busy, retry, "Somebody uses it; see pg_stat_activity if it stays.", true},
    {"55", unavailable, retry, come_back, true},
    {"57014", timeout, retry, "Give it more time, or look for what holds it up.", true},
    {"57P04", not_found, stop, "Create the database again.", true},
    {"57", unavailable, retry, come_back, true},
    {"58", storage_failed, retry, "Look at the server's log and disk.", true},
    {"PR001", conflict, retry, "Another relay owns the partition.", true},
    {"PR002", invalid_argument, reject, "Leave Postrider's rows to Postrider.", true},
    {"XX001", storage_failed, stop, "Restore the damaged table.", false},
    {"XX002", storage_failed, stop, "Rebuild the damaged index.", false},
};

constexpr ErrorRow unknown_row = {"", internal, retry, "See the server's log.", false};

// Only these prove that nothing was committed when they are the answer to COMMIT.
constexpr std::array<std::string_view, 4> undoing = {"22", "23", "40001", "40P01"};

constexpr std::string_view in_doubt_advice =
    "It may have been committed; a repeated request finds that out.";

bool proves_rollback(std::string_view state) {
  return std::any_of(undoing.begin(), undoing.end(),
                     [&](std::string_view prefix) { return state.starts_with(prefix); });
}

/// Without the newline and the hints that may follow it.
std::string first_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  while (!line.empty() && (line.back() == ' ' || line.back() == '.'))
    line.pop_back();
  return line;
}

Error make(ErrorCode code, Disposition disposition, std::string message, std::string_view state) {
  return {code, disposition, std::move(message), "postgres", std::string(state)};
}

}  // namespace

std::span<const ErrorRow> error_rows() {
  return rows;
}

const ErrorRow& error_row(std::string_view state) {
  for (const auto& row : rows) {
    if (state.starts_with(row.state)) return row;
  }
  return unknown_row;
}

Error server_error(std::string_view state, std::string_view server_message,
                   std::string_view constraint, std::string_view doing, Stage stage) {
  const auto& row = error_row(state);
  std::string what = fmt::format("{} was refused", doing);
  if (!constraint.empty()) what += fmt::format(" by {}", constraint);
  if (row.quotable && !server_message.empty()) what += ": " + first_line(server_message);
  if (stage == Stage::commit && !proves_rollback(state)) {
    return make(commit_unknown, in_doubt, fmt::format("{}. {}", what, in_doubt_advice), state);
  }
  return make(row.code, row.disposition, fmt::format("{}. {}", what, row.advice), state);
}

Error connection_lost(std::string_view client_message, std::string_view doing, Stage stage) {
  const auto line = first_line(client_message);
  const auto what =
      fmt::format("the connection was lost during {}{}{}", doing, line.empty() ? "" : ": ", line);
  if (stage == Stage::commit) {
    return make(commit_unknown, in_doubt, fmt::format("{}. {}", what, in_doubt_advice), "");
  }
  return make(unavailable, retry, fmt::format("{}. {}", what, come_back), "");
}

Error deadline_passed(std::string_view doing, Stage stage) {
  if (stage == Stage::commit) {
    return make(commit_unknown, in_doubt,
                fmt::format("no answer to {} within its deadline. {}", doing, in_doubt_advice), "");
  }
  return make(timeout, retry,
              fmt::format("{} did not end within its deadline. Give it more time, or look for "
                          "what holds it up.",
                          doing),
              "");
}

std::string_view state_in(std::string_view connect_message) {
  // "… failed: FATAL:  28P01: password authentication failed …"; of several hosts the last counts.
  constexpr std::string_view mark = ":  ";
  for (auto at = connect_message.rfind(mark); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : connect_message.rfind(mark, at - 1)) {
    const auto rest = connect_message.substr(at + mark.size());
    if (rest.size() < 6 || rest[5] != ':') continue;
    const auto state = rest.substr(0, 5);
    const bool plausible = std::all_of(state.begin(), state.end(), [](unsigned char c) {
      return std::isdigit(c) != 0 || (std::isupper(c) != 0 && c < 128);
    });
    if (plausible) return state;
  }
  return {};
}

}  // namespace postrider::store::postgres
