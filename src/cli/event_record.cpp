// Read by events of the parser and not by way of a document: a document would let repeated members
// pass, and one of 500,000 nested brackets would be built before anybody looked at it.

#include "cli/event_record.hpp"

#include <charconv>
#include <set>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/time_text.hpp"

namespace postrider::cli {
namespace {

Error refused(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "record", ""};
}

const std::set<std::string, std::less<>> text_members = {
    "id",           "seq",        "aggregate_type", "aggregate_id", "aggregate_version", "type",
    "content_type", "created_at", "available_at",   "payload",      "payload_base64"};

// nlohmann's interface of a SAX parser; a function that returns false ends the parse.
class RecordReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() {
    if (depth_ == 1 && (member_ == "aggregate_type" || member_ == "aggregate_id")) return true;
    return fail(where() + " is null. Give a text, or leave it out.");
  }
  bool boolean(bool) { return wrong_type("true or false"); }
  bool number_integer(number_integer_t number) { return whole_number(std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) { return whole_number(std::to_string(number)); }
  bool number_float(number_float_t, const string_t&) { return wrong_type("a number"); }
  bool binary(binary_t&) { return wrong_type("binary"); }
  bool start_array(std::size_t) { return wrong_type("a list"); }
  bool end_array() { return true; }

  bool start_object(std::size_t) {
    if (depth_ == 1 && member_ != "headers") return wrong_type("an object");
    if (depth_ == 2) return wrong_type("an object");
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }

  bool key(string_t& name) {
    if (depth_ == 2) {
      header_ = name;
      if (headers_.count(name) != 0) return fail("a header is given twice. Remove one.");
      return true;
    }
    member_ = name;
    if (name != "headers" && text_members.count(name) == 0) {
      return fail("a member is unknown. docs/brokers/file.md lists those that are known.");
    }
    if (!seen_.insert(name).second) return fail(name + " is given twice. Remove one.");
    return true;
  }

  bool string(string_t& text) {
    if (depth_ == 2) {
      headers_[header_] = std::move(text);
      return true;
    }
    if (member_ == "headers" || depth_ == 0) return wrong_type("a text");
    texts_[member_] = std::move(text);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail(
        fmt::format("it is no JSON at byte {}. Write one object in UTF-8 per line.", position));
  }

  Result<NewEvent> event() {
    if (!fault_.empty()) return refused(fault_);
    NewEvent event;
    if (auto read = read_id(event); !read) return read.error();
    if (auto read = read_aggregate(event); !read) return read.error();
    if (auto read = read_version(event); !read) return read.error();
    if (auto read = read_available_at(event); !read) return read.error();
    if (auto read = read_payload(event); !read) return read.error();
    const auto* type = text("type");
    if (type == nullptr) return refused("type is missing. Give the event's type.");
    event.type = *type;
    if (const auto* content_type = text("content_type")) event.content_type = *content_type;
    event.headers = std::move(headers_);
    return event;
  }

 private:
  Result<void> read_id(NewEvent& event) const {
    const auto* id = text("id");
    if (id == nullptr) return {};
    const auto uuid = Uuid::parse(*id);
    if (!uuid) return refused("id is no UUID. Give one, or leave it out for a new one.");
    event.id = EventId(*uuid);
    return {};
  }

  Result<void> read_aggregate(NewEvent& event) const {
    const auto* type = text("aggregate_type");
    const auto* id = text("aggregate_id");
    if ((type == nullptr) != (id == nullptr)) {
      return refused("only one of aggregate_type and aggregate_id is given. Give both or neither.");
    }
    if (type != nullptr) event.aggregate = Aggregate{*type, *id};
    return {};
  }

  Result<void> read_version(NewEvent& event) const {
    const auto* version = text("aggregate_version");
    if (version == nullptr) return {};
    std::int64_t number = 0;
    const auto* const end = version->data() + version->size();
    const auto [rest, fault] = std::from_chars(version->data(), end, number);
    if (fault != std::errc() || rest != end) {
      return refused("aggregate_version is no whole number of 64 bits. Give one, or leave it out.");
    }
    event.aggregate_version = number;
    return {};
  }

  Result<void> read_available_at(NewEvent& event) const {
    const auto* time = text("available_at");
    if (time == nullptr) return {};
    event.available_at = config::parse_time(*time);
    if (event.available_at) return {};
    return refused("available_at is no time. Write 2026-12-01T08:00:00Z, or leave it out.");
  }

  Result<void> read_payload(NewEvent& event) const {
    const auto* plain = text("payload");
    const auto* encoded = text("payload_base64");
    if ((plain == nullptr) == (encoded == nullptr)) {
      return refused("either payload or payload_base64 must be given, and not both.");
    }
    if (plain != nullptr) {
      event.payload = *plain;
      return {};
    }
    auto decoded = decode_base64(*encoded);
    if (!decoded) return refused("payload_base64 is no base64 with padding. Encode it anew.");
    event.payload = std::move(decoded).value();
    return {};
  }

  const std::string* text(std::string_view name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? nullptr : &found->second;
  }

  // A version may stand as a number too; ids and seq are texts, as many readers round 64 bits.
  bool whole_number(std::string digits) {
    if (depth_ != 1 || member_ != "aggregate_version") return wrong_type("a number");
    texts_[member_] = std::move(digits);
    return true;
  }

  // Known members only: an unknown one could be named after a secret.
  std::string where() const {
    if (depth_ == 0) return "the record";
    return depth_ == 2 ? "a header" : member_;
  }
  bool wrong_type(std::string_view kind) {
    const auto wanted = depth_ == 0 || member_ == "headers" ? "an object" : "a text";
    return fail(fmt::format("{} is {}. Give {}.", where(), kind, depth_ == 2 ? "a text" : wanted));
  }
  bool fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  int depth_ = 0;
  std::string member_;
  std::string header_;
  std::set<std::string> seen_;
  std::map<std::string, std::string, std::less<>> texts_;
  Headers headers_;
  std::string fault_;
};

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto padding = static_cast<std::size_t>(text.ends_with("==") ? 2 : text.ends_with('='));
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU));
  }
  // Bits that no byte takes must be zero, or two texts would mean the same bytes.
  if ((bits & ((1U << static_cast<unsigned>(count)) - 1U)) != 0) return std::nullopt;
  return bytes;
}

Result<NewEvent> parse_event_record(std::string_view line) {
  RecordReader reader;
  nlohmann::json::sax_parse(line, &reader);
  return reader.event();
}

}  // namespace postrider::cli
