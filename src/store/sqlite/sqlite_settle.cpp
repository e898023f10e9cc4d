#include "store/sqlite/sqlite_settle.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/timestamp_text.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// The times that follow from a delivery's status.
struct Stamps {
  std::optional<std::string> available_at;
  std::optional<std::string> dispatched_at;
  std::optional<std::string> delivery_timeout_at;
  std::optional<std::string> finished_at;
};

Stamps stamps(DeliveryStatus status, milliseconds available_in, milliseconds timeout,
              Timestamp now) {
  Stamps at;
  switch (status) {
    case DeliveryStatus::held:
      break;
    case DeliveryStatus::pending:
      at.available_at = timestamp_text(now + available_in);
      break;
    case DeliveryStatus::dispatched:
      at.dispatched_at = timestamp_text(now);
      at.delivery_timeout_at = timestamp_text(now + timeout);
      break;
    case DeliveryStatus::completed:
    case DeliveryStatus::failed:
    case DeliveryStatus::discarded:
    case DeliveryStatus::cancelled:
      at.finished_at = timestamp_text(now);
      break;
  }
  return at;
}

class Settling {
 public:
  Settling(SqliteConnection& connection, const SettleRequest& request, Timestamp now)
      : connection_(connection), request_(request), now_(now), now_text_(timestamp_text(now)) {}

