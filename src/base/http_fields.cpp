#include "base/http_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>

namespace postrider {
namespace {

constexpr std::string_view token_characters =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct DateForm {
  const char* format;
  std::size_t least_size;
  std::size_t most_size;
};
// strptime takes more than the grammar: the sizes keep what is plainly something else out.
constexpr std::array date_forms{DateForm{"%a, %d %b %Y %H:%M:%S GMT", 29, 29},
                                DateForm{"%A, %d-%b-%y %H:%M:%S GMT", 30, 33},
                                DateForm{"%a %b %e %H:%M:%S %Y", 24, 24}};

std::optional<milliseconds> parse_seconds(std::string_view text, milliseconds most) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  std::int64_t seconds = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc()) return std::nullopt;
  // Bounded before the multiplication.
  const auto whole = std::chrono::ceil<std::chrono::seconds>(most);
  return std::min<milliseconds>(most, std::chrono::seconds(std::min(seconds, whole.count())));
}

}  // namespace

bool is_http_token(std::string_view name) noexcept {
  return !name.empty() && name.find_first_not_of(token_characters) == std::string_view::npos;
}

bool is_http_field_value(std::string_view value) noexcept {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::optional<Timestamp> parse_http_date(std::string_view text) {
  const std::string whole(text);
  for (const auto& form : date_forms) {
    if (text.size() < form.least_size || text.size() > form.most_size) continue;
    std::tm parts{};
    const char* const rest = ::strptime(whole.c_str(), form.format, &parts);
    if (rest != nullptr && *rest == '\0') {
      return Timestamp(std::chrono::seconds(::timegm(&parts)));
    }
  }
  return std::nullopt;
}

std::optional<milliseconds> parse_retry_after(std::string_view text, Timestamp now,
                                              milliseconds most) {
  if (const auto date = parse_http_date(text)) {
    const auto wait = std::chrono::ceil<milliseconds>(*date - now);
    return std::clamp(wait, milliseconds::zero(), most);
  }
  return parse_seconds(text, most);
}

}  // namespace postrider
