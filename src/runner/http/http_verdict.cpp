#include "runner/http/http_verdict.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/http_fields.hpp"

namespace postrider::runner {
namespace {

// Beside 5xx: request timeout, conflict, too early, too many requests.
constexpr std::array retried_statuses{408, 409, 425, 429};

bool is_retried(int status) {
  return status >= 500 || std::find(retried_statuses.begin(), retried_statuses.end(), status) !=
                              retried_statuses.end();
}

}  // namespace

std::string_view to_string(HttpFault fault) noexcept {
  constexpr std::array<std::string_view, 5> words{"unavailable", "tls_failed", "http_timeout",
                                                  "connection_lost", "bad_answer"};
  return words.at(static_cast<std::size_t>(fault));
}

AttemptEnd judge_http(int status, std::string_view retry_after, Timestamp now) {
  if (status >= 200 && status < 300) return JobOutcome::done();
  const auto code = fmt::format("http_{}", status);
  const auto detail = fmt::format("The endpoint answered with status {}", status);
  if (!is_retried(status)) return JobOutcome::fail(code, detail);
  auto outcome = JobOutcome::retry(code, detail);
  outcome.delay = parse_retry_after(retry_after, now);
  return outcome;
}

std::optional<milliseconds> parse_retry_after(std::string_view text, Timestamp now) {
  const auto delay = postrider::parse_retry_after(text, now, JobOutcome::most_delay);
  return delay && *delay >= milliseconds(1) ? delay : std::nullopt;
}

}  // namespace postrider::runner
