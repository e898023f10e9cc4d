#pragma once
/// \file
/// An event as a request: its header lines. The body is the payload as it is.

#include <string>
#include <string_view>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/result.hpp>
#include <postrider/webhook.hpp>

namespace postrider::http {

/// Of all header lines of a request; servers take 8 to 64 KiB.
inline constexpr std::size_t most_request_header_bytes = 64U << 10U;

/// Whether a header of this name is set for every request, or belongs to the connection; it can be
/// neither a route's nor an event's.
[[nodiscard]] bool is_reserved(std::string_view name);

/// Whether a header of this name is one of CloudEvents, which an event may bring only where we do
/// not write them.
[[nodiscard]] bool is_of_cloudevents(std::string_view name);

/// What can stand in a header: bytes that could not are %XX, and so is % itself.
[[nodiscard]] std::string encoded_value(std::string_view value);
/// Names are tokens: bytes that could not stand in one are %XX, and so is % itself. A reserved name
/// gets the prefix `postrider-header-`.
[[nodiscard]] std::string encoded_name(std::string_view name);

/// "Name: value", or "Name;" for an empty value, which is how libcurl wants them.
using HeaderLines = std::vector<std::string>;

struct HeaderSettings {
  HeaderLines fixed;  ///< of the route
  bool idempotency_key = false;
  std::string cloudevents_source = {};  ///< empty: no headers of CloudEvents
};

/// What is the same at every attempt.
///
/// Errors: `limit_exceeded` with `reject` when they are too large.
[[nodiscard]] Result<HeaderLines> header_lines(const Event& event, const HeaderSettings& settings);

/// What an attempt at the time `at` adds.
[[nodiscard]] HeaderLines signature_lines(const Event& event, const WebhookKeys& keys,
                                          std::chrono::seconds at);

/// A route's header "Name: value" as a line. Errors: `config_invalid`; the value is not quoted.
[[nodiscard]] Result<std::string> fixed_line(std::string_view text);

}  // namespace postrider::http
