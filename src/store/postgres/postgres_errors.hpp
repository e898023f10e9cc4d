#pragma once
/// \file
/// The one table from PostgreSQL's SQLSTATEs to `ErrorCode` and `Disposition`.
///
/// Thread safety: functions without state.

#include <span>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::store::postgres {

/// What our own functions in the database raise.
inline constexpr std::string_view lease_lost_state = "PR001";
inline constexpr std::string_view refused_change_state = "PR002";

/// A line of the table. `state` is a whole SQLSTATE or its class, the first two characters.
struct ErrorRow {
  std::string_view state;
  ErrorCode code;
  Disposition disposition;
  std::string_view advice;  ///< what to do, as a sentence
  /// The server's own sentence may be shown: it names settings, tables and roles, never a value
  /// that somebody stored.
  bool quotable;
};

[[nodiscard]] std::span<const ErrorRow> error_rows();

/// The line for `state`: the whole one before its class, and for unknown states one that says
/// `internal` and `retry`.
[[nodiscard]] const ErrorRow& error_row(std::string_view state);

/// Where in the life of a transaction something went wrong.
enum class Stage { before_commit, commit };

/// An error that the server answered. `doing` is the statement's name.
///
/// At `commit` only states that surely undo the transaction keep their line; everything else is
/// `commit_unknown` and `in_doubt`.
[[nodiscard]] Error server_error(std::string_view state, std::string_view server_message,
                                 std::string_view constraint, std::string_view doing, Stage stage);

/// The connection is gone, or could not be made (`doing` is then "connect").
[[nodiscard]] Error connection_lost(std::string_view client_message, std::string_view doing,
                                    Stage stage);

/// The deadline passed while nothing had been sent, or while an answer was awaited.
[[nodiscard]] Error deadline_passed(std::string_view doing, Stage stage);

/// The SQLSTATE in the message of a failed connect that was asked for verbosely, or nothing.
[[nodiscard]] std::string_view state_in(std::string_view connect_message);

}  // namespace postrider::store::postgres
