#include "store/mariadb/mariadb_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

// Columns of events_claim before those of the event.
constexpr int part_column = 0;
constexpr int wanted_column = 1;
constexpr int length_column = 2;
constexpr int event_column = 3;

constexpr int server_part = 0;
constexpr int late_part = 1;

constexpr std::size_t least_rows = 256;
/// No caller asks for more; a bound for the statement.
constexpr std::size_t most_events = 1'000'000;
/// Ranges that one call may give up, a round trip each: a claim stays short.
constexpr int most_probes = 16;
/// How often the net is drawn, and how much it takes at once.
constexpr milliseconds sweep_interval{std::chrono::minutes(1)};
constexpr std::int64_t most_swept = 1000;

/// A condition that all late rows meet, and no other.
std::string missing_condition(const ReadPosition& position) {
  if (position.missing.empty()) return "FALSE";
  std::string condition = "(";
  for (const auto& missing : position.missing) {
    if (condition.size() > 1) condition += " OR ";
    fmt::format_to(std::back_inserter(condition), "e.seq BETWEEN {} AND {}", missing.first,
                   missing.last);
  }
  return condition += ')';
}

}  // namespace

Result<std::vector<OpenHead>> list_heads(MariadbConnection& connection, const HeadKeys& keys) {
  std::vector<OpenHead> heads;
  {
    auto any = connection.query(statements::heads_exist);
    const bool exist = any.next() && any.integer(0) != 0;
    if (auto read = any.result(); !read) return read.error();
    if (!exist) return heads;
  }
  auto rows = connection.query(statements::heads_list);
  rows.bind_list(":keys", std::vector<std::string>(keys.keys().begin(), keys.keys().end()));
  while (rows.next())
    heads.push_back({rows.text(0), rows.text(1)});
  if (auto read = rows.result(); !read) return read.error();
  std::sort(heads.begin(), heads.end());
  return heads;
}

ClaimReader::ClaimReader(MariadbConnection& connection, const ClaimRequest& request, Sweep& sweep)
    : connection_(connection),
      request_(request),
      sweep_(sweep),
      limit_(std::clamp<std::size_t>(request.limit, 1, most_events)),
      partitions_(numbers_of(request.partitions)) {}

Result<ClaimedBatch> ClaimReader::read(Deadline deadline) {
  if (auto taken = take_marks(); !taken) return taken.error();
  for (auto last = Look::again; last == Look::again;) {
    const auto look = this->look();
    if (!look) return look.error();
    last = *look;
    batch_.more = last != Look::exhausted;
    // What was read so far is good; whether there is more, the next call finds out.
    if (!batch_.events.empty() && deadline.passed()) break;
  }
  if (auto fetched = fetch_large(); !fetched) return fetched.error();
  if (auto done = give_up_missing(); !done) return done.error();
  if (auto done = sweep_settled(); !done) return done.error();
  forget_beyond_bound(position_);
  batch_.mark = encode_mark(position_);
  HeadKeys keys;
  for (const auto& claimed : batch_.events)
    keys.add(*claimed.event);
  auto heads = list_heads(connection_, keys);
  if (!heads) return heads.error();
  batch_.open_heads = std::move(heads).value();
  return std::move(batch_);
}

Result<void> ClaimReader::take_marks() {
  bool first = true;
  for (const auto& mark : request_.after) {
    auto position = decode_mark(mark);
    if (!position) return position.error();
    position_ = first ? std::move(position).value() : earlier(position_, *position);
    first = false;
  }
  return {};
}

/// One more than fits tells whether there is more. Once rows of others have filled a look, the next
/// one is not smaller than is worth a round trip.
std::int64_t ClaimReader::row_limit() const {
  const auto fits = limit_ - batch_.events.size() + 1;
  return static_cast<std::int64_t>(looks_ == 0 ? fits : std::max(fits, least_rows));
}

std::int64_t ClaimReader::now_ms() const {
  return std::chrono::duration_cast<milliseconds>(now_.time_since_epoch()).count();
}

MariadbQuery ClaimReader::claim_query() {
  const auto left = request_.bytes - std::min(request_.bytes, bytes_);
  const auto share = static_cast<std::int64_t>(left) / row_limit();
  auto rows = connection_.query(statements::events_claim);
  rows.bind(":share", share).bind(":limit", row_limit()).bind(":position", position_.seq);
  rows.bind_list(":partitions", partitions_);
  rows.bind(":partition_count", std::int64_t{connection_.options().partitions});
  rows.bind_sql(":missing", missing_condition(position_));
  bind_time_if(rows, ":now", request_.now);
  return rows;
}

