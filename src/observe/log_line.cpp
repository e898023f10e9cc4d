#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "base/timestamp_text.hpp"
#include "observe/log.hpp"

namespace postrider::observe {
namespace {

using Json = nlohmann::ordered_json;

bool needs_no_quotes(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._:/+-*@").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// What JSON lets through and a terminal may obey: DEL, the C1 controls (U+0080 to U+009F), marks
// that reverse the direction of writing or end a line (U+2028 to U+202E, U+2066 to U+2069).
bool steers_terminal(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = [&](std::size_t offset) {
      return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0U;
    };
    if (byte(0) == 0x7F) return true;
    if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return true;
    if (byte(0) != 0xE2) continue;
    if (byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) return true;
    if (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return true;
  }
  return false;
}

// Bytes that are no UTF-8 become U+FFFD: a log line is for reading, and must not be lost for them.
std::string json_text(const Json& json) {
  auto text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!steers_terminal(text)) return text;
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string text_value(const FieldValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  const auto& text = std::get<std::string>(value);
  return needs_no_quotes(text) ? text : json_text(Json(text));
}

std::string upper(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string json_line(Timestamp time, Severity severity, std::string_view kind,
                      const Fields& fields) {
  Json line;
  line["time"] = timestamp_text(time);
  line["level"] = to_string(severity);
  line["kind"] = kind;
  for (const auto& [name, value] : fields) {
    std::visit([&, key = std::string(name)](const auto& content) { line[key] = content; }, value);
  }
  return json_text(line);
}

std::string text_line(Timestamp time, Severity severity, std::string_view kind,
                      const Fields& fields) {
  auto line = timestamp_text(time);
  line.append(1, ' ').append(upper(to_string(severity))).append(1, ' ').append(kind);
  for (const auto& [name, value] : fields) {
    line.append(1, ' ').append(name).append(1, '=').append(text_value(value));
  }
  return line;
}

}  // namespace

std::string format_line(LineFormat format, Timestamp time, Severity severity, std::string_view kind,
                        const Fields& fields) {
  return format == LineFormat::json ? json_line(time, severity, kind, fields)
                                    : text_line(time, severity, kind, fields);
}

std::string time_text(Timestamp time) {
  return timestamp_text(time);
}

}  // namespace postrider::observe
