#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <postrider/store/mariadb.hpp>

#include "store/mariadb/mariadb_connection.hpp"
#include "store/mariadb/mariadb_listing.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider {
namespace store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

/// Bounds the memory and the transaction of one command.
constexpr std::size_t most_rows = 100'000;

Result<void> check_limit(std::size_t limit) {
  if (limit >= 1 && limit <= most_rows) return {};
  return Error{limit == 0 ? ErrorCode::invalid_argument : ErrorCode::limit_exceeded,
               Disposition::reject, fmt::format("the limit is {}. Give 1 to {}.", limit, most_rows),
               "mariadb", ""};
}

std::optional<milliseconds> age_at(const MariadbQuery& row, int column, Timestamp now) {
  if (row.is_null(column)) return std::nullopt;
  const auto since = row.time(column);
  if (!since) return std::nullopt;
  return std::max(std::chrono::duration_cast<milliseconds>(now - *since), milliseconds::zero());
}

std::vector<std::string> id_list(const std::vector<DeliveryId>& ids) {
  std::vector<std::string> list;
  for (const auto& id : ids)
    list.push_back(id_text(id.value()));
  return list;
}

DeliveryCounts read_counts(const MariadbQuery& row, Timestamp now) {
  DeliveryCounts counts;
  counts.route = row.text(0);
  counts.held = row.integer(1);
  counts.due = row.integer(2);
  counts.delayed = row.integer(3);
  counts.dispatched = row.integer(4);
  counts.overdue = row.integer(5);
  counts.completed = row.integer(6);
  counts.failed = row.integer(7);
  counts.discarded = row.integer(8);
  counts.cancelled = row.integer(9);
  counts.retries = row.integer(10);
  counts.oldest_due_age = age_at(row, 11, now);
  counts.oldest_dispatched_age = age_at(row, 12, now);
  return counts;
}

PartitionState read_partition(const MariadbQuery& row, Timestamp now) {
  PartitionState state;
  state.partition = Partition(static_cast<std::int32_t>(row.integer(0)));
  const auto leased_until = row.time(3);
  if (leased_until && *leased_until > now) {
    state.owner = row.text(1);
    state.remaining = until(*leased_until, now);
  } else if (leased_until) {
    state.lapsed = age_at(row, 3, now);
  }
  state.suspicion = read_suspicion(row);
  return state;
}

/// One line for the audit.
struct AuditLine {
  const Operator& who;
  std::string_view action;
  std::string object;
  std::string detail = {};
};

class MariadbOperations final : public Operations {
 public:
  explicit MariadbOperations(const MariadbOptions& options)
      : reader_(options), writer_(options), random_(system_random()) {}

  Result<Status> status(std::optional<Timestamp> now, Deadline deadline) override {
    return reader_.read(deadline, [&]() -> Result<Status> {
      const auto at = reader_.now(now);
      if (!at) return at.error();
      Status status;
      for (const auto part :
           {&MariadbOperations::count_events, &MariadbOperations::count_deliveries,
            &MariadbOperations::list_partitions, &MariadbOperations::list_paused}) {
        if (auto done = (this->*part)(*at, status); !done) return done.error();
      }
      return status;
    });
  }

  Result<EventPage> events(const EventFilter& filter, std::optional<Timestamp> now,
                           Deadline deadline) override {
    if (auto checked = check(filter); !checked) return checked.error();
    return reader_.read(deadline, [&]() -> Result<EventPage> {
      const auto at = reader_.now(now);
      if (!at) return at.error();
      return list_events(reader_, filter, *at);
    });
  }

  Result<std::optional<EventDetail>> event(const EventId& id, bool with_payload,
                                           Deadline deadline) override {
    return reader_.read(deadline, [&] { return show_event(reader_, id, with_payload); });
  }

  Result<DeliveryPage> deliveries(const DeliveryFilter& filter, std::optional<Timestamp> now,
                                  Deadline deadline) override {
    if (auto checked = check(filter); !checked) return checked.error();
    return reader_.read(deadline, [&]() -> Result<DeliveryPage> {
      const auto at = reader_.now(now);
      if (!at) return at.error();
      return list_deliveries(reader_, filter, *at);
    });
  }

  Result<std::vector<DeadLetter>> dead_letters(const DeadFilter& filter,
                                               Deadline deadline) override {
    if (auto checked = check_limit(filter.limit); !checked) return checked.error();
    return reader_.read(deadline, [&] { return find_dead(reader_, filter); });
  }

