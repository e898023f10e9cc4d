#include "publisher/http/http_statuses.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace postrider::http {
namespace {

using enum OutcomeKind;

constexpr std::array all_kinds{confirmed, refused, rejected, unknown, unavailable, throttled, gone};

// Sources: Standard Webhooks 1.0.0 (2xx, 3xx, 410, 429), RFC 9110.
struct Row {
  int status;
  OutcomeKind kind;
};
constexpr std::array special{
    Row{400, rejected},   // this message, and it does not get better
    Row{408, unknown},    // it has read some of the request, and may have acted
    Row{410, gone},       //
    Row{413, rejected},   // too large
    Row{415, rejected},   // a content type that it does not take
    Row{422, rejected},   // also: an idempotency key with another payload
    Row{429, throttled},  //
    Row{431, rejected},   // headers too large
};

OutcomeKind usual_kind(int status) {
  const auto* const row = std::find_if(special.begin(), special.end(),
                                       [&](const Row& known) { return known.status == status; });
  if (row != special.end()) return row->kind;
  if (status < 300) return confirmed;
  // 5xx: who fails in the middle may have done the work. Redirects are not followed, and most
  // other 4xx come and go with deployments.
  return status < 500 ? refused : unknown;
}

std::optional<OutcomeKind> parse_kind(std::string_view text) {
  const auto* const found = std::find_if(all_kinds.begin(), all_kinds.end(),
                                         [&](auto kind) { return to_string(kind) == text; });
  return found == all_kinds.end() ? std::nullopt : std::optional(*found);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

StatusTable::StatusTable() {
  for (int status = first; status <= last; ++status)
    kinds_[static_cast<std::size_t>(status - first)] = usual_kind(status);
}

Result<StatusTable> StatusTable::make(std::span<const std::string> changes) {
  StatusTable table;
  for (const auto& text : changes) {
    if (table.change(text)) continue;
    return Error{ErrorCode::config_invalid, Disposition::stop,
                 fmt::format("statuses has '{}'. Write a status from {} to {}, or 4xx, and an "
                             "outcome: 404=rejected.",
                             text, first, last),
                 "http", ""};
  }
  return table;
}

bool StatusTable::change(const std::string& text) {
  constexpr std::size_t code_size = 3;
  if (text.size() <= code_size || text[code_size] != '=' || text[0] < '2' || text[0] > '5') {
    return false;
  }
  const auto kind = parse_kind(std::string_view(text).substr(code_size + 1));
  const bool hundred = text[1] == 'x' && text[2] == 'x';
  if (!kind || (!hundred && (!is_digit(text[1]) || !is_digit(text[2])))) return false;
  const int from = (text[0] - '0') * 100 + (hundred ? 0 : (text[1] - '0') * 10 + text[2] - '0');
  for (int status = from; status <= (hundred ? from + 99 : from); ++status)
    kinds_[static_cast<std::size_t>(status - first)] = *kind;
  return true;
}

OutcomeKind StatusTable::kind_of(int status) const noexcept {
  if (status < first || status > last) return OutcomeKind::unknown;
  return kinds_[static_cast<std::size_t>(status - first)];
}

}  // namespace postrider::http
