#include "store/postgres/postgres_read_mark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace postrider::store::postgres {
namespace {

/// Takes a text apart from the left; the first thing that does not fit makes all later ones fail.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <class Number>
  Number number() {
    Number value = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto [stop, error] = std::from_chars(rest_.data(), end, value);
    if (error != std::errc()) failed_ = true;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    return value;
  }

  bool take(char expected) {
    if (failed_ || rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void require(char expected) { failed_ = !take(expected) || failed_; }

  std::string_view until(char end) {
    const auto size = std::min(rest_.find(end), rest_.size());
    const auto text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] bool whole() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

Error not_ours() {
  return {ErrorCode::invalid_argument, Disposition::stop,
          "the read mark is not one of this store. Start from a default-constructed mark.",
          "postgres", ""};
}

XidRange read_range(Reader& reader) {
  XidRange range;
  range.first = reader.number<std::uint64_t>();
  range.last = reader.take('-') ? reader.number<std::uint64_t>() : range.first;
  if (reader.take('@')) range.floor = reader.number<std::int64_t>();
  return range;
}

bool is_ascending(const std::vector<XidRange>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first > ranges[i].last) return false;
    if (i > 0 && ranges[i].first <= ranges[i - 1].last) return false;
  }
  return true;
}

bool read_in_flight(std::string_view text, ReadPosition& position) {
  Reader reader(text);
  position.floor = reader.number<std::int64_t>();
  reader.require('|');
  if (!reader.at_end()) {
    do
      position.in_flight.push_back(read_range(reader));
    while (reader.take(','));
  }
  return reader.whole() && is_ascending(position.in_flight);
}

std::string in_flight_text(const ReadPosition& position) {
  std::string text = fmt::format("{}|", position.floor);
  for (const auto& range : position.in_flight) {
    if (text.back() != '|') text += ',';
    text += std::to_string(range.first);
    if (range.last != range.first) text += fmt::format("-{}", range.last);
    if (range.floor != 0) text += fmt::format("@{}", range.floor);
  }
  return text;
}

std::string identity_text(const ServerIdentity& identity) {
  return fmt::format("{}/{}", identity.system, identity.timeline);
}

bool read_identity(std::string_view text, ReadPosition& position) {
  Reader reader(text);
  ServerIdentity identity;
  identity.system = reader.until('/');
  reader.require('/');
  identity.timeline = reader.number<std::int32_t>();
  position.identity = std::move(identity);
  return reader.whole() && !position.identity->system.empty();
}

/// Appends, joining with the range before where nothing is lost by it.
void append(std::vector<XidRange>& ranges, XidRange next) {
  if (!ranges.empty() && ranges.back().last + 1 == next.first &&
      ranges.back().floor == next.floor) {
    ranges.back().last = next.last;
  } else {
    ranges.push_back(next);
  }
}

/// What is in `a` and in `b`, with the floors of `a`. Both ascend.
std::vector<XidRange> intersection(const std::vector<XidRange>& a, const std::vector<XidRange>& b) {
  std::vector<XidRange> both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const auto first = std::max(a[i].first, b[j].first);
    const auto last = std::min(a[i].last, b[j].last);
    if (first <= last) append(both, {first, last, a[i].floor});
    (a[i].last < b[j].last ? i : j) += 1;
  }
  return both;
}

/// Everything that is not in `ranges`.
std::vector<XidRange> complement(const std::vector<XidRange>& ranges) {
  std::vector<XidRange> rest;
  std::uint64_t next = 0;
  for (const auto& range : ranges) {
    if (range.first > next) rest.push_back({next, range.first - 1, 0});
    next = range.last + 1;
  }
  rest.push_back({next, std::numeric_limits<std::uint64_t>::max() - 1, 0});
  return rest;
}