  Result<std::vector<DeliveryId>> dead_retry(const DeadFilter& filter, const Operator& who,
                                             std::optional<Timestamp> now,
                                             Deadline deadline) override {
    return change_dead(filter, {who, "dead_retry", who.filter}, now, deadline,
                       [&](const Delivery& dead, Timestamp at) { return retry(dead, who, at); });
  }

  Result<std::vector<DeliveryId>> dead_discard(const DeadFilter& filter, const Operator& who,
                                               std::optional<Timestamp> now,
                                               Deadline deadline) override {
    return change_dead(filter, {who, "dead_discard", who.filter}, now, deadline,
                       [&](const Delivery& dead, Timestamp at) { return discard(dead, who, at); });
  }

  Result<bool> route_pause(const std::string& route, const Operator& who,
                           std::optional<Timestamp> now, Deadline deadline) override {
    return change_route(now, deadline, {who, "route_pause", route},
                        [&](Timestamp at) -> Result<bool> {
                          auto row = writer_.query(statements::routes_pause);
                          row.bind(":route", route).bind(":kind", "paused").bind(":now", at);
                          row.bind(":paused_by", who.name).bind(":reason", who.reason);
                          auto done = row.run();
                          if (done) return true;
                          // The statement alone is undone; the transaction goes on.
                          if (done.error().code == ErrorCode::already_exists) return false;
                          return done.error();
                        });
  }

  Result<bool> route_resume(const std::string& route, const Operator& who,
                            std::optional<Timestamp> now, Deadline deadline) override {
    return change_route(now, deadline, {who, "route_resume", route},
                        [&](Timestamp) -> Result<bool> {
                          auto row = writer_.query(statements::routes_resume);
                          row.bind(":route", route);
                          if (auto done = row.run(); !done) return done.error();
                          return writer_.changes() > 0;
                        });
  }

 private:
  Result<void> count_events(Timestamp now, Status& status) {
    auto row = reader_.query(statements::events_count);
    if (!row.next()) return row.result();
    status.events = {row.integer(0), row.integer(1), age_at(row, 2, now)};
    return {};
  }

  Result<void> count_deliveries(Timestamp now, Status& status) {
    auto rows = reader_.query(statements::deliveries_count);
    rows.bind(":now", now);
    while (rows.next())
      status.routes.push_back(read_counts(rows, now));
    return rows.result();
  }

  Result<void> list_partitions(Timestamp now, Status& status) {
    auto rows = reader_.query(statements::partitions_list);
    while (rows.next())
      status.partitions.push_back(read_partition(rows, now));
    return rows.result();
  }

  Result<void> list_paused(Timestamp, Status& status) {
    auto rows = reader_.query(statements::routes_list);
    while (rows.next())
      status.paused_routes.push_back(rows.text(0));
    return rows.result();
  }

  static Result<std::vector<DeadLetter>> find_dead(MariadbConnection& connection,
                                                   const DeadFilter& filter);
  template <class Change>
  Result<std::vector<DeliveryId>> change_dead(const DeadFilter& filter, AuditLine summary,
                                              std::optional<Timestamp> now, Deadline deadline,
                                              Change change);
  template <class Change>
  Result<bool> change_route(std::optional<Timestamp> now, Deadline deadline, const AuditLine& line,
                            Change change);
  /// Nothing when the row has to stay as it is.
  Result<std::optional<DeliveryId>> retry(const Delivery& dead, const Operator& who, Timestamp now);
  Result<std::optional<DeliveryId>> discard(const Delivery& dead, const Operator& who,
                                            Timestamp now);
  Result<void> audit(const AuditLine& line, Timestamp now);
  Result<void> bump(const std::vector<DeliveryId>& changed);

  MariadbConnection reader_;
  MariadbConnection writer_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
};

Result<std::vector<DeadLetter>> MariadbOperations::find_dead(MariadbConnection& connection,
                                                             const DeadFilter& filter) {
  std::vector<DeadLetter> letters;
  auto rows = connection.query(statements::deliveries_dead);
  rows.bind(":limit", static_cast<std::int64_t>(filter.limit));
  const auto after = filter.after.value_or(DeadPlace{});
  rows.bind(":after_seq", after.event_seq.value()).bind(":after_route", after.route);
  rows.bind_list(":ids", id_list(filter.ids)).bind_if(":route", filter.route);
  rows.bind(":all_ids", std::int64_t{filter.ids.empty()});
  rows.bind_if(":event_type", filter.event_type).bind_if(":failure_code", filter.failure_code);
  if (filter.ambiguous) rows.bind(":ambiguous", std::int64_t{*filter.ambiguous});
  while (rows.next()) {
    DeadLetter letter;
    letter.delivery = read_delivery_columns(rows).delivery;
    letter.event_type = rows.text(delivery_columns);
    if (!rows.is_null(delivery_columns + 1)) {
      letter.aggregate_key =
          aggregate_key({rows.text(delivery_columns + 1), rows.text(delivery_columns + 2)});
    }
    letters.push_back(std::move(letter));
  }
  if (auto read = rows.result(); !read) return read.error();
  return letters;
}

