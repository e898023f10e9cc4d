#include "store/postgres/postgres_listing.hpp"

#include <utility>

#include "store/common/listing_span.hpp"
#include "store/postgres/postgres_rows.hpp"

namespace postrider::store::postgres {
namespace {

// Columns of the statements that list events, and of those that list deliveries behind those of
// the delivery.
constexpr int held_column = 11;
constexpr int headers_column = 12;
constexpr int payload_column = 13;
constexpr int current_column = delivery_columns;
constexpr int event_type_column = delivery_columns + 1;
constexpr int aggregate_column = delivery_columns + 2;

Result<Rows> read_one(PostgresConnection& connection, Call call, Deadline deadline) {
  auto results = connection.read(std::vector<Call>{std::move(call)}, deadline);
  if (!results) return results.error();
  return std::move(results->front());
}

std::optional<Aggregate> aggregate_at(const Rows& rows, int row, int column) {
  if (rows.is_null(row, column)) return std::nullopt;
  return Aggregate{std::string(rows.text(row, column)), std::string(rows.text(row, column + 1))};
}

EventSummary read_summary(const Rows& rows, int row) {
  EventSummary event;
  event.seq = Seq(rows.integer(row, 0));
  event.id = EventId(rows.uuid(row, 1));
  event.aggregate = aggregate_at(rows, row, 2);
  event.aggregate_version = rows.integer_if(row, 4);
  event.type = rows.text(row, 5);
  event.content_type = rows.text(row, 6);
  event.payload_bytes = rows.integer(row, 7);
  event.created_at = rows.time(row, 8);
  event.available_at = rows.time_if(row, 9);
  event.routed_at = rows.time_if(row, 10);
  if (event.routed_at) {
    event.state = EventState::routed;
  } else if (rows.boolean(row, held_column)) {
    event.state = EventState::held;
  }
  return event;
}

void add_aggregate(Parameters& parameters, const std::optional<Aggregate>& aggregate) {
  if (aggregate) {
    parameters.text(aggregate->type).text(aggregate->id);
  } else {
    parameters.null().null();
  }
}

void add_place(Parameters& parameters, const std::optional<DeliveryPlace>& place) {
  if (place) {
    parameters.text(place->route).small_integer(place->generation);
  } else {
    parameters.null().null();
  }
}

void add_duration(Parameters& parameters, const std::optional<milliseconds>& duration) {
  if (duration) {
    parameters.integer(duration->count());
  } else {
    parameters.null();
  }
}

Call list_call(const EventFilter& filter, std::int64_t after, std::int64_t floor,
               const std::optional<Timestamp>& now) {
  const bool held = filter.state == EventState::held;
  Call call{held ? "events_list_held" : "events_list"};
  auto& parameters = call.parameters;
  parameters.integer(after).integer(floor).text_if(filter.type);
  add_aggregate(parameters, filter.aggregate);
  add_duration(parameters, filter.since);
  add_duration(parameters, filter.until);
  parameters.time_if(now).integer(static_cast<std::int64_t>(filter.limit));
  if (held) return call;
  if (filter.state) {
    parameters.boolean(*filter.state == EventState::routed);
  } else {
    parameters.null();
  }
  return call;
}

Result<std::optional<std::int64_t>> bound_of(PostgresConnection& connection,
                                             const EventFilter& filter, std::int64_t after,
                                             Deadline deadline) {
  if (!needs_bound(filter)) return std::optional<std::int64_t>();
  Call call{"events_bound"};
  call.parameters.integer(after).integer(static_cast<std::int64_t>(filter.examine) - 1);
  const auto rows = read_one(connection, std::move(call), deadline);
  if (!rows) return rows.error();
  return rows->empty() ? std::nullopt : std::optional(rows->integer(0, 0));
}

class Places final : public DeliveryPlaces {
 public:
  Places(PostgresConnection& connection, Deadline deadline)
      : connection_(connection), deadline_(deadline) {}

  Result<std::optional<std::int64_t>> seq_of(const EventId& event) override {
    Call call{"events_find"};
    call.parameters.uuid(event.value());
    const auto rows = read_one(connection_, std::move(call), deadline_);
    if (!rows) return rows.error();
    return rows->empty() ? std::nullopt : std::optional(rows->integer(0, 0));
  }