/// Late rows come before new ones, and their numbers are lower: an aggregate's rows stay in order.
Result<ClaimReader::Look> ClaimReader::look() {
  const auto most = row_limit();
  auto rows = claim_query();
  ++looks_;
  std::int64_t late = 0;
  std::int64_t fresh = 0;
  bool full = false;
  while (!full && rows.next()) {
    const auto part = rows.integer(part_column);
    const auto seq = rows.integer(event_column);
    if (part == server_part) {
      now_ = rows.time(event_column + event_created_column).value_or(Timestamp());
      if (position_.seq < seq) continue;
      // The position is ahead of all numbers that were ever drawn: it is of another server, or of
      // what was here before a backup was restored. Everything unrouted is read again.
      position_ = {};
      return Look::again;
    }
    // No row behind one that was left may be taken: it could be of the same aggregate.
    full = rows.integer(wanted_column) != 0 && !take(rows);
    if (full) break;
    ++(part == late_part ? late : fresh);
    if (part == late_part) {
      take_found(position_, seq);
    } else {
      go_on_to(position_, seq, now_ms());
    }
  }
  if (auto read = rows.result(); !read) return read.error();
  if (full) return Look::filled;
  return late < most && fresh < most ? Look::exhausted : Look::again;
}

bool ClaimReader::take(const MariadbQuery& row) {
  const auto length = static_cast<std::size_t>(row.integer(length_column));
  const std::size_t left = request_.bytes - std::min(request_.bytes, bytes_);
  if (batch_.events.size() == limit_ || (!batch_.events.empty() && length > left)) return false;
  if (row.is_null(event_column + event_payload_column) && length > 0) {
    large_.push_back(row.integer(event_column));
  }
  bytes_ += length;
  batch_.events.push_back(
      claimed_event(read_event_columns(row, event_column), now_, connection_.options().partitions));
  return true;
}

/// Rows of events never change, so they are the same in a later snapshot; one that is not there any
/// more was purged, and so settled by somebody else.
Result<void> ClaimReader::fetch_large() {
  if (large_.empty()) return {};
  auto rows = connection_.query(statements::events_get);
  rows.bind_list(":seqs", large_);
  std::map<std::int64_t, ClaimedEvent> whole;
  while (rows.next()) {
    whole.emplace(rows.integer(0), claimed_event(read_event_columns(rows, 0), now_,
                                                 connection_.options().partitions));
  }
  if (auto read = rows.result(); !read) return read.error();
  for (auto& claimed : batch_.events) {
    const auto found = whole.find(claimed.event->seq.value());
    if (found != whole.end()) claimed = std::move(found->second);
  }
  std::erase_if(batch_.events, [&](const ClaimedEvent& claimed) {
    const auto seq = claimed.event->seq.value();
    return !whole.contains(seq) && std::find(large_.begin(), large_.end(), seq) != large_.end();
  });
  return {};
}

Result<void> ClaimReader::give_up_missing() {
  const auto patience = patience_for(position_).count();
  int probes = 0;
  for (auto range = position_.missing.begin(); range != position_.missing.end();) {
    const bool old = now_ms() - range->since_ms >= patience;
    if (!old || probes == most_probes) {
      ++range;
      continue;
    }
    ++probes;
    const auto given_up = can_be_given_up(*range);
    if (!given_up) return given_up.error();
    range = *given_up ? position_.missing.erase(range) : range + 1;
  }
  return {};
}

Result<void> ClaimReader::sweep_settled() {
  if (!sweep_.last) sweep_.last = now_;
  if (now_ - *sweep_.last < sweep_interval || partitions_.empty()) return {};
  sweep_.last = now_;
  const auto settled = settled_position();
  if (!settled) return settled.error();
  auto rows = connection_.query(statements::events_unrouted_below);
  rows.bind(":last", std::min(*settled, position_.seq)).bind(":limit", most_swept);
  rows.bind_list(":partitions", partitions_);
  rows.bind(":partition_count", std::int64_t{connection_.options().partitions});
  const auto unrouted = integers_of(rows);
  if (!unrouted) return unrouted.error();
  if (unrouted->empty()) sweep_.found.clear();
  for (const auto seq : *unrouted) {
    if (sweep_.found.insert(seq).second) miss_again(position_, seq, now_ms());
  }
  return {};
}

/// The lowest of what these partitions have settled whole; 0 when one has stored nothing yet.
Result<std::int64_t> ClaimReader::settled_position() {
  std::optional<std::int64_t> lowest;
  auto rows = connection_.query(statements::partitions_list);
  while (rows.next()) {
    if (std::find(partitions_.begin(), partitions_.end(), rows.integer(0)) == partitions_.end()) {
      continue;
    }
    const auto stored = decode_mark(ReadMark(rows.text(4)));
    if (!stored) return stored.error();
    lowest = std::min(lowest.value_or(stored->seq), stored->seq);
  }
  if (auto read = rows.result(); !read) return read.error();
  return lowest.value_or(0);
}

/// Not while a row is there, which the next look reads, or while somebody holds a lock on one.
Result<bool> ClaimReader::can_be_given_up(const Missing& missing) {
  auto rows = connection_.query(statements::events_probe);
  rows.bind(":first", missing.first).bind(":last", missing.last);
  const bool found = rows.next();
  if (auto read = rows.result(); !read) {
    if (read.error().code == ErrorCode::busy) return false;
    return read.error();
  }
  return !found;
}

}  // namespace postrider::store::mariadb
