#include "store/common/headers_codec.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.hpp"

namespace postrider::store {
namespace {

using Json = nlohmann::json;

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "headers", ""};
}

/// Takes the parser's events as they come. Nothing is nested deeper than one level and nothing is
/// built, so hostile text costs no more than its own length.
class HeadersReader {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  bool null() { return refuse("is null"); }
  bool boolean(bool value) { return take(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) { return take(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) { return take(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) { return take(text); }
  bool string(string_t& value) { return take(std::move(value)); }
  bool binary(binary_t&) { return refuse("is binary"); }

  bool start_object(std::size_t) {
    if (inside_) return refuse("is an object");
    inside_ = true;
    return true;
  }
  bool key(string_t& name) {
    name_ = std::move(name);
    return true;
  }
  bool end_object() { return true; }
  bool start_array(std::size_t) { return refuse("is an array"); }
  bool end_array() { return true; }

  // The parser's own sentence is not used: it quotes the text that it could not read.
  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception&) {
    fault_ = fmt::format("headers are not valid JSON at byte {}. Write one JSON object.", position);
    return false;
  }

  Result<Headers> take_result() {
    if (!fault_.empty()) return invalid(std::move(fault_));
    return std::move(headers_);
  }

 private:
  bool take(std::string value) {
    if (!inside_) return refuse("");
    if (headers_.contains(name_)) {
      fault_ = "headers name the same header twice. Write each name once.";
      return false;
    }
    headers_.emplace(std::move(name_), std::move(value));
    return true;
  }

  bool refuse(std::string_view what) {
    fault_ = inside_ ? fmt::format("the value of a header {}. Write a string.", what)
                     : "headers are not a JSON object. Write one object of strings.";
    return false;
  }

  bool inside_ = false;
  std::string name_;
  Headers headers_;
  std::string fault_;
};

Result<void> check_utf8(std::string_view what, std::string_view text) {
  if (const auto at = first_invalid_utf8(text)) {
    return invalid(
        fmt::format("a header's {} is not valid UTF-8 at byte {}. Put bytes into the payload only.",
                    what, *at));
  }
  return {};
}

}  // namespace

Result<std::string> encode_headers(const Headers& headers) {
  Json object = Json::object();
  for (const auto& [name, value] : headers) {
    if (auto checked = check_utf8("name", name); !checked) return checked.error();
    if (auto checked = check_utf8("value", value); !checked) return checked.error();
    object[name] = value;
  }
  return object.dump();
}

Result<Headers> decode_headers(std::string_view json) {
  if (json.size() > most_header_text_bytes) {
    return invalid(
        fmt::format("headers are {} bytes of text and may have {}. Move some into the "
                    "payload.",
                    json.size(), most_header_text_bytes));
  }
  HeadersReader reader;
  // What it returns is told by the reader as well, with its reason.
  static_cast<void>(Json::sax_parse(json.begin(), json.end(), &reader));
  return reader.take_result();
}

}  // namespace postrider::store
