#include "store/mariadb/mariadb_due.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/mariadb/mariadb_claim.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

constexpr int due_length_column = delivery_columns;
/// No caller asks for more; a bound for the statement.
constexpr std::size_t most_due = 1'000'000;

class DueReader {
 public:
  DueReader(MariadbConnection& connection, const DueRequest& request, Timestamp now)
      : connection_(connection),
        request_(request),
        now_(now),
        limit_(std::clamp<std::size_t>(request.limit, 1, most_due)),
        partitions_(numbers_of(request.partitions)) {}

  Result<DueBatch> read() {
    for (const auto step : {&DueReader::find_due, &DueReader::read_events, &DueReader::find_next}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    // What did not fit is due already.
    if (batch_.more) batch_.next_in = milliseconds::zero();
    return std::move(batch_);
  }

 private:
  MariadbQuery query(std::string_view statement) {
    auto rows = connection_.query(statement);
    rows.bind(":now", now_).bind_list(":routes", request_.routes);
    rows.bind_list(":partitions", partitions_);
    rows.bind(":partition_count", std::int64_t{connection_.options().partitions});
    return rows;
  }

  /// A prefix in the order of events keeps every run unbroken.
  Result<void> find_due() {
    auto rows = query(statements::deliveries_due);
    rows.bind(":limit", static_cast<std::int64_t>(limit_) + 1);
    std::size_t bytes = 0;
    while (!batch_.more && rows.next()) {
      bytes += static_cast<std::size_t>(rows.integer(due_length_column));
      const bool full = batch_.deliveries.size() == limit_ ||
                        (!batch_.deliveries.empty() && bytes > request_.bytes);
      batch_.more = full;
      if (full) break;
      auto read = read_delivery_columns(rows);
      DueDelivery due;
      due.overdue = read.delivery.status == DeliveryStatus::dispatched;
      due.delivery = std::move(read.delivery);
      due.malformed = std::move(read.malformed);
      batch_.deliveries.push_back(std::move(due));
    }
    return rows.result();
  }

  Result<void> read_events() {
    if (batch_.deliveries.empty()) return {};
    std::set<std::int64_t> seqs;
    for (const auto& due : batch_.deliveries)
      seqs.insert(due.delivery.event_seq.value());
    auto rows = connection_.query(statements::events_get);
    rows.bind_list(":seqs", std::vector<std::int64_t>(seqs.begin(), seqs.end()));
    std::map<std::int64_t, SlottedEvent> events;
    while (rows.next())
      events.emplace(rows.integer(0), read_event_columns(rows, 0));
    if (auto read = rows.result(); !read) return read.error();
    // The foreign key keeps the event of an open delivery there; one that was finished and purged
    // since is nobody's business any more.
    std::erase_if(batch_.deliveries, [&](const DueDelivery& due) {
      return !events.contains(due.delivery.event_seq.value());
    });
    for (auto& due : batch_.deliveries)
      join(due, events.at(due.delivery.event_seq.value()));
    return {};
  }

  void join(DueDelivery& due, const SlottedEvent& event) const {
    due.event = event.read.event;
    due.partition = Partition(event.slot % connection_.options().partitions);
    if (!event.read.malformed.empty()) due.malformed = event.read.malformed;
  }

  Result<void> find_next() {
    auto row = query(statements::deliveries_next_due);
    if (row.next()) {
      if (const auto at = row.time(0)) batch_.next_in = until(*at, now_);
    }
    return row.result();
  }

  MariadbConnection& connection_;
  const DueRequest& request_;
  Timestamp now_;
  std::size_t limit_;
  std::vector<std::int64_t> partitions_;
  DueBatch batch_;
};

}  // namespace

Result<DueBatch> read_due(MariadbConnection& connection, const DueRequest& request) {
  const auto now = connection.now(request.now);
  if (!now) return now.error();
  return DueReader(connection, request, *now).read();
}

Result<HeldBatch> read_held(MariadbConnection& connection, const HeldRequest& request) {
  const auto now = connection.now(request.now);
  if (!now) return now.error();
  const int partitions = connection.options().partitions;
  HeldBatch batch;
  HeadKeys keys;
  {
    auto rows = connection.query(statements::events_held);
    rows.bind(":after", request.after.value());
    rows.bind(":limit", static_cast<std::int64_t>(std::min(request.limit, most_due)));
    rows.bind_list(":partitions", numbers_of(request.partitions));
    rows.bind(":partition_count", std::int64_t{partitions});
    while (rows.next()) {
      auto claimed = claimed_event(read_event_columns(rows, 0), *now, partitions);
      keys.add(*claimed.event);
      const auto id = Uuid::parse(rows.text(event_columns));
      if (!id)
        claimed.malformed = "the row that holds this event has a damaged id. Repair the row.";
      batch.events.push_back({std::move(claimed), id ? DeliveryId(*id) : DeliveryId()});
    }
    if (auto read = rows.result(); !read) return read.error();
  }
  auto heads = list_heads(connection, keys);
  if (!heads) return heads.error();
  batch.open_heads = std::move(heads).value();
  return batch;
}

}  // namespace postrider::store::mariadb