  Result<std::optional<DeliveryPlace>> place_of(const DeliveryId& delivery) override {
    Call call{"deliveries_find"};
    call.parameters.uuid(delivery.value());
    const auto rows = read_one(connection_, std::move(call), deadline_);
    if (!rows) return rows.error();
    if (rows->empty()) return std::optional<DeliveryPlace>();
    return std::optional(DeliveryPlace{rows->integer(0, 0), std::string(rows->text(0, 1)),
                                       rows->small_integer(0, 2)});
  }

  Result<std::optional<DeliveryBound>> bound_of(const DeliverySpan& span,
                                                std::int64_t examine) override {
    Call call{"deliveries_bound"};
    call.parameters.integer(span.last);
    add_place(call.parameters, span.after);
    call.parameters.integer(examine - 1);
    const auto rows = read_one(connection_, std::move(call), deadline_);
    if (!rows) return rows.error();
    if (rows->empty()) return std::optional<DeliveryBound>();
    return std::optional(DeliveryBound{DeliveryId(rows->uuid(0, 0)), rows->integer(0, 1)});
  }

 private:
  PostgresConnection& connection_;
  Deadline deadline_;
};

Call list_call(const DeliveryFilter& filter, const DeliverySpan& span,
               const std::optional<Timestamp>& now) {
  Call call{"deliveries_list"};
  auto& parameters = call.parameters;
  parameters.integer(span.first).integer(span.last);
  add_place(parameters, span.after);
  if (filter.id) {
    parameters.uuid(filter.id->value());
  } else {
    parameters.null();
  }
  parameters.text_if(filter.route);
  if (const auto status = status_of(filter)) {
    parameters.text(to_string(*status));
  } else {
    parameters.null();
  }
  add_aggregate(parameters, filter.aggregate);
  parameters.boolean(filter.due).boolean(filter.history || filter.id).time_if(now);
  parameters.integer(static_cast<std::int64_t>(filter.limit));
  return call;
}

}  // namespace

Result<EventPage> list_events(PostgresConnection& connection, const EventFilter& filter,
                              std::optional<Timestamp> now, Deadline deadline) {
  if (auto checked = check(filter); !checked) return checked.error();
  const auto after = filter.after ? filter.after->value() : above_all_events;
  const auto bound = bound_of(connection, filter, after, deadline);
  if (!bound) return bound.error();
  const auto rows =
      read_one(connection, list_call(filter, after, bound->value_or(0), now), deadline);
  if (!rows) return rows.error();
  EventPage page;
  for (int row = 0; row < rows->size(); ++row)
    page.events.push_back(read_summary(*rows, row));
  set_next(page, filter, *bound);
  return page;
}

Result<std::optional<EventDetail>> show_event(PostgresConnection& connection, const EventId& id,
                                              bool with_payload, Deadline deadline) {
  Call call{"events_show"};
  call.parameters.uuid(id.value()).boolean(with_payload);
  const auto rows = read_one(connection, std::move(call), deadline);
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<EventDetail>();
  EventDetail detail;
  detail.summary = read_summary(*rows, 0);
  set_headers(detail, rows->text_if(0, headers_column));
  if (with_payload) {
    const bool bytes = rows->is_null(0, payload_column);
    detail.payload = std::string(rows->text(0, bytes ? payload_column + 1 : payload_column));
  }
  return std::optional(std::move(detail));
}

Result<DeliveryPage> list_deliveries(PostgresConnection& connection, const DeliveryFilter& filter,
                                     std::optional<Timestamp> now, Deadline deadline) {
  if (auto checked = check(filter); !checked) return checked.error();
  Places places(connection, deadline);
  const auto span = span_of(filter, places);
  if (!span) return span.error();
  DeliveryPage page;
  if (!*span) return page;
  const auto rows = read_one(connection, list_call(filter, **span, now), deadline);
  if (!rows) return rows.error();
  for (int row = 0; row < rows->size(); ++row) {
    page.deliveries.push_back({read_delivery_columns(*rows, row).delivery,
                               rows->boolean(row, current_column),
                               std::string(rows->text(row, event_type_column)),
                               aggregate_at(*rows, row, aggregate_column)});
  }
  set_next(page, filter, **span);
  return page;
}

}  // namespace postrider::store::postgres
