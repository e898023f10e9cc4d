// Read by events of the parser, as a document would let repeated members pass.

#include "runner/exec/result_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utf8.hpp"

namespace postrider::runner {
namespace {

using Members = std::map<std::string, std::string, std::less<>>;

Error bad_line(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "result", ""};
}

// nlohmann's interface of a SAX parser; a function that returns false ends the parse.
class LineReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return wrong_type(); }
  bool boolean(bool) { return wrong_type(); }
  bool number_integer(number_integer_t) { return wrong_type(); }
  bool number_unsigned(number_unsigned_t) { return wrong_type(); }
  bool number_float(number_float_t, const string_t&) { return wrong_type(); }
  bool binary(binary_t&) { return wrong_type(); }
  bool start_array(std::size_t) { return wrong_type(); }
  bool end_array() { return true; }
  bool start_object(std::size_t) { return inside_ ? wrong_type() : (inside_ = true); }
  bool end_object() { return true; }

  bool key(string_t& name) {
    constexpr std::array known{"outcome", "code", "detail", "delay"};
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return fail("A member is unknown; write outcome, code, detail and delay only.");
    }
    member_ = name;
    return members_.count(name) == 0 || fail(name + " is given twice; remove one.");
  }
  bool string(string_t& text) {
    if (!inside_) return wrong_type();
    members_[member_] = std::move(text);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail(fmt::format("It is no JSON at byte {}; write one object on one line.", position));
  }

  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] const Members& members() const { return members_; }

 private:
  bool wrong_type() {
    return fail(inside_ ? member_ + " is no text; give a text." : "It is no object; write one.");
  }
  bool fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  bool inside_ = false;
  std::string member_;
  Members members_;
  std::string fault_;
};

// "500ms", "30s", "2m", "1h", "7d".
std::optional<milliseconds> parse_delay(std::string_view text) {
  struct Unit {
    std::string_view name;
    milliseconds length;
  };
  constexpr std::array units{Unit{"ms", milliseconds(1)}, Unit{"s", std::chrono::seconds(1)},
                             Unit{"m", std::chrono::minutes(1)}, Unit{"h", std::chrono::hours(1)},
                             Unit{"d", std::chrono::hours(24)}};
  std::int64_t count = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.name == name; });
  if (fault != std::errc() || unit == units.end()) return std::nullopt;
  if (count < 1 || count > JobOutcome::most_delay / unit->length) return std::nullopt;
  return count * unit->length;
}

// A code is a word that dashboards and alerts compare, so it is refused and not cleaned.
bool is_code(std::string_view text) {
  return !text.empty() && text.size() <= JobOutcome::code_bytes &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

class Words {
 public:
  explicit Words(const Members& members) : members_(members) {}

  [[nodiscard]] std::string_view of(std::string_view member) const {
    const auto found = members_.find(member);
    return found == members_.end() ? std::string_view() : found->second;
  }
  [[nodiscard]] bool has(std::string_view member) const { return members_.count(member) != 0; }
  [[nodiscard]] bool has_any(std::initializer_list<std::string_view> members) const {
    return std::any_of(members.begin(), members.end(), [&](auto each) { return has(each); });
  }

 private:
  const Members& members_;
};

Result<JobOutcome> failure_of(const Words& words) {
  const auto code = words.has("code") ? words.of("code") : job_code::handler_error;
  if (!is_code(code)) {
    return bad_line("code is no word; write 1 to 64 of a-z, 0-9 and '_'.");
  }
  auto outcome = words.of("outcome") == "retry" ? JobOutcome::retry(code, words.of("detail"))
                                                : JobOutcome::fail(code, words.of("detail"));
  if (!words.has("delay")) return outcome;
  if (outcome.kind == JobOutcome::Kind::fail) {
    return bad_line("fail has no delay; write retry, or remove it.");
  }
  outcome.delay = parse_delay(words.of("delay"));
  if (!outcome.delay) return bad_line("delay is no time up to 30 days; write \"30s\".");
  return outcome;
}

Result<JobOutcome> outcome_of(const Words& words) {
  const auto outcome = words.of("outcome");
  if (outcome == "retry" || outcome == "fail") return failure_of(words);
  if (outcome == "snooze") {
    const auto delay = parse_delay(words.of("delay"));
    if (words.has_any({"code", "detail"}) || !delay) {
      return bad_line("snooze needs a delay up to 30 days, as \"30s\", and nothing else.");
    }
    return JobOutcome::snooze(*delay);
  }
  if (outcome != "done" && outcome != "cancelled") {
    return bad_line("outcome is unknown; write done, retry, fail, snooze or cancelled.");
  }
  if (words.has_any({"code", "detail", "delay"})) {
    return bad_line(fmt::format("{} has no other members; remove them.", outcome));
  }
  return outcome == "done" ? JobOutcome::done() : JobOutcome::cancelled();
}

}  // namespace

Result<JobOutcome> parse_result_line(std::string_view line) {
  if (line.size() > most_result_line_bytes) return bad_line("It is too long; 16 KiB are read.");
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.find('\n') != std::string_view::npos) {
    return bad_line("There are several lines; write one.");
  }
  LineReader reader;
  // Bytes that are no UTF-8 would be no JSON, and the code beside them would be lost.
  nlohmann::json::sax_parse(clean_text(line, line.size()), &reader);
  if (!reader.fault().empty()) return bad_line(reader.fault());
  return outcome_of(Words(reader.members()));
}

}  // namespace postrider::runner
