#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <postrider/store/sqlite.hpp>

#include "base/assert.hpp"
#include "base/timestamp_text.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_due.hpp"
#include "store/sqlite/sqlite_keys.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store/sqlite/sqlite_schema.hpp"
#include "store/sqlite/sqlite_settle.hpp"
#include "store_sqlite_sql.hpp"
#include "values/lease_bounds.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// A mark is the seq up to which everything was read, in decimal: SQLite lets one transaction write
/// at a time, so no lower seq can appear later.
Result<std::int64_t> position_of(const ReadMark& mark) {
  const auto& text = mark.text();
  if (text.empty()) return std::int64_t{0};
  std::int64_t position = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, position);
  if (read.ec != std::errc() || read.ptr != end || position < 0) {
    return Error{ErrorCode::invalid_argument, Disposition::stop,
                 "the read mark is not one of this store. Start from a default-constructed mark.",
                 "sqlite", ""};
  }
  return position;
}

struct Positions {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

Result<Positions> positions_of(const std::vector<ReadMark>& marks) {
  Positions positions;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto position = position_of(marks[i]);
    if (!position) return position.error();
    positions.least = i == 0 ? *position : std::min(positions.least, *position);
    positions.most = std::max(positions.most, *position);
  }
  return positions;
}

bool names_only_partition(const std::vector<Partition>& partitions) {
  return std::find(partitions.begin(), partitions.end(), only_partition) != partitions.end();
}

/// The keys whose heads a batch needs to know.
class HeadKeys {
 public:
  void add(const Event& event) {
    if (event.aggregate) keys_.insert(aggregate_key(*event.aggregate));
  }
  [[nodiscard]] const std::set<std::string>& keys() const noexcept { return keys_; }

 private:
  std::set<std::string> keys_ = {std::string(global_ordering_key)};
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(SqliteOptions options)
      : connection_(std::move(options), Access::read_write), random_(system_random()) {}

  StoreTraits traits() const override { return {"sqlite", 1, true, false}; }

  Result<void> check_schema(Deadline deadline) override {
    return connection_.read(deadline, [&] { return compare_schema(connection_); });
  }

  Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) override {
    return connection_.write(deadline, [&]() -> Result<std::vector<EventId>> {
      std::vector<EventId> ids;
      ids.reserve(events.size());
      for (const auto& event : events) {
        ids.push_back(event.id ? *event.id : EventId(ids_.next()));
        if (auto written = insert(event, ids.back()); !written) return written.error();
      }
      return ids;
    });
  }

  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline deadline) override {
    if (auto checked = check(key); !checked) return checked.error();
    return connection_.write(deadline, [&] {
      const auto id = event.id ? *event.id : EventId(ids_.next());
      return insert_once(connection_, event, id, key, [&] { return insert(event, id); });
    });
  }

  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    return connection_.write(deadline, [&] { return take_lease(request); });
  }

  Result<void> release(std::span<const Lease> leases, Deadline deadline) override {
    return connection_.write(deadline, [&]() -> Result<void> {
      for (const auto& lease : leases) {
        auto row = connection_.query(statements::partitions_release);
        row.bind(":partition", std::int64_t{lease.partition.value()});
        row.bind(":token", lease.token.value());
        if (auto done = row.run(); !done) return done;
      }
      return {};
    });
  }

  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) override {
    const auto positions = positions_of(request.after);
    if (!positions) return positions.error();
    return connection_.read(deadline, [&] { return read_claim(request, *positions); });
  }

  Result<DueBatch> due(const DueRequest& request, Deadline deadline) override {
    if (!names_only_partition(request.partitions)) return DueBatch{};
    return connection_.read(deadline, [&]() -> Result<DueBatch> {
      const auto now = connection_.now(request.now);
      if (!now) return now.error();
      return read_due(connection_, request, *now);
    });
  }

  Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) override {
    if (!names_only_partition(request.partitions)) return HeldBatch{};
    return connection_.read(deadline, [&] { return read_held(request); });
  }

  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    assert_leases(request);
    return connection_.write(deadline, [&]() -> Result<SettleResult> {
      const auto now = connection_.now(request.now);
      if (!now) return now.error();
      return apply_settle(connection_, request, *now);
    });
  }

 private:
  Result<void> insert(const NewEvent& event, EventId id);
  Result<LeaseGrant> take_lease(const LeaseRequest& request);
  Result<void> renew_or_take(const LeaseRequest& request, Timestamp now, bool& gained);
  Result<LeaseGrant> read_grant(const LeaseRequest& request, Timestamp now, bool gained);
  Result<ClaimedBatch> read_claim(const ClaimRequest& request, Positions positions);
  Result<void> read_events(const ClaimRequest& request, std::int64_t after, Timestamp now,
                           ClaimedBatch& batch);
  Result<HeldBatch> read_held(const HeldRequest& request);
  Result<std::vector<OpenHead>> open_heads(const std::set<std::string>& keys);
  Result<std::vector<std::string>> names(std::string_view statement);
  static void assert_leases(const SettleRequest& request);

  SqliteConnection connection_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
};