/// What is in `a` or in `b`, with the lower floor where both are.
std::vector<XidRange> united(const std::vector<XidRange>& a, const std::vector<XidRange>& b) {
  std::vector<XidRange> all = intersection(a, complement(b));
  for (const auto& range : intersection(b, complement(a)))
    all.push_back(range);
  const auto of_a = intersection(a, b);
  const auto of_b = intersection(b, a);
  // The same xids, cut up differently where their floors differ.
  for (const auto& x : of_a) {
    for (const auto& y : of_b) {
      const auto first = std::max(x.first, y.first);
      const auto last = std::min(x.last, y.last);
      if (first <= last) all.push_back({first, last, std::min(x.floor, y.floor)});
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<XidRange> joined;
  for (const auto& range : all)
    append(joined, range);
  return joined;
}

/// F of a snapshot.
std::vector<XidRange> in_flight_of(const ReadStep& step) {
  std::vector<XidRange> ranges;
  for (const auto xid : step.snapshot.in_progress)
    append(ranges, {xid, xid, 0});
  if (step.next_xid > step.snapshot.xmax) {
    append(ranges, {step.snapshot.xmax, step.next_xid - 1, 0});
  }
  return ranges;
}

/// Of transactions that are over, the rows above `seq` are still to be read.
std::vector<XidRange> raise_floors(std::vector<XidRange> ranges, std::int64_t seq) {
  for (auto& range : ranges)
    range.floor = std::max(range.floor, seq);
  return ranges;
}

bool is_of_other_system(const ReadPosition& position, const ServerIdentity& server) {
  return position.identity && position.identity->system != server.system;
}

}  // namespace

Result<MarkColumns> mark_columns(const ReadMark& mark) {
  Reader reader(mark.text());
  MarkColumns columns;
  columns.position = reader.number<std::int64_t>();
  reader.require(';');
  columns.in_flight = reader.until(';');
  reader.require(';');
  columns.server_identity = reader.until(';');
  if (!reader.whole() || columns.position < 0) return not_ours();
  return columns;
}

ReadMark mark_of(const MarkColumns& columns) {
  return ReadMark(
      fmt::format("{};{};{}", columns.position, columns.in_flight, columns.server_identity));
}

Result<ReadPosition> decode_mark(const ReadMark& mark) {
  if (mark.text().empty()) return ReadPosition{};
  const auto columns = mark_columns(mark);
  if (!columns) return columns.error();
  ReadPosition position;
  position.seq = columns->position;
  if (!read_in_flight(columns->in_flight, position) ||
      !read_identity(columns->server_identity, position)) {
    return not_ours();
  }
  return position;
}

ReadMark encode_mark(const ReadPosition& position) {
  if (!position.identity) return {};
  return mark_of({position.seq, in_flight_text(position), identity_text(*position.identity)});
}

Result<Snapshot> parse_snapshot(std::string_view text) {
  Reader reader(text);
  Snapshot snapshot;
  snapshot.xmin = reader.number<std::uint64_t>();
  reader.require(':');
  snapshot.xmax = reader.number<std::uint64_t>();
  reader.require(':');
  if (!reader.at_end()) {
    do
      snapshot.in_progress.push_back(reader.number<std::uint64_t>());
    while (reader.take(','));
  }
  if (reader.whole() && snapshot.xmin <= snapshot.xmax) return snapshot;
  return Error{ErrorCode::protocol, Disposition::retry,
               "the server's snapshot cannot be read. Check what stands between Postrider and the "
               "server.",
               "postgres", ""};
}

std::uint64_t next_xid(const Snapshot& snapshot, std::int32_t age_of_3) {
  // Only the lower half of an xid is told; H is at or above xmax and never 2^31 away from it.
  const std::uint32_t low = 3U + static_cast<std::uint32_t>(age_of_3);
  const std::uint32_t ahead = low - static_cast<std::uint32_t>(snapshot.xmax);
  return snapshot.xmax + ahead;
}

ReadPosition earlier(ReadPosition a, const ReadPosition& b) {
  a.seq = std::min(a.seq, b.seq);
  a.floor = std::min(a.floor, b.floor);
  a.in_flight = united(a.in_flight, b.in_flight);
  return a;
}

ReadPosition advance(const ReadPosition& before, const ReadStep& step,
                     const ServerIdentity& server) {
  const auto in_flight = in_flight_of(step);
  const bool foreign = is_of_other_system(before, server);
  ReadPosition after;
  after.seq = before.seq;
  after.floor = before.floor;
  if (step.late_up_to) {
    // Not done with these: of those that are over the rest, of those in progress everything.
    const auto over =
        foreign ? before.in_flight : intersection(before.in_flight, complement(in_flight));
    const auto open = foreign ? std::vector<XidRange>() : intersection(before.in_flight, in_flight);
    after.in_flight = united(raise_floors(over, *step.late_up_to), open);
    after.identity = foreign ? before.identity : server;
    return after;
  }
  after.identity = server;
  if (foreign) {
    // What was restored has been read; its xids are given out anew to rows above it.
    after.floor = before.seq;
    after.seq = step.last_seq;
    after.in_flight = in_flight;
    return after;
  }
  const bool moved = step.last_seq > before.seq || !before.identity;
  after.seq = std::max(step.last_seq, before.seq);
  // Without a new row, nobody else can add rows below the position than could before.
  after.in_flight = moved ? in_flight : intersection(before.in_flight, in_flight);
  return after;
}

ReadPosition adopt(ReadPosition position, std::int64_t last_number) {
  if (position.seq > last_number) {
    position.seq = 0;
    position.floor = 0;
  }
  return position;
}

}  // namespace postrider::store::postgres
