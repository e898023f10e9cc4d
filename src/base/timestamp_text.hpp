#pragma once
#include <string>

#include <postrider/clock.hpp>

namespace postrider {

/// "2026-01-01T00:00:00.000000Z": RFC 3339 in UTC, always with six digits of the second, so that
/// texts sort as the times do.
[[nodiscard]] std::string timestamp_text(Timestamp time);

}  // namespace postrider