template <class Change>
Result<std::vector<DeliveryId>> MariadbOperations::change_dead(const DeadFilter& filter,
                                                               AuditLine summary,
                                                               std::optional<Timestamp> now,
                                                               Deadline deadline, Change change) {
  if (auto checked = check_limit(filter.limit); !checked) return checked.error();
  return writer_.write(deadline, [&]() -> Result<std::vector<DeliveryId>> {
    // As a settle locks these rows first, too, none runs from here on: what is found is what is
    // changed.
    if (auto locked = writer_.query(statements::partitions_lock).run(); !locked) {
      return locked.error();
    }
    const auto at = writer_.now(now);
    if (!at) return at.error();
    const auto letters = find_dead(writer_, filter);
    if (!letters) return letters.error();
    std::vector<DeliveryId> changed;
    for (const auto& letter : *letters) {
      const auto id = change(letter.delivery, *at);
      if (!id) return id.error();
      if (*id) changed.push_back(**id);
    }
    if (changed.empty()) return changed;
    if (!summary.object.empty()) {
      summary.detail = fmt::format("{} dead letters", changed.size());
      if (auto done = audit(summary, *at); !done) return done.error();
    }
    if (auto bumped = bump(changed); !bumped) return bumped.error();
    return changed;
  });
}

/// The old row goes first: of an event and route one row at a time is the current one.
Result<std::optional<DeliveryId>> MariadbOperations::retry(const Delivery& dead,
                                                           const Operator& who, Timestamp now) {
  const DeliveryId next(ids_.next());
  auto old = writer_.query(statements::deliveries_supersede);
  old.bind(":id", id_text(dead.id.value()));
  if (auto done = old.run(); !done) return done.error();
  if (writer_.changes() == 0) return std::optional<DeliveryId>();
  auto row = writer_.query(statements::deliveries_insert_generation);
  row.bind(":id", id_text(dead.id.value())).bind(":new_id", id_text(next.value()));
  row.bind(":now", now);
  if (auto done = row.run(); !done) return done.error();
  const AuditLine line{who, "dead_retry", id_text(dead.id.value()), id_text(next.value())};
  if (auto done = audit(line, now); !done) return done.error();
  return std::optional(next);
}

Result<std::optional<DeliveryId>> MariadbOperations::discard(const Delivery& dead,
                                                             const Operator& who, Timestamp now) {
  auto row = writer_.query(statements::deliveries_discard);
  row.bind(":id", id_text(dead.id.value())).bind(":now", now);
  if (auto done = row.run(); !done) return done.error();
  const AuditLine line{who, "dead_discard", id_text(dead.id.value())};
  if (auto done = audit(line, now); !done) return done.error();
  return std::optional(dead.id);
}

template <class Change>
Result<bool> MariadbOperations::change_route(std::optional<Timestamp> now, Deadline deadline,
                                             const AuditLine& line, Change change) {
  return writer_.write(deadline, [&]() -> Result<bool> {
    const auto at = writer_.now(now);
    if (!at) return at.error();
    const auto changed = change(*at);
    if (!changed || !*changed) return changed;
    if (auto done = audit(line, *at); !done) return done.error();
    return true;
  });
}

Result<void> MariadbOperations::audit(const AuditLine& line, Timestamp now) {
  auto row = writer_.query(statements::audit_insert);
  row.bind(":now", now).bind(":who", line.who.name);
  row.bind(":action", line.action).bind(":object", line.object);
  row.bind(":reason", line.who.reason).bind(":detail", line.detail);
  return row.run();
}

Result<void> MariadbOperations::bump(const std::vector<DeliveryId>& changed) {
  auto rows = writer_.query(statements::partitions_bump);
  rows.bind_list(":ids", id_list(changed));
  rows.bind(":partition_count", std::int64_t{writer_.options().partitions});
  return rows.run();
}

}  // namespace
}  // namespace store::mariadb

std::unique_ptr<Operations> make_mariadb_operations(MariadbOptions options) {
  return std::make_unique<store::mariadb::MariadbOperations>(options);
}

}  // namespace postrider
