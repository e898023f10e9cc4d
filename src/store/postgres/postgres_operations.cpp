#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_listing.hpp"
#include "store/postgres/postgres_rows.hpp"

namespace postrider {
namespace store::postgres {
namespace {

/// Bounds the memory and the transaction of one command.
constexpr std::size_t most_rows = 100'000;

// Columns of deliveries_dead behind those of the delivery.
constexpr int dead_event_type_column = delivery_columns;
constexpr int dead_aggregate_type_column = delivery_columns + 1;
constexpr int dead_aggregate_id_column = delivery_columns + 2;

Result<void> check_limit(std::size_t limit) {
  if (limit >= 1 && limit <= most_rows) return {};
  return Error{limit == 0 ? ErrorCode::invalid_argument : ErrorCode::limit_exceeded,
               Disposition::reject, fmt::format("the limit is {}. Give 1 to {}.", limit, most_rows),
               "postgres", ""};
}

std::optional<milliseconds> age_at(const Rows& rows, int row, int column, Timestamp now) {
  if (rows.is_null(row, column)) return std::nullopt;
  const auto age = std::chrono::duration_cast<milliseconds>(now - rows.time(row, column));
  return std::max(age, milliseconds::zero());
}

EventCounts read_event_counts(const Rows& rows) {
  return {rows.integer(0, 1), rows.integer(0, 2), age_at(rows, 0, 3, rows.time(0, 0))};
}

std::vector<DeliveryCounts> read_delivery_counts(const Rows& rows) {
  std::vector<DeliveryCounts> routes;
  for (int row = 0; row < rows.size(); ++row) {
    const auto now = rows.time(row, 13);
    DeliveryCounts counts;
    counts.route = rows.text(row, 0);
    counts.held = rows.integer(row, 1);
    counts.due = rows.integer(row, 2);
    counts.delayed = rows.integer(row, 3);
    counts.dispatched = rows.integer(row, 4);
    counts.overdue = rows.integer(row, 5);
    counts.completed = rows.integer(row, 6);
    counts.failed = rows.integer(row, 7);
    counts.discarded = rows.integer(row, 8);
    counts.cancelled = rows.integer(row, 9);
    counts.retries = rows.integer(row, 10);
    counts.oldest_due_age = age_at(rows, row, 11, now);
    counts.oldest_dispatched_age = age_at(rows, row, 12, now);
    routes.push_back(std::move(counts));
  }
  return routes;
}

std::vector<PartitionState> read_partitions(const Rows& rows) {
  std::vector<PartitionState> partitions;
  for (int row = 0; row < rows.size(); ++row) {
    PartitionState state;
    state.partition = Partition(rows.small_integer(row, 1));
    const auto now = rows.time(row, 0);
    const auto leased_until = rows.time_if(row, 3);
    if (leased_until && *leased_until > now) {
      state.owner = rows.text(row, 2);
      state.remaining = until(*leased_until, now);
    } else {
      state.lapsed = age_at(rows, row, 3, now);
    }
    state.suspicion = read_suspicion(rows, row, 4);
    partitions.push_back(std::move(state));
  }
  return partitions;
}

Call now_call(std::string_view statement, const std::optional<Timestamp>& now) {
  Call call{statement};
  call.parameters.time_if(now);
  return call;
}

Call dead_call(const DeadFilter& filter) {
  Call call{"deliveries_dead"};
  auto& parameters = call.parameters;
  if (filter.ids.empty()) {
    parameters.null();
  } else {
    std::vector<Uuid> ids;
    for (const auto& id : filter.ids)
      ids.push_back(id.value());
    parameters.uuids(ids);
  }
  parameters.text_if(filter.route).text_if(filter.event_type).text_if(filter.failure_code);
  if (filter.ambiguous) {
    parameters.boolean(*filter.ambiguous);
  } else {
    parameters.null();
  }
  parameters.integer(static_cast<std::int64_t>(filter.limit));
  const auto after = filter.after.value_or(DeadPlace{});
  parameters.integer(after.event_seq.value()).text(after.route);
  return call;
}

std::vector<DeadLetter> read_letters(const Rows& rows) {
  std::vector<DeadLetter> letters;
  for (int row = 0; row < rows.size(); ++row) {
    DeadLetter letter;
    letter.delivery = read_delivery_columns(rows, row).delivery;
    letter.event_type = rows.text(row, dead_event_type_column);
    if (!rows.is_null(row, dead_aggregate_type_column)) {
      letter.aggregate_key = aggregate_key({std::string(rows.text(row, dead_aggregate_type_column)),
                                            std::string(rows.text(row, dead_aggregate_id_column))});
    }
    letters.push_back(std::move(letter));
  }
  return letters;
}

class PostgresOperations final : public Operations {
 public:
  explicit PostgresOperations(PostgresOptions options)
      : connection_(std::move(options), Use::people) {}

