#pragma once
/// \file
/// The one place that knows MariaDB's error numbers, of the server and of its client library.
///
/// The server's own sentences are never shown: they quote the values of rows. Only the name of a
/// broken constraint or key is taken out of them.
///
/// Thread safety: functions without state.

#include <cstdint>
#include <span>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::store::mariadb {

/// What a call was doing: only a failed COMMIT can leave it open what happened.
enum class Phase : std::uint8_t { ordinary, commit };

struct ErrorRow {
  unsigned native;        ///< the error number
  std::string_view name;  ///< what it means, in words that hold no value
  ErrorCode code;
  Disposition disposition;
  std::string_view advice;  ///< last sentence of the message
  /// At COMMIT, too, it says that nothing was committed.
  bool undoes_commit = false;
};

/// Every number with a row of its own, in ascending order.
[[nodiscard]] std::span<const ErrorRow> error_rows() noexcept;

/// Whether the connection cannot be used after this error.
[[nodiscard]] bool ends_connection(unsigned native) noexcept;

/// The error that a number stands for. `doing` names the call; `message` is the server's text.
[[nodiscard]] Error mariadb_error(unsigned native, std::string_view message, std::string_view doing,
                                  Phase phase = Phase::ordinary);

/// The deadline passed while nothing had been sent, or while an answer was awaited.
[[nodiscard]] Error deadline_passed(std::string_view doing, Phase phase = Phase::ordinary);

}  // namespace postrider::store::mariadb
