// JSON as bytes of a FieldValue. Writing is our own: few lines, and every byte of it is a promise.
// Reading is the library's parser, as a stream of events, so that depth is bounded while it reads.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include <postrider/codec.hpp>
#include <postrider/typed_event.hpp>

#include "base/utf8.hpp"

namespace postrider {
namespace {

Error refused(ErrorCode code, std::string message) {
  return {code, Disposition::reject, std::move(message), "json", ""};
}

class Writer {
 public:
  Result<void> write(const FieldValue& value) {
    return std::visit([&](const auto& content) { return write_content(content); }, value.content);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  Result<void> write_content(std::monostate) { return put("null"); }
  Result<void> write_content(bool value) { return put(value ? "true" : "false"); }
  Result<void> write_content(std::int64_t value) { return put(std::to_string(value)); }
  Result<void> write_content(std::uint64_t value) { return put(std::to_string(value)); }

  Result<void> write_content(const FieldNumber& number) {
    if (!std::isfinite(number.value)) {
      return field_error("is NaN or infinite, for which JSON has no form. Leave it out instead.");
    }
    std::array<char, 32> buffer{};
    char* const first = buffer.data();
    char* const last = first + buffer.size();
    const auto end = number.is_float ? std::to_chars(first, last, static_cast<float>(number.value))
                                     : std::to_chars(first, last, number.value);
    const std::string_view digits(first, static_cast<std::size_t>(end.ptr - first));
    text_ += digits;
    // A reader without our types must not take it for an integer.
    if (digits.find_first_of(".e") == std::string_view::npos) text_ += ".0";
    return {};
  }

  Result<void> write_content(const std::string& text) {
    if (const auto at = first_invalid_utf8(text)) {
      return field_error(fmt::format(
          "is not valid UTF-8 at byte {}. Send bytes as the payload of an untyped event.", *at));
    }
    text_ += '"';
    for (const char c : text)
      put_escaped(c);
    text_ += '"';
    return {};
  }

  Result<void> write_content(const FieldItems& items) {
    text_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text_ += ',';
      if (auto written = write(items[i]); !written) return in_item(i, std::move(written).error());
    }
    text_ += ']';
    return {};
  }

  Result<void> write_content(const FieldMembers& members) {
    text_ += '{';
    bool first = true;
    for (const auto& [name, value] : members) {
      if (!first) text_ += ',';
      first = false;
      if (auto written = write_content(name); !written) return in_field("(name)", written.error());
      text_ += ':';
      if (auto written = write(value); !written) return in_field(name, std::move(written).error());
    }
    text_ += '}';
    return {};
  }

  Result<void> put(std::string_view text) {
    text_ += text;
    return {};
  }

  void put_escaped(char c) {
    switch (c) {
      case '"':
        text_ += "\\\"";
        return;
      case '\\':
        text_ += "\\\\";
        return;
      case '\n':
        text_ += "\\n";
        return;
      case '\r':
        text_ += "\\r";
        return;
      case '\t':
        text_ += "\\t";
        return;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) {
          text_ += c;
        } else {
          text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        }
    }
  }

  std::string text_;
};

/// Takes the parser's events; a function that returns false ends the reading.
class Reader {
 public:
  using Json = nlohmann::json;

  bool null() { return add({}); }
  bool boolean(bool value) { return add({value}); }
  bool number_integer(std::int64_t value) { return add({value}); }
  bool number_unsigned(std::uint64_t value) { return add({value}); }
  bool number_float(double value, const std::string&) { return add({FieldNumber{value, false}}); }
  bool string(std::string& value) { return add({std::move(value)}); }
  bool binary(Json::binary_t&) { return false; }

  bool start_object(std::size_t) { return open({FieldMembers()}); }
  bool key(std::string& name) {
    names_.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    const auto& members = std::get<FieldMembers>(open_.back().content);
    return has_distinct_names(members) && close();
  }
  bool start_array(std::size_t) { return open({FieldItems()}); }
  bool end_array() { return close(); }

  // The parser's own sentence is not used: it quotes the text that it could not read.
  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception&) {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("the payload is not valid JSON at byte {}. Send JSON (RFC 8259), or "
                              "read it with another codec.",
                              position));
  }

  Result<FieldValue> take_result() {
    if (failure_) return *std::move(failure_);
    return std::move(root_);
  }

 private:
  bool refuse(ErrorCode code, std::string message) {
    failure_ = refused(code, std::move(message));
    return false;
  }

  bool open(FieldValue container) {
    if (open_.size() == most_json_depth) {
      return refuse(
          ErrorCode::limit_exceeded,
          fmt::format("the payload has more than {} levels. Send a flatter one.", most_json_depth));
    }
    open_.push_back(std::move(container));
    return true;
  }

  bool close() {
    FieldValue closed = std::move(open_.back());
    open_.pop_back();
    return add(std::move(closed));
  }

  bool add(FieldValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* items = std::get_if<FieldItems>(&open_.back().content)) {
      items->push_back(std::move(value));
    } else {
      std::get<FieldMembers>(open_.back().content)
          .push_back({std::move(names_.back()), std::move(value)});
      names_.pop_back();
    }
    return true;
  }

  /// Readers disagree on which of two counts.
  bool has_distinct_names(const FieldMembers& members) {
    std::vector<std::string_view> names;
    for (const auto& member : members)
      names.emplace_back(member.name);
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) == names.end()) return true;
    return refuse(ErrorCode::invalid_argument,
                  "an object of the payload has a name twice. Send each name once.");
  }

  FieldValue root_;
  std::vector<FieldValue> open_;
  std::vector<std::string> names_;  ///< of members whose value is still to come
  std::optional<Error> failure_;
};

class JsonCodec final : public Codec {
 public:
  std::string_view content_type() const override { return "application/json"; }

  Result<std::string> encode(const FieldValue& value) const override {
    Writer writer;
    if (auto written = writer.write(value); !written) return std::move(written).error();
    return writer.take();
  }

  Result<FieldValue> decode(std::string_view bytes) const override {
    Reader reader;
    static_cast<void>(nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &reader));
    return reader.take_result();
  }
};

}  // namespace

const Codec& json_codec() noexcept {
  static const JsonCodec codec;
  return codec;
}

}  // namespace postrider
