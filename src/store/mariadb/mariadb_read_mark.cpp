#include "store/mariadb/mariadb_read_mark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace postrider::store::mariadb {
namespace {

Error no_mark() {
  return {ErrorCode::invalid_argument, Disposition::stop,
          "the read mark is not one of this store. Start from a default-constructed mark.",
          "mariadb", ""};
}

/// Takes digits off `text`. Nothing when there are none or too many.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

bool take_character(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Missing> take_missing(std::string_view& text) {
  Missing missing;
  const auto first = text.empty() ? std::nullopt : take_number(text);
  if (!first) return std::nullopt;
  missing.first = missing.last = *first;
  if (take_character(text, '-')) {
    const auto last = text.empty() ? std::nullopt : take_number(text);
    if (!last || *last <= *first) return std::nullopt;
    missing.last = *last;
  }
  if (!take_character(text, '@') || text.empty()) return std::nullopt;
  const auto since = take_number(text);
  if (!since) return std::nullopt;
  missing.since_ms = *since;
  return missing;
}

/// Makes an ascending list free of overlaps; what both have is missing from the later time on.
std::vector<Missing> without_overlap(std::vector<Missing> all) {
  std::sort(all.begin(), all.end(),
            [](const Missing& a, const Missing& b) { return a.first < b.first; });
  std::vector<Missing> merged;
  for (const auto& range : all) {
    if (merged.empty() || merged.back().last < range.first) {
      merged.push_back(range);
      continue;
    }
    merged.back().last = std::max(merged.back().last, range.last);
    merged.back().since_ms = std::max(merged.back().since_ms, range.since_ms);
  }
  return merged;
}

}  // namespace

Result<ReadPosition> decode_mark(const ReadMark& mark) {
  ReadPosition position;
  std::string_view text = mark.text();
  if (text.empty()) return position;
  const auto seq = take_number(text);
  if (!seq) return no_mark();
  position.seq = *seq;
  if (text.empty()) return position;
  char separator = ';';
  while (!text.empty()) {
    if (!take_character(text, separator)) return no_mark();
    const auto missing = take_missing(text);
    const bool in_order =
        missing && (position.missing.empty() || position.missing.back().last < missing->first);
    if (!in_order || missing->last > position.seq) return no_mark();
    position.missing.push_back(*missing);
    separator = ',';
  }
  return position;
}

ReadMark encode_mark(const ReadPosition& position) {
  auto text = std::to_string(position.seq);
  char separator = ';';
  for (const auto& missing : position.missing) {
    text += separator;
    fmt::format_to(std::back_inserter(text), "{}", missing.first);
    if (missing.last > missing.first) fmt::format_to(std::back_inserter(text), "-{}", missing.last);
    fmt::format_to(std::back_inserter(text), "@{}", missing.since_ms);
    separator = ',';
  }
  return ReadMark(std::move(text));
}

ReadPosition earlier(const ReadPosition& a, const ReadPosition& b) {
  ReadPosition both;
  both.seq = std::min(a.seq, b.seq);
  std::vector<Missing> all;
  for (const auto* position : {&a, &b}) {
    for (auto range : position->missing) {
      range.last = std::min(range.last, both.seq);
      if (range.first <= range.last) all.push_back(range);
    }
  }
  both.missing = without_overlap(std::move(all));
  return both;
}

void go_on_to(ReadPosition& position, std::int64_t seq, std::int64_t now_ms) {
  if (seq > position.seq + 1) position.missing.push_back({position.seq + 1, seq - 1, now_ms});
  position.seq = std::max(position.seq, seq);
}

void take_found(ReadPosition& position, std::int64_t seq) {
  auto& missing = position.missing;
  const auto range = std::find_if(missing.begin(), missing.end(), [&](const Missing& each) {
    return each.first <= seq && seq <= each.last;
  });
  if (range == missing.end()) return;
  const Missing before{range->first, seq - 1, range->since_ms};
  const Missing after{seq + 1, range->last, range->since_ms};
  auto next = missing.erase(range);
  if (after.first <= after.last) next = missing.insert(next, after);
  if (before.first <= before.last) missing.insert(next, before);
}

void miss_again(ReadPosition& position, std::int64_t seq, std::int64_t now_ms) {
  take_found(position, seq);
  position.missing.push_back({seq, seq, now_ms});
  position.missing = without_overlap(std::move(position.missing));
}

milliseconds patience_for(const ReadPosition& position) {
  return position.missing.size() > crowded ? crowded_gap_grace : gap_grace;
}

void forget_beyond_bound(ReadPosition& position) {
  auto& missing = position.missing;
  if (missing.size() <= most_ranges) return;
  missing.erase(missing.begin(), missing.end() - static_cast<std::ptrdiff_t>(most_ranges));
}

}  // namespace postrider::store::mariadb
