#pragma once
/// \file
/// Header fields of HTTP: what may stand in them, and the two forms of Retry-After. Source: RFC
/// 9110.

#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>

namespace postrider {

/// Whether `name` can be a field's name.
[[nodiscard]] bool is_http_token(std::string_view name) noexcept;
/// Whether `value` can be sent as it is: no controls, so that nothing can end the line.
[[nodiscard]] bool is_http_field_value(std::string_view value) noexcept;

/// ASCII letters only: what names are compared by.
[[nodiscard]] std::string lower_case(std::string_view text);

/// Reads a date in one of the three forms that a recipient has to know: "Sun, 06 Nov 1994 08:49:37
/// GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994".
[[nodiscard]] std::optional<Timestamp> parse_http_date(std::string_view text);

/// Reads a Retry-After: whole seconds, or a date, which counts from `now`; one that has passed is
/// zero. Nothing when it is neither; at most `most`.
[[nodiscard]] std::optional<milliseconds> parse_retry_after(std::string_view text, Timestamp now,
                                                            milliseconds most);

}  // namespace postrider