Result<void> SqliteStore::insert(const NewEvent& event, EventId id) {
  auto row = connection_.query(statements::events_insert);
  if (auto bound = bind_event(row, event, id); !bound) return bound;
  return row.run();
}

Result<LeaseGrant> SqliteStore::take_lease(const LeaseRequest& request) {
  const auto now = connection_.now(request.now);
  if (!now) return now.error();
  bool gained = false;
  if (auto done = renew_or_take(request, *now, gained); !done) return done.error();
  return read_grant(request, *now, gained);
}

/// A lease of another owner that ran out is taken with the next token; the own one goes on.
Result<void> SqliteStore::renew_or_take(const LeaseRequest& request, Timestamp now, bool& gained) {
  const auto bind_owner = [&](SqliteQuery& row) {
    row.bind(":partition", std::int64_t{only_partition.value()}).bind(":owner", request.owner);
    row.bind(":leased_until", timestamp_text(now + request.lease_time));
  };
  auto renewal = connection_.query(statements::partitions_renew);
  bind_owner(renewal);
  if (auto renewed = renewal.run(); !renewed) return renewed;
  if (connection_.changes() > 0 || request.at_most == 0) return {};
  auto taking = connection_.query(statements::partitions_take);
  bind_owner(taking);
  taking.bind(":now", timestamp_text(now));
  taking.bind(":latest_end", timestamp_text(now + most_lease_time));
  auto taken = taking.run();
  gained = taken.ok() && connection_.changes() > 0;
  return taken;
}

Result<LeaseGrant> SqliteStore::read_grant(const LeaseRequest& request, Timestamp now,
                                           bool gained) {
  LeaseGrant grant;
  auto rows = connection_.query(statements::partitions_list);
  while (rows.next()) {
    const auto until_time = parse_timestamp(rows.text(3));
    if (rows.is_null(1) || !until_time || *until_time <= now) continue;
    const Partition partition(static_cast<std::int32_t>(rows.integer(0)));
    if (rows.text(1) == request.owner) {
      grant.leases.push_back({{partition, FencingToken(rows.integer(2))},
                              gained,
                              ReadMark(rows.text(4)),
                              rows.integer(5),
                              read_suspicion(rows)});
    } else {
      grant.foreign.push_back({partition, rows.text(1), until(*until_time, now)});
    }
  }
  if (auto read = rows.result(); !read) return read.error();
  auto paused = names(statements::routes_list);
  if (!paused) return paused.error();
  grant.paused_routes = std::move(paused).value();
  return grant;
}

