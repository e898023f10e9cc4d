#include "publisher/http/http_answer.hpp"

#include <fmt/format.h>

#include "base/http_fields.hpp"

namespace postrider::http {
namespace {

constexpr int service_unavailable = 503;
/// Of an endpoint that says "too many requests" and not for how long.
constexpr milliseconds usual_pause{5'000};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

bool is_redirect(int status) {
  return status >= 300 && status < 400;
}

// What a person can do about it.
std::string_view advice(int status) {
  if (is_redirect(status)) return "Redirects are not followed; correct the URL of the route.";
  switch (status) {
    case 401:
    case 403:
      return "Check the secret and the headers of the route.";
    case 404:
      return "Check the path of the route's URL.";
    case 410:
      return "Ask its owner; then correct the URL, or remove the route.";
    default:
      return "Ask the owner of the endpoint if this repeats.";
  }
}

}  // namespace

void Answer::Field::take(std::string_view text) {
  // Two of them contradict each other, and neither counts.
  value = ++times == 1 ? text : std::string_view();
}

bool Answer::take_header(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > most_header_bytes) return false;
  if (line.starts_with("HTTP/")) {  // an interim answer was before
    retry_after_ = {};
    date_ = {};
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  const auto name = lower_case(line.substr(0, colon));
  if (name == "retry-after") retry_after_.take(trimmed(line.substr(colon + 1)));
  if (name == "date") date_.take(trimmed(line.substr(colon + 1)));
  return true;
}

bool Answer::take_body(std::size_t bytes) noexcept {
  body_bytes_ += bytes;
  return body_bytes_ <= most_body_bytes;
}

std::optional<milliseconds> asked_pause(const Answer& answer, Timestamp now, milliseconds most) {
  const auto said = parse_http_date(answer.date());
  return parse_retry_after(answer.retry_after(), said.value_or(now), most);
}

Outcome judge_status(int status, std::optional<milliseconds> pause, const StatusTable& table,
                     std::string_view authority) {
  const auto code =
      is_redirect(status) ? std::string("redirect_refused") : fmt::format("http_{}", status);
  const auto detail = fmt::format("{} answered {}. {}", authority, status, advice(status));
  switch (table.kind_of(status)) {
    case OutcomeKind::confirmed:
      return Outcome::confirmed();
    case OutcomeKind::refused:
      return Outcome::refused(code, detail);
    case OutcomeKind::rejected:
      return Outcome::rejected(code, detail);
    case OutcomeKind::unavailable:
      return Outcome::unavailable(code, detail);
    case OutcomeKind::throttled:
      return Outcome::throttled(pause.value_or(usual_pause), detail);
    case OutcomeKind::gone:
      return Outcome::gone(detail);
    case OutcomeKind::unknown:
      break;
  }
  if (status == service_unavailable && pause) return Outcome::throttled(*pause, detail);
  return Outcome::answered_unknown(code, detail);
}

}  // namespace postrider::http
