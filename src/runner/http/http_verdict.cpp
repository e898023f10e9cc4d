#include "runner/http/http_verdict.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <string>

#include <fmt/format.h>

namespace postrider::runner {
namespace {

// Beside 5xx: request timeout, conflict, too early, too many requests.
constexpr std::array retried_statuses{408, 409, 425, 429};
constexpr std::size_t date_size = 29;

bool is_retried(int status) {
  return status >= 500 || std::find(retried_statuses.begin(), retried_statuses.end(), status) !=
                              retried_statuses.end();
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<Timestamp> parse_date(std::string_view text) {
  if (text.size() != date_size) return std::nullopt;
  const std::string whole(text);
  std::tm parts{};
  const char* const rest = ::strptime(whole.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  return Timestamp(std::chrono::seconds(::timegm(&parts)));
}

std::optional<milliseconds> within_bounds(milliseconds delay) {
  if (delay < milliseconds(1)) return std::nullopt;
  return std::min(delay, JobOutcome::most_delay);
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
  if (const auto date = parse_date(text)) {
    return within_bounds(std::chrono::ceil<milliseconds>(*date - now));
  }
  std::int64_t seconds = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, seconds);
  if (fault != std::errc() || rest != end) return std::nullopt;
  // Bounded before the multiplication.
  constexpr auto most = std::chrono::duration_cast<std::chrono::seconds>(JobOutcome::most_delay);
  return within_bounds(std::chrono::seconds(std::min<std::int64_t>(seconds, most.count())));
}

}  // namespace postrider::runner
