#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/job.hpp>

namespace postrider::runner {

/// How a request can end without a status. Each is a retry, under the code of the same name.
enum class HttpFault : std::uint8_t {
  unavailable,      ///< no connection
  tls_failed,       ///< the endpoint is not who it should be, or speaks no TLS
  http_timeout,     ///< no connection or no status in time
  connection_lost,  ///< it may have done the job
  bad_answer,       ///< what it said is no HTTP
};

[[nodiscard]] std::string_view to_string(HttpFault fault) noexcept;

/// What a status means; `retry_after` is the header's value, empty when there is none, and counts
/// with a retry only.
[[nodiscard]] AttemptEnd judge_http(int status, std::string_view retry_after, Timestamp now);

/// Reads a header Retry-After: seconds, or a date.
/// Nothing when it is neither, or not in the future. At most `JobOutcome::most_delay`.
[[nodiscard]] std::optional<milliseconds> parse_retry_after(std::string_view text, Timestamp now);

}  // namespace postrider::runner
