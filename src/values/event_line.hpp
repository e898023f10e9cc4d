#pragma once
#include <string>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// One event as one line of JSON with its newline, in the format of docs/brokers/file.md.
///
/// Errors: `invalid_argument` when a text other than the payload is not valid UTF-8: a JSON string
/// cannot hold it unchanged, and changing it silently would be worse.
[[nodiscard]] Result<std::string> event_line(const Event& event);

}  // namespace postrider
