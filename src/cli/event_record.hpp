#pragma once
#include <string_view>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace postrider::cli {

/// Reads one record of the JSON Lines format (docs/brokers/file.md) as an event to be written.
///
/// Strict: unknown and repeated members, other types and anything nested deeper are refused. `seq`
/// and `created_at` are checked for their type and not taken over: the database gives both.
/// Errors: `invalid_argument`, saying which member; never a value.
[[nodiscard]] Result<NewEvent> parse_event_record(std::string_view line);

/// RFC 4648 with padding and nothing else; empty when `text` is not that.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace postrider::cli
