#pragma once
/// \file
/// The one place that knows SQLite's result codes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::store::sqlite {

/// What a call was doing: only a failed COMMIT can leave it open what happened.
enum class Phase : std::uint8_t { ordinary, commit };

struct ErrorRow {
  int native;             ///< an extended result code, or a primary one for all of its kind
  std::string_view name;  ///< as in SQLite's documentation
  ErrorCode code;
  Disposition disposition;
  std::string_view advice;  ///< last sentence of the message
};

/// Every code with a row of its own, in ascending order.
[[nodiscard]] std::span<const ErrorRow> error_rows() noexcept;

/// The error that an extended result code stands for. `doing` names the call, `detail` is SQLite's
/// own text, which names tables, columns and constraints and never values.
[[nodiscard]] Error sqlite_error(int extended_code, std::string_view doing, std::string_view detail,
                                 Phase phase = Phase::ordinary);

}  // namespace postrider::store::sqlite
