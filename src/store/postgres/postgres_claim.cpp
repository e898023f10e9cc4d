#include "store/postgres/postgres_claim.hpp"

#include <algorithm>
#include <utility>

#include "store/postgres/postgres_rows.hpp"

namespace postrider::store::postgres {
namespace {

// Columns of events_claim before those of the event.
constexpr int part_column = 0;
constexpr int wanted_column = 1;
constexpr int length_column = 2;
constexpr int event_column = 3;
// In the row of the snapshot these stand in columns of an event.
constexpr int snapshot_column = event_column + 6;
constexpr int now_column = event_column + 10;

constexpr int late_part = 1;

constexpr int least_rows = 256;
/// No caller asks for more; a bound for the parameter.
constexpr std::size_t most_events = 1'000'000;

}  // namespace

HeadKeys::HeadKeys() : keys_{std::string(global_ordering_key)} {}

void HeadKeys::add(const Event& event) {
  if (event.aggregate) keys_.insert(aggregate_key(*event.aggregate));
}

Result<std::vector<OpenHead>> list_heads(PostgresConnection& connection, const HeadKeys& keys,
                                         Deadline deadline) {
  Call call{"heads_list"};
  call.parameters.texts(std::vector<std::string>(keys.keys().begin(), keys.keys().end()));
  const auto results = connection.read(std::vector{std::move(call)}, deadline);
  if (!results) return results.error();
  const auto& rows = results->front();
  std::vector<OpenHead> heads;
  for (int row = 0; row < rows.size(); ++row) {
    heads.push_back({std::string(rows.text(row, 0)), std::string(rows.text(row, 1))});
  }
  return heads;
}

ClaimReader::ClaimReader(PostgresConnection& connection, const ClaimRequest& request, bool& weighed)
    : connection_(connection),
      request_(request),
      weighed_(weighed),
      limit_(std::clamp<std::size_t>(request.limit, 1, most_events)),
      partition_bits_(partition_bits(request.partitions, connection.options().partitions)) {}

Result<ClaimedBatch> ClaimReader::read(Deadline deadline) {
  if (auto taken = take_marks(deadline); !taken) return taken.error();
  for (auto last = Look::again; last == Look::again;) {
    const auto look = this->look(deadline);
    if (!look) return look.error();
    last = *look;
    batch_.more = last != Look::exhausted;
    // What was read so far is good; whether there is more, the next call finds out.
    const bool full = batch_.events.size() == limit_ && looks_ > 1;
    if (full || (!batch_.events.empty() && deadline.passed())) break;
  }
  weighed_ = met_large_;
  // Rows of an aggregate come in order in each look, and its late ones before its new ones.
  const auto earlier_seq = [](const auto& a, const auto& b) { return a.event->seq < b.event->seq; };
  if (!std::is_sorted(batch_.events.begin(), batch_.events.end(), earlier_seq)) {
    std::stable_sort(batch_.events.begin(), batch_.events.end(), earlier_seq);
  }
  batch_.mark = encode_mark(position_);
  if (heads_exist_) {
    HeadKeys keys;
    for (const auto& claimed : batch_.events)
      keys.add(*claimed.event);
    auto heads = list_heads(connection_, keys, deadline);
    if (!heads) return heads.error();
    batch_.open_heads = std::move(heads).value();
  }
  return std::move(batch_);
}

Result<void> ClaimReader::take_marks(Deadline deadline) {
  std::optional<ServerIdentity> foreign;
  bool first = true;
  for (const auto& mark : request_.after) {
    auto position = decode_mark(mark);
    if (!position) return position.error();
    if (position->identity && *position->identity != connection_.identity()) {
      const auto last = connection_.read(std::vector<Call>{{"events_last_seq"}}, deadline);
      if (!last) return last.error();
      position = adopt(std::move(position).value(), last->front().integer(0, 0));
      if (position->identity->system != connection_.identity().system) {
        foreign = position->identity;
      }
    }
    furthest_ = std::max(furthest_, position->seq);
    position_ = first ? std::move(position).value() : earlier(std::move(position_), *position);
    first = false;
  }
  if (foreign) position_.identity = foreign;
  return {};
}

/// One more than fits tells whether there is more. Once rows of others have filled a look, the next
/// one is not smaller than is worth a round trip.
int ClaimReader::row_limit() const {
  const auto fits = static_cast<int>(limit_ - batch_.events.size()) + 1;
  return looks_ == 0 ? fits : std::max(fits, least_rows);
}

Call ClaimReader::claim_call() const {
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> last;
  std::vector<std::int64_t> floors;
  for (const auto& range : position_.in_flight) {
    first.push_back(range.first);
    last.push_back(range.last);
    floors.push_back(range.floor);
  }
  const auto left = request_.bytes - std::min(request_.bytes, bytes_);
  const auto share = left / static_cast<std::size_t>(row_limit());
  Call call{weighed_ ? "events_claim_weighed" : "events_claim"};
  call.parameters.integer(position_.seq).integer(position_.floor);
  call.parameters.xids(first).xids(last).integers(floors).small_integer(row_limit());
  call.parameters.bytes(partition_bits_).small_integer(connection_.options().partitions);
  call.parameters.time_if(request_.now).integer(static_cast<std::int64_t>(weighed_ ? left : share));
  return call;
}

Result<ClaimReader::Look> ClaimReader::look(Deadline deadline) {
  const std::vector<Call> calls = {claim_call(), {"session_next_xid"}, {"heads_exist"}};
  const auto results = connection_.read(calls, deadline);
  if (!results) return results.error();
  heads_exist_ = heads_exist_ || results->at(2).boolean(0, 0);
  return take_rows(results->at(0), results->at(1).small_integer(0, 0));
}

Result<ClaimReader::Look> ClaimReader::take_rows(const Rows& rows, std::int32_t age_of_3) {
  auto snapshot = parse_snapshot(rows.text(0, snapshot_column));
  if (!snapshot) return snapshot.error();
  now_ = rows.time(0, now_column);
  ReadStep step;
  step.next_xid = next_xid(*snapshot, age_of_3);
  step.snapshot = std::move(snapshot).value();
  step.last_seq = position_.seq;

  const int most = row_limit();
  ++looks_;
  const bool was_weighed = weighed_;
  std::int64_t late_up_to = 0;
  int fresh = 0;
  bool full = false;
  bool cut_late = false;
  for (int row = 1; row < rows.size() && !full; ++row) {
    const bool is_late = rows.small_integer(row, part_column) == late_part;
    const auto seq = rows.integer(row, event_column);
    full = rows.boolean(row, wanted_column) && !take(rows, row);
    if (full) {
      cut_late = is_late;
      break;
    }
    if (!is_late) ++fresh;
    (is_late ? late_up_to : step.last_seq) = seq;
  }
  // No row after a late one that was left may be taken: it could be of the same aggregate.
  if (cut_late) step.late_up_to = late_up_to;
  const bool exhausted = !full && fresh < most;
  if (exhausted) step.last_seq = std::max(step.last_seq, furthest_);
  position_ = advance(position_, step, connection_.identity());
  if (exhausted) return Look::exhausted;
  // A payload over its share: the same rows once more, by weight.
  const bool turned = full && weighed_ && !was_weighed;
  return full && !turned ? Look::filled : Look::again;
}

bool ClaimReader::take(const Rows& rows, int row) {
  const auto length = static_cast<std::size_t>(rows.small_integer(row, length_column));
  const std::size_t left = request_.bytes - std::min(request_.bytes, bytes_);
  const bool large = length > left / (limit_ + 1);
  met_large_ = met_large_ || large;
  if (batch_.events.size() == limit_ || (!batch_.events.empty() && length > left)) return false;
  constexpr int payload_column = event_column + 6;
  const bool left_out =
      length > 0 && rows.is_null(row, payload_column) && rows.is_null(row, payload_column + 1);
  if (left_out) {
    weighed_ = true;
    return false;
  }
  auto columns = read_event_columns(rows, row, event_column);
  bytes_ += length;
  batch_.events.push_back(
      claimed_event(std::move(columns), now_, connection_.options().partitions));
  return true;
}

}  // namespace postrider::store::postgres
