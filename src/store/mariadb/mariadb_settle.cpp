#include "store/mariadb/mariadb_settle.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/assert.hpp"
#include "store/common/durations_codec.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store/mariadb/mariadb_writing.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

/// The times that follow from a delivery's status.
struct Stamps {
  std::optional<Timestamp> available_at;
  std::optional<Timestamp> dispatched_at;
  std::optional<Timestamp> delivery_timeout_at;
  std::optional<Timestamp> finished_at;
};

Stamps stamps(DeliveryStatus status, milliseconds available_in, milliseconds timeout,
              Timestamp now) {
  Stamps at;
  switch (status) {
    case DeliveryStatus::held:
      break;
    case DeliveryStatus::pending:
      at.available_at = now + available_in;
      break;
    case DeliveryStatus::dispatched:
      at.dispatched_at = now;
      at.delivery_timeout_at = now + timeout;
      break;
    case DeliveryStatus::completed:
    case DeliveryStatus::failed:
    case DeliveryStatus::discarded:
    case DeliveryStatus::cancelled:
      at.finished_at = now;
      break;
  }
  return at;
}

class Settling {
 public:
  Settling(MariadbConnection& connection, const SettleRequest& request)
      : connection_(connection), request_(request) {}

  Result<SettleResult> run() {
    assert_leases();
    if (auto compared = lock_and_compare_tokens(); !compared) return compared.error();
    if (!result_.lost.empty()) return std::move(result_);
    const auto now = connection_.now(request_.now);
    if (!now) return now.error();
    now_ = *now;
    for (const auto step :
         {&Settling::lock_events, &Settling::set_routed, &Settling::store_deliveries,
          &Settling::find_stale_deliveries, &Settling::store_jobs, &Settling::update_deliveries,
          &Settling::release_held, &Settling::stop_routes, &Settling::store_mark,
          &Settling::set_suspicions}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    return std::move(result_);
  }

 private:
  /// Requires: every partition in the request has its lease.
  void assert_leases() const {
    std::set<Partition> leased;
    for (const auto& lease : request_.leases)
      leased.insert(lease.partition);
    const auto is_leased = [&](const auto& row) { return leased.contains(row.partition); };
    const auto all_leased = [&](const auto& rows) {
      return std::all_of(rows.begin(), rows.end(), is_leased);
    };
    POSTRIDER_ASSERT(all_leased(request_.routed) && all_leased(request_.deliveries) &&
                     all_leased(request_.updates) && all_leased(request_.suspicions));
  }

  [[nodiscard]] std::vector<std::int64_t> leased_partitions() const {
    std::vector<std::int64_t> numbers;
    for (const auto& lease : request_.leases)
      numbers.push_back(lease.partition.value());
    return numbers;
  }

  /// A released lease is nobody's, although its token stays in the row. The lock is what fences: a
  /// comparison alone would be true for a moment only.
  Result<void> lock_and_compare_tokens() {
    if (request_.leases.empty()) return {};
    const bool will_write = request_.mark || !request_.suspicions.empty();
    std::map<std::int64_t, std::int64_t> tokens;
    auto rows = connection_.query(statements::partitions_fence);
    rows.bind_list(":partitions", leased_partitions());
    rows.bind_sql(":lock", will_write ? "FOR UPDATE" : "LOCK IN SHARE MODE");
    while (rows.next())
      tokens.emplace(rows.integer(0), rows.integer(1));
    if (auto read = rows.result(); !read) return read;
    for (const auto& lease : request_.leases) {
      const auto held = tokens.find(lease.partition.value());
      const bool ours = held != tokens.end() && held->second == lease.token.value();
      if (!ours) result_.lost.push_back(lease.partition);
    }
    return {};
  }

  /// Of the events that are to be routed or held, those that are not routed yet.
  Result<void> lock_events() {
    std::vector<std::int64_t> seqs;
    for (const auto& routed : request_.routed)
      seqs.push_back(routed.seq.value());
    for (const auto& delivery : request_.deliveries) {
      if (delivery.status == DeliveryStatus::held) seqs.push_back(delivery.event_seq.value());
    }
    if (seqs.empty()) return {};
    std::sort(seqs.begin(), seqs.end());
    auto rows = connection_.query(statements::events_lock_unrouted);
    rows.bind_list(":seqs", seqs);
    while (rows.next())
      unrouted_.insert(rows.integer(0));
    return rows.result();
  }

  Result<void> set_routed() {
    std::vector<std::int64_t> seqs;
    for (const auto& routed : request_.routed) {
      const auto seq = routed.seq.value();
      if (unrouted_.contains(seq)) {
        seqs.push_back(seq);
      } else {
        result_.stale_events.push_back(routed.seq);
        stale_.insert(seq);
      }
    }
    if (seqs.empty()) return {};
    auto marking = connection_.query(statements::events_set_routed);
    marking.bind_list(":seqs", seqs).bind(":now", now_);
    return marking.run();
  }

  /// Not those of events that somebody else has routed; a held row only joins an unrouted event.
  [[nodiscard]] bool is_to_be_stored(const NewDelivery& delivery) const {
    const auto seq = delivery.event_seq.value();
    return !stale_.contains(seq) &&
           (delivery.status != DeliveryStatus::held || unrouted_.contains(seq));
  }

  Result<void> store_deliveries() {
    return insert_all(statements::deliveries_insert, false, [&](auto& row, const auto& delivery) {
      const auto at = stamps(delivery.status, delivery.available_in, delivery.timeout, now_);
      bind_new(row, delivery, at);
      row.bind_if(":ordering_key", delivery.ordering_key);
      bind_time_if(row, ":delivery_timeout_at", at.delivery_timeout_at);
      bind_result(row, delivery, at);
    });
  }

  Result<void> store_jobs() {
    return insert_all(statements::deliveries_insert_jobs, true,
                      [&](auto& row, const auto& delivery) { bind_job(row, delivery); });
  }

  /// `bind` gives a tuple its values.
  template <class Bind>
  Result<void> insert_all(std::string_view statement, bool jobs, Bind bind) {
    auto rows = connection_.query(statement);
    for (const auto& delivery : request_.deliveries) {
      if (delivery.job.has_value() != jobs || !is_to_be_stored(delivery)) continue;
      bind(rows, delivery);
      rows.end_tuple();
      if (rows.tuples_size() < most_tuples_bytes) continue;
      if (auto done = rows.run(); !done) return done;
      rows = connection_.query(statement);
    }
    return rows.tuples_size() == 0 ? Result<void>() : rows.run();
  }

  /// A row that is not there although it was to be stored was left alone, because somebody else has
  /// stored this event's delivery. One that an earlier run of this request has stored is there.
  Result<void> find_stale_deliveries() {
    std::vector<std::string> ids;
    for (const auto& delivery : request_.deliveries) {
      if (!delivery.job && !stale_.contains(delivery.event_seq.value())) {
        ids.push_back(id_text(delivery.id.value()));
      }
    }
    if (ids.empty()) return {};
    auto rows = connection_.query(statements::deliveries_get);
    rows.bind_list(":ids", ids);
    const auto found = texts_of(rows);
    if (!found) return found.error();
    const std::unordered_set<std::string> stored(found->begin(), found->end());
    for (const auto& delivery : request_.deliveries) {
      const bool looked_for = !delivery.job && !stale_.contains(delivery.event_seq.value());
      if (looked_for && !stored.contains(id_text(delivery.id.value()))) {
        result_.stale_deliveries.push_back(delivery.id);
      }
    }
    return {};
  }

  void bind_job(MariadbQuery& row, const NewDelivery& delivery) const {
    const auto& policy = delivery.job->policy;
    const auto at = stamps(delivery.status, delivery.available_in, delivery.timeout, now_);
    bind_new(row, delivery, at);
    bind_time_if(row, ":finished_at", at.finished_at);
    row.bind(":status", to_string(delivery.status))
        .bind(":failure_code", delivery.failure_code)
        .bind(":failure_detail", delivery.failure_detail)
        .bind(":job", policy.job)
        .bind(":queue", policy.queue)
        .bind(":transport", to_string(delivery.job->transport))
        .bind(":priority", std::int64_t{policy.priority})
        .bind(":on_worker_death", to_string(policy.on_worker_death))
        .bind(":max_deaths", std::int64_t{policy.max_deaths})
        .bind(":timeout_limit_ms", policy.timeout_limit.count());
    // An empty key is none.
    if (!policy.serial_key.empty()) {
      row.bind(":serial_key", policy.serial_key);
      row.bind(":serial_limit", std::int64_t{policy.serial_limit});
    }
    if (!policy.unique_key.empty()) row.bind(":unique_key", policy.unique_key);
  }

  /// What a publish delivery and a job have in common.
  void bind_new(MariadbQuery& row, const NewDelivery& delivery, const Stamps& at) const {
    row.bind(":id", id_text(delivery.id.value()))
        .bind(":event_seq", delivery.event_seq.value())
        .bind(":event_id", id_text(delivery.event_id.value()))
        .bind(":route", delivery.route)
        .bind(":retry_delays", encode_durations(delivery.retry_delays))
        .bind(":timeout_ms", delivery.timeout.count())
        .bind(":on_failed", to_string(delivery.on_failed))
        .bind(":available_at", at.available_at.value_or(now_));
  }

  Result<void> update_deliveries() {
    for (const auto& update : request_.updates) {
      const auto at = stamps(update.status, update.available_in, milliseconds::zero(), now_);
      auto row = connection_.query(statements::deliveries_update);
      row.bind(":id", id_text(update.id.value()))
          .bind(":expected_status", to_string(update.expected_status))
          .bind_if(":expected_dispatch_id", id_text(update.expected_dispatch_id));
      bind_time_if(row, ":available_at", at.available_at);
      bind_result(row, update, at);
      if (auto done = row.run(); !done) return done;
      if (connection_.changes() == 0) result_.stale_deliveries.push_back(update.id);
    }
    return {};
  }

  /// What a new row and a changed one have in common.
  template <class Change>
  static void bind_result(MariadbQuery& row, const Change& change, const Stamps& at) {
    row.bind(":status", to_string(change.status))
        .bind(":attempts", std::int64_t{change.attempts})
        .bind_if(":dispatch_id", id_text(change.dispatch_id))
        .bind(":failure_code", change.failure_code)
        .bind(":failure_detail", change.failure_detail)
        .bind(":ambiguous", std::int64_t{change.ambiguous});
    bind_time_if(row, ":dispatched_at", at.dispatched_at);
    bind_time_if(row, ":finished_at", at.finished_at);
  }

  Result<void> release_held() {
    for (const auto& id : request_.released) {
      auto row = connection_.query(statements::deliveries_release);
      row.bind(":id", id_text(id.value()));
      if (auto done = row.run(); !done) return done;
    }
    return {};
  }

  Result<void> stop_routes() {
    for (const auto& route : request_.stopped_routes) {
      auto row = connection_.query(statements::routes_pause);
      row.bind(":route", route).bind(":kind", "stopped").bind(":paused_by", "postrider");
      row.bind(":reason", "a dead letter on a route with on_failed = stop").bind(":now", now_);
      auto done = row.run();
      if (!done && done.error().code != ErrorCode::already_exists) return done;
    }
    return {};
  }

  Result<void> store_mark() {
    if (!request_.mark || request_.leases.empty()) return {};
    auto row = connection_.query(statements::partitions_store_mark);
    row.bind_list(":partitions", leased_partitions()).bind(":mark", request_.mark->text());
    return row.run();
  }

  Result<void> set_suspicions() {
    for (const auto& [partition, suspicion] : request_.suspicions) {
      auto row = connection_.query(statements::partitions_set_suspicion);
      row.bind(":partition", std::int64_t{partition.value()});
      row.bind(":crashes", std::int64_t{suspicion.crashes});
      if (suspicion.probe_seq) row.bind(":probe_seq", suspicion.probe_seq->value());
      if (auto done = row.run(); !done) return done;
    }
    return {};
  }

  MariadbConnection& connection_;
  const SettleRequest& request_;
  Timestamp now_;
  std::unordered_set<std::int64_t> unrouted_;
  std::unordered_set<std::int64_t> stale_;
  SettleResult result_;
};

}  // namespace

Result<SettleResult> apply_settle(MariadbConnection& connection, const SettleRequest& request) {
  return Settling(connection, request).run();
}

}  // namespace postrider::store::mariadb
