#include "store/mariadb/mariadb_lease.hpp"

#include <algorithm>
#include <utility>

#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"
#include "values/lease_bounds.hpp"

namespace postrider::store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

/// A row of partitions_list.
struct PartitionRow {
  Partition partition;
  std::optional<std::string> owner;
  FencingToken token;
  std::optional<Timestamp> leased_until;
  ReadMark mark;
  std::int64_t generation = 0;
  Suspicion suspicion;
  bool gone = false;  ///< the owner's session
};

PartitionRow read_row(const MariadbQuery& row) {
  return {Partition(static_cast<std::int32_t>(row.integer(0))),
          row.optional_text(1),
          FencingToken(row.integer(2)),
          row.time(3),
          ReadMark(row.text(4)),
          row.integer(5),
          read_suspicion(row),
          row.integer(8) != 0};
}

bool contains(const std::vector<std::int64_t>& numbers, Partition partition) {
  return std::find(numbers.begin(), numbers.end(), partition.value()) != numbers.end();
}

/// Reads without a lock who owns what, and then locks only the rows that it will change: others
/// settle and renew meanwhile. What it has read decides nothing: each statement that writes
/// compares again.
class Leasing {
 public:
  Leasing(MariadbConnection& connection, const LeaseRequest& request,
          std::optional<std::int32_t> session_lock)
      : connection_(connection), request_(request), session_lock_(session_lock) {}

  Result<LeaseGrant> run() {
    const auto now = connection_.now(request_.now);
    if (!now) return now.error();
    now_ = *now;
    for (const auto step : {&Leasing::list, &Leasing::renew, &Leasing::take, &Leasing::list}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    return grant();
  }

 private:
  Result<void> list() {
    rows_.clear();
    auto rows = connection_.query(statements::partitions_list);
    while (rows.next())
      rows_.push_back(read_row(rows));
    return rows.result();
  }

  Result<void> renew() {
    std::vector<std::int64_t> own;
    for (const auto& row : rows_) {
      if (row.owner == request_.owner) own.push_back(row.partition.value());
    }
    if (own.empty()) return {};
    auto renewal = connection_.query(statements::partitions_renew);
    renewal.bind_list(":partitions", own).bind(":owner", request_.owner);
    bind_lease(renewal);
    if (auto renewed = renewal.run(); !renewed) return renewed;
    held_ = static_cast<std::size_t>(connection_.changes());
    return {};
  }

  void bind_lease(MariadbQuery& row) const {
    row.bind(":leased_until", now_ + request_.lease_time);
    if (session_lock_) row.bind(":session_lock", std::int64_t{*session_lock_});
  }

  [[nodiscard]] bool looks_free(const PartitionRow& row) const {
    if (row.owner == request_.owner) return false;
    return row.gone || !row.leased_until || *row.leased_until <= now_ ||
           *row.leased_until > now_ + most_lease_time;
  }

  Result<void> take() {
    std::vector<std::int64_t> candidates;
    for (const auto& row : rows_) {
      if (looks_free(row)) candidates.push_back(row.partition.value());
    }
    if (candidates.empty() || held_ >= request_.at_most) return {};
    auto free = connection_.query(statements::partitions_free);
    free.bind_list(":partitions", candidates).bind(":now", now_);
    free.bind(":latest_end", now_ + most_lease_time);
    const auto wanted = std::min(request_.at_most - held_, rows_.size());
    free.bind(":limit", static_cast<std::int64_t>(wanted));
    auto found = integers_of(free);
    if (!found) return found.error();
    gained_ = std::move(found).value();
    if (gained_.empty()) return {};
    auto taking = connection_.query(statements::partitions_take);
    taking.bind_list(":partitions", gained_).bind(":owner", request_.owner);
    bind_lease(taking);
    return taking.run();
  }

  Result<LeaseGrant> grant() {
    LeaseGrant grant;
    for (auto& row : rows_) {
      if (!row.owner || !row.leased_until || *row.leased_until <= now_) continue;
      if (*row.owner == request_.owner) {
        grant.leases.push_back({{row.partition, row.token},
                                contains(gained_, row.partition),
                                std::move(row.mark),
                                row.generation,
                                row.suspicion});
      } else {
        grant.foreign.push_back({row.partition, *row.owner, until(*row.leased_until, now_)});
      }
    }
    auto routes = connection_.query(statements::routes_list);
    auto paused = texts_of(routes);
    if (!paused) return paused.error();
    grant.paused_routes = std::move(paused).value();
    return grant;
  }

  MariadbConnection& connection_;
  const LeaseRequest& request_;
  std::optional<std::int32_t> session_lock_;
  Timestamp now_;
  std::vector<PartitionRow> rows_;
  std::size_t held_ = 0;
  std::vector<std::int64_t> gained_;
};

}  // namespace

Result<LeaseGrant> take_leases(MariadbConnection& connection, const LeaseRequest& request,
                               std::optional<std::int32_t> session_lock) {
  return Leasing(connection, request, session_lock).run();
}

Result<void> release_leases(MariadbConnection& connection, std::span<const Lease> leases) {
  std::vector<Lease> in_order(leases.begin(), leases.end());
  std::sort(in_order.begin(), in_order.end(),
            [](const Lease& a, const Lease& b) { return a.partition < b.partition; });
  for (const auto& lease : in_order) {
    auto row = connection.query(statements::partitions_release);
    row.bind(":partition", std::int64_t{lease.partition.value()});
    row.bind(":token", lease.token.value());
    if (auto done = row.run(); !done) return done;
  }
  return {};
}

}  // namespace postrider::store::mariadb