  Result<SettleResult> run() {
    if (auto compared = compare_tokens(); !compared) return compared.error();
    if (!result_.lost.empty()) return std::move(result_);
    for (const auto step :
         {&Settling::set_routed, &Settling::store_deliveries, &Settling::update_deliveries,
          &Settling::release_held, &Settling::stop_routes, &Settling::store_mark,
          &Settling::set_suspicions}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    return std::move(result_);
  }

 private:
  /// A released lease is nobody's, although its token stays in the row.
  Result<void> compare_tokens() {
    std::unordered_set<std::int64_t> held_tokens;
    auto rows = connection_.query(statements::partitions_list);
    while (rows.next()) {
      if (!rows.is_null(1)) held_tokens.insert(rows.integer(2));
    }
    for (const auto& lease : request_.leases) {
      const bool ours =
          lease.partition == only_partition && held_tokens.contains(lease.token.value());
      if (!ours) result_.lost.push_back(lease.partition);
    }
    return rows.result();
  }

  Result<void> set_routed() {
    for (const auto& routed : request_.routed) {
      auto marking = connection_.query(statements::events_set_routed);
      marking.bind(":seq", routed.seq.value()).bind(":now", now_text_);
      if (auto done = marking.run(); !done) return done;
      if (connection_.changes() == 0) {
        result_.stale_events.push_back(routed.seq);
        stale_.insert(routed.seq.value());
      }
    }
    return {};
  }

  Result<void> store_deliveries() {
    for (const auto& delivery : request_.deliveries) {
      if (stale_.contains(delivery.event_seq.value())) continue;
      if (auto done = delivery.job ? insert_job(delivery) : insert(delivery); !done) return done;
      if (connection_.changes() > 0 || delivery.job) continue;
      // Left alone: by an earlier run of this very request, or because somebody else has stored
      // this event's delivery.
      auto ours = exists(delivery.id);
      if (!ours) return ours.error();
      if (!*ours) result_.stale_deliveries.push_back(delivery.id);
    }
    return {};
  }

  Result<void> insert(const NewDelivery& delivery) {
    const auto at = stamps(delivery.status, delivery.available_in, delivery.timeout, now_);
    auto row = connection_.query(statements::deliveries_insert);
    bind_new(row, delivery, at);
    row.bind_if(":ordering_key", delivery.ordering_key);
    bind_result(row, delivery, at);
    return row.run();
  }

  Result<void> insert_job(const NewDelivery& delivery) {
    const auto& policy = delivery.job->policy;
    const auto at = stamps(delivery.status, delivery.available_in, delivery.timeout, now_);
    auto row = connection_.query(statements::deliveries_insert_jobs);
    bind_new(row, delivery, at);
    row.bind(":status", to_string(delivery.status))
        .bind_if(":finished_at", at.finished_at)
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
    row.bind_if(":hooks", encode_hooks(policy.hooks));
    return row.run();
  }

  /// What a publish delivery and a job have in common.
  void bind_new(SqliteQuery& row, const NewDelivery& delivery, const Stamps& at) const {
    row.bind(":id", id_text(delivery.id.value()))
        .bind(":event_seq", delivery.event_seq.value())
        .bind(":event_id", id_text(delivery.event_id.value()))
        .bind(":route", delivery.route)
        .bind(":retry_delays", encode_durations(delivery.retry_delays))
        .bind(":timeout_ms", delivery.timeout.count())
        .bind(":on_failed", to_string(delivery.on_failed))
        .bind(":available_at", at.available_at.value_or(now_text_));
  }

  Result<bool> exists(DeliveryId id) {
    auto row = connection_.query(statements::deliveries_exists);
    row.bind(":id", id_text(id.value()));
    const bool found = row.next();
    if (auto read = row.result(); !read) return read.error();
    return found;
  }

  Result<void> update_deliveries() {
    for (const auto& update : request_.updates) {
      const auto timeout = timeout_of(update);
      if (!timeout) return timeout.error();
      const auto at = stamps(update.status, update.available_in, *timeout, now_);
      auto row = connection_.query(statements::deliveries_update);
      row.bind(":id", id_text(update.id.value()))
          .bind(":expected_status", to_string(update.expected_status))
          .bind_if(":expected_dispatch_id", id_text(update.expected_dispatch_id))
          .bind_if(":available_at", at.available_at);
      bind_result(row, update, at);
      if (auto done = row.run(); !done) return done;
      if (connection_.changes() == 0) result_.stale_deliveries.push_back(update.id);
    }
    return {};
  }

  /// Only a dispatch needs the row's own timeout, for its deadline.
  Result<milliseconds> timeout_of(const DeliveryUpdate& update) {
    if (update.status != DeliveryStatus::dispatched) return milliseconds::zero();
    auto row = connection_.query(statements::deliveries_timeout);
    row.bind(":id", id_text(update.id.value()));
    const milliseconds timeout(row.next() ? row.integer(0) : 0);
    if (auto read = row.result(); !read) return read.error();
    return timeout;
  }

  /// What a new row and a changed one have in common.
  template <class Change>
  static void bind_result(SqliteQuery& row, const Change& change, const Stamps& at) {
    row.bind(":status", to_string(change.status))
        .bind(":attempts", std::int64_t{change.attempts})
        .bind_if(":dispatch_id", id_text(change.dispatch_id))
        .bind_if(":dispatched_at", at.dispatched_at)
        .bind_if(":delivery_timeout_at", at.delivery_timeout_at)
        .bind_if(":finished_at", at.finished_at)
        .bind(":failure_code", change.failure_code)
        .bind(":failure_detail", change.failure_detail)
        .bind(":ambiguous", std::int64_t{change.ambiguous});
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
      row.bind(":reason", "a dead letter on a route with on_failed = stop");
      row.bind(":now", now_text_);
      if (auto done = row.run(); !done) return done;
    }
    return {};
  }

  Result<void> store_mark() {
    if (!request_.mark) return {};
    for (const auto& lease : request_.leases) {
      auto row = connection_.query(statements::partitions_store_mark);
      row.bind(":partition", std::int64_t{lease.partition.value()});
      row.bind(":mark", request_.mark->text());
      if (auto done = row.run(); !done) return done;
    }
    return {};
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

  SqliteConnection& connection_;
  const SettleRequest& request_;
  Timestamp now_;
  std::string now_text_;
  std::unordered_set<std::int64_t> stale_;
  SettleResult result_;
};

}  // namespace

Result<SettleResult> apply_settle(SqliteConnection& connection, const SettleRequest& request,
                                  Timestamp now) {
  return Settling(connection, request, now).run();
}

}  // namespace postrider::store::sqlite
