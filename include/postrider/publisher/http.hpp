#pragma once
/// \file
/// An HTTP endpoint as destination, over libcurl: one POST per message, the payload as its body,
/// signed by Standard Webhooks. What each status means: docs/brokers/http.md.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/publisher.hpp>

namespace postrider {

/// How an event is told beside its payload, which is the body in either.
enum class HttpFormat : std::uint8_t {
  plain,        ///< headers of ours: `postrider-type` and others
  cloudevents,  ///< beside them those of CloudEvents 1.0 in binary mode: `ce-id`, `ce-type`, …
};

[[nodiscard]] constexpr std::string_view to_string(HttpFormat format) noexcept {
  return format == HttpFormat::plain ? "plain" : "cloudevents";
}
[[nodiscard]] constexpr std::optional<HttpFormat> parse_http_format(
    std::string_view text) noexcept {
  for (const auto format : {HttpFormat::plain, HttpFormat::cloudevents}) {
    if (to_string(format) == text) return format;
  }
  return std::nullopt;
}

struct HttpOptions {
  static constexpr std::size_t most_connections = 256;
  static constexpr std::size_t most_rate = 10'000;
  static constexpr milliseconds most_connect_timeout = std::chrono::minutes(10);
  static constexpr milliseconds longest_pause = std::chrono::hours(24 * 7);

  /// https://host:port/path, without user and password. http:// needs `plain_http`.
  std::string url;
  bool plain_http = false;
  /// "whsec_…"; two while one replaces the other. Empty: requests are not signed.
  std::vector<std::string> secrets;
  /// Sent with every request, as "Name: value": Authorization and the like. Names that are set for
  /// every request are refused.
  std::vector<std::string> headers;
  HttpFormat format = HttpFormat::plain;
  std::string
      source;  ///< with `cloudevents`: whose ids these are, as a URI, "https://shop.example"
  /// Also send the event's id as `Idempotency-Key`.
  bool idempotency_key = false;
  /// Changes of the table of statuses: "404=rejected", "5xx=unavailable".
  std::vector<std::string> statuses;

  /// Addresses and ranges that may be connected to although they are loopback, private, link-local
  /// or otherwise not public: "127.0.0.1", "10.0.0.0/8", "fd00::/8".
  std::vector<std::string> allow;
  /// http://host:port of a proxy, always by CONNECT; its address has to be allowed as any other. The
  /// proxy then decides what may be connected to. Empty: none, whatever the environment says.
  std::string proxy;
  std::string ca_file;  ///< trusted authorities, in PEM; empty: the system's
  std::string certificate_file;
  std::string key_file;

  std::size_t window = 1000;
  /// Requests at once, 1 to `most_connections`; `traits().window` is the smaller of this and
  /// `window`. More hides latency, and is more load on the endpoint.
  std::size_t connections = 8;
  std::size_t rate = 0;  ///< requests begun per second, up to `most_rate`; 0: no limit
  /// Of name, connection and TLS together. 1 ms to `most_connect_timeout`.
  milliseconds connect_timeout{5'000};
  /// The longest pause that an endpoint can ask for by Retry-After. 1 s to `longest_pause`.
  milliseconds most_retry_after = std::chrono::hours(24);
  /// How long an endpoint has to answer 410 and nothing else before it counts as gone; 0: at once.
  /// A restart begins anew. Up to `longest_pause`.
  milliseconds gone_after{0};
};

/// Every fault of `options` at once, one sentence each. No secret is in any of them.
[[nodiscard]] std::vector<std::string> validate(const HttpOptions& options);

/// Nothing is connected before the first submit. `clock` says the time in signatures, and is
/// borrowed.
[[nodiscard]] std::unique_ptr<Publisher> make_http_publisher(HttpOptions options,
                                                             const Clock& clock = system_clock());

}  // namespace postrider