  Result<Status> status(std::optional<Timestamp> now, Deadline deadline) override {
    const std::vector<Call> calls = {now_call("events_count", now),
                                     now_call("deliveries_count", now),
                                     now_call("partitions_list", now),
                                     {"routes_list"}};
    const auto results = connection_.read(calls, deadline);
    if (!results) return results.error();
    Status status;
    status.events = read_event_counts(results->at(0));
    status.routes = read_delivery_counts(results->at(1));
    status.partitions = read_partitions(results->at(2));
    const auto& paused = results->at(3);
    for (int row = 0; row < paused.size(); ++row) {
      status.paused_routes.emplace_back(paused.text(row, 0));
    }
    return status;
  }

  Result<EventPage> events(const EventFilter& filter, std::optional<Timestamp> now,
                           Deadline deadline) override {
    return list_events(connection_, filter, now, deadline);
  }

  Result<std::optional<EventDetail>> event(const EventId& id, bool with_payload,
                                           Deadline deadline) override {
    return show_event(connection_, id, with_payload, deadline);
  }

  Result<DeliveryPage> deliveries(const DeliveryFilter& filter, std::optional<Timestamp> now,
                                  Deadline deadline) override {
    return list_deliveries(connection_, filter, now, deadline);
  }

  Result<std::vector<DeadLetter>> dead_letters(const DeadFilter& filter,
                                               Deadline deadline) override {
    if (auto checked = check_limit(filter.limit); !checked) return checked.error();
    const auto results = connection_.read(std::vector<Call>{dead_call(filter)}, deadline);
    if (!results) return results.error();
    return read_letters(results->front());
  }

  Result<std::vector<DeliveryId>> dead_retry(const DeadFilter& filter, const Operator& who,
                                             std::optional<Timestamp> now,
                                             Deadline deadline) override {
    return change_dead("dead_retry", "deliveries_retry", filter, who, now, deadline);
  }

  Result<std::vector<DeliveryId>> dead_discard(const DeadFilter& filter, const Operator& who,
                                               std::optional<Timestamp> now,
                                               Deadline deadline) override {
    return change_dead("dead_discard", "deliveries_discard", filter, who, now, deadline);
  }

  Result<bool> route_pause(const std::string& route, const Operator& who,
                           std::optional<Timestamp> now, Deadline deadline) override {
    Call call{"routes_pause"};
    call.parameters.texts(std::vector{route}).text("paused").text(who.name).text(who.reason);
    call.parameters.time_if(now);
    return change_route(std::move(call), "route_pause", route, who, now, deadline);
  }

  Result<bool> route_resume(const std::string& route, const Operator& who,
                            std::optional<Timestamp> now, Deadline deadline) override {
    Call call{"routes_resume"};
    call.parameters.text(route);
    return change_route(std::move(call), "route_resume", route, who, now, deadline);
  }

 private:
  /// Partitions are locked first, as a settle does, so that the two never wait for each other; and
  /// with them every settle, so that what is found is what is changed.
  Result<std::vector<DeliveryId>> change_dead(std::string_view action, std::string_view statement,
                                              const DeadFilter& filter, const Operator& who,
                                              std::optional<Timestamp> now, Deadline deadline) {
    if (auto checked = check_limit(filter.limit); !checked) return checked.error();
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto found =
        connection_.run(std::vector<Call>{{"partitions_lock"}, dead_call(filter)}, deadline);
    if (!found) return found.error();
    auto change = now_call(statement, now);
    change.parameters.text(who.name).text(who.reason);
    change.parameters.small_integer(connection_.options().partitions);
    change.parameters.uuids(uuids_in(found->at(1), 0));
    const auto changed = connection_.run(std::vector<Call>{std::move(change)}, deadline);
    if (!changed) return changed.error();
    std::vector<DeliveryId> ids;
    for (const auto& id : uuids_in(changed->front(), 0))
      ids.emplace_back(id);
    if (!who.filter.empty() && !ids.empty()) {
      const auto count = fmt::format("{} dead letters", ids.size());
      auto summed_up = audit({action, who.filter, count}, who, now, deadline);
      if (!summed_up) return summed_up.error();
    }
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return ids;
  }

  /// One line for the audit, beside who and why.
  struct AuditLine {
    std::string_view action;
    std::string_view object;
    std::string_view detail = {};
  };

  /// In the transaction that is open.
  Result<void> audit(const AuditLine& line, const Operator& who, std::optional<Timestamp> now,
                     Deadline deadline) {
    auto insert = now_call("audit_insert", now);
    insert.parameters.text(who.name).text(line.action).text(line.object).text(who.reason);
    insert.parameters.text(line.detail);
    const auto written = connection_.run(std::vector<Call>{std::move(insert)}, deadline);
    if (!written) return written.error();
    return {};
  }

  /// A change that changes nothing is no line in the audit.
  Result<bool> change_route(Call change, std::string_view action, const std::string& route,
                            const Operator& who, std::optional<Timestamp> now, Deadline deadline) {
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto changed = connection_.run(std::vector<Call>{std::move(change)}, deadline);
    if (!changed) return changed.error();
    const bool any = !changed->front().empty();
    if (any) {
      if (auto written = audit({action, route}, who, now, deadline); !written) {
        return written.error();
      }
    }
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return any;
  }

  PostgresConnection connection_;
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<Operations> make_postgres_operations(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresOperations>(std::move(options));
}

}  // namespace postrider
