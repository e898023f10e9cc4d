#pragma once
/// \file
/// Times as people and other programs write them.

#include <optional>
#include <string_view>

#include <postrider/clock.hpp>

namespace postrider::config {

/// Reads RFC 3339: "2026-12-01T08:00:00Z", with up to six digits of the second, and with a zone
/// such as "+02:00" in place of Z. Nothing for any other form, and for a time that does not exist.
[[nodiscard]] std::optional<Timestamp> parse_time(std::string_view text);

}  // namespace postrider::config