Result<ClaimedBatch> SqliteStore::read_claim(const ClaimRequest& request, Positions positions) {
  const auto now = connection_.now(request.now);
  if (!now) return now.error();
  ClaimedBatch batch;
  if (names_only_partition(request.partitions)) {
    if (auto read = read_events(request, positions.least, *now, batch); !read) return read.error();
  }
  std::int64_t read_up_to = positions.most;
  if (batch.more) {
    read_up_to = batch.events.back().event->seq.value();
  } else {
    // Everything in this snapshot has been seen, so the next look need not walk over it again.
    auto last = connection_.query(statements::events_last_seq);
    if (last.next()) read_up_to = std::max(read_up_to, last.integer(0));
    if (auto read = last.result(); !read) return read.error();
  }
  batch.mark = ReadMark(std::to_string(read_up_to));

  HeadKeys keys;
  for (const auto& claimed : batch.events)
    keys.add(*claimed.event);
  auto heads = open_heads(keys.keys());
  if (!heads) return heads.error();
  batch.open_heads = std::move(heads).value();
  return batch;
}

Result<void> SqliteStore::read_events(const ClaimRequest& request, std::int64_t after,
                                      Timestamp now, ClaimedBatch& batch) {
  const std::size_t limit = std::max<std::size_t>(request.limit, 1);
  std::size_t bytes = 0;
  auto rows = connection_.query(statements::events_claim);
  rows.bind(":after", after).bind(":limit", static_cast<std::int64_t>(limit) + 1);
  while (rows.next()) {
    bytes += rows.size(event_payload_column);
    if (batch.events.size() == limit || (!batch.events.empty() && bytes > request.bytes)) {
      batch.more = true;
      break;
    }
    batch.events.push_back(read_claimed_event(rows, now));
  }
  return rows.result();
}

Result<HeldBatch> SqliteStore::read_held(const HeldRequest& request) {
  const auto now = connection_.now(request.now);
  if (!now) return now.error();
  HeldBatch batch;
  HeadKeys keys;
  auto rows = connection_.query(statements::events_held);
  rows.bind(":after", request.after.value());
  rows.bind(":limit", static_cast<std::int64_t>(request.limit));
  while (rows.next()) {
    auto claimed = read_claimed_event(rows, *now);
    keys.add(*claimed.event);
    const auto id = Uuid::parse(rows.text(event_columns));
    if (!id) claimed.malformed = "the row that holds this event has a damaged id. Repair the row.";
    batch.events.push_back({std::move(claimed), id ? DeliveryId(*id) : DeliveryId()});
  }
  if (auto read = rows.result(); !read) return read.error();
  auto heads = open_heads(keys.keys());
  if (!heads) return heads.error();
  batch.open_heads = std::move(heads).value();
  return batch;
}

/// Cost: one probe per key and route that has anything open, which is mostly none.
Result<std::vector<OpenHead>> SqliteStore::open_heads(const std::set<std::string>& keys) {
  const auto routes = names(statements::heads_routes);
  if (!routes) return routes.error();
  std::vector<OpenHead> heads;
  for (const auto& route : *routes) {
    for (const auto& key : keys) {
      auto head = connection_.query(statements::heads_next);
      head.bind(":route", route).bind(":ordering_key", key).bind(":after", std::int64_t{0});
      if (head.next()) heads.push_back({route, key});
      if (auto read = head.result(); !read) return read.error();
    }
  }
  return heads;
}

/// The first column of all rows.
Result<std::vector<std::string>> SqliteStore::names(std::string_view statement) {
  std::vector<std::string> names;
  auto rows = connection_.query(statement);
  while (rows.next())
    names.push_back(rows.text(0));
  if (auto read = rows.result(); !read) return read.error();
  return names;
}

/// Requires: every partition in the request has its lease.
void SqliteStore::assert_leases(const SettleRequest& request) {
  std::set<Partition> leased;
  for (const auto& lease : request.leases)
    leased.insert(lease.partition);
  const auto is_leased = [&](const auto& row) { return leased.contains(row.partition); };
  POSTRIDER_ASSERT(std::all_of(request.routed.begin(), request.routed.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.deliveries.begin(), request.deliveries.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.updates.begin(), request.updates.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.suspicions.begin(), request.suspicions.end(), is_leased));
}

}  // namespace
}  // namespace store::sqlite

std::unique_ptr<Store> make_sqlite_store(SqliteOptions options) {
  return std::make_unique<store::sqlite::SqliteStore>(std::move(options));
}

}  // namespace postrider
