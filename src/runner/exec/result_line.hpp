#pragma once
#include <cstddef>
#include <string_view>

#include <postrider/job.hpp>
#include <postrider/result.hpp>

namespace postrider::runner {

inline constexpr std::size_t most_result_line_bytes = 16U << 10U;

/// Reads what a command says of its attempt: one line with one object of JSON,
/// {"outcome", "code", "detail", "delay"}.
///
/// Strict: unknown and repeated members, other types, unknown outcomes and members that an outcome
/// does not have are refused. Texts are cleaned, also of bytes that are no UTF-8, and cut.
/// Errors: `invalid_argument`, saying what is wrong; never a value.
[[nodiscard]] Result<JobOutcome> parse_result_line(std::string_view line);

}  // namespace postrider::runner
