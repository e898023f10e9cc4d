#include "store/mariadb/mariadb_listing.hpp"

#include <utility>

#include "store/common/listing_span.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

// Columns of the statements that list events, and of those that list deliveries behind those of
// the delivery.
constexpr int held_column = 11;
constexpr int headers_column = 12;
constexpr int payload_column = 13;
constexpr int current_column = delivery_columns;
constexpr int event_type_column = delivery_columns + 1;
constexpr int aggregate_column = delivery_columns + 2;

// A row by a careless hand may have half of it; what is there is shown.
std::optional<Aggregate> aggregate_at(const MariadbQuery& row, int column) {
  if (row.is_null(column) && row.is_null(column + 1)) return std::nullopt;
  return Aggregate{row.text(column), row.text(column + 1)};
}

EventSummary read_summary(const MariadbQuery& row) {
  EventSummary event;
  event.seq = Seq(row.integer(0));
  if (const auto id = Uuid::parse(row.text(1))) event.id = EventId(*id);
  event.aggregate = aggregate_at(row, 2);
  event.aggregate_version = row.optional_integer(4);
  event.type = row.text(5);
  event.content_type = row.text(6);
  event.payload_bytes = row.integer(7);
  event.created_at = row.time(8).value_or(Timestamp());
  event.available_at = row.time(9);
  event.routed_at = row.time(10);
  if (event.routed_at) {
    event.state = EventState::routed;
  } else if (row.integer(held_column) != 0) {
    event.state = EventState::held;
  }
  return event;
}

void bind_aggregate(MariadbQuery& rows, const std::optional<Aggregate>& aggregate) {
  if (!aggregate) return;
  rows.bind(":aggregate_type", aggregate->type).bind(":aggregate_id", aggregate->id);
}

void bind_place(MariadbQuery& rows, const std::optional<DeliveryPlace>& place) {
  if (!place) return;
  rows.bind(":after_route", place->route);
  rows.bind(":after_generation", std::int64_t{place->generation});
}

Result<std::optional<std::int64_t>> first_integer(MariadbQuery& rows) {
  std::optional<std::int64_t> found;
  if (rows.next()) found = rows.integer(0);
  if (auto read = rows.result(); !read) return read.error();
  return found;
}

Result<std::optional<std::int64_t>> bound_of(MariadbConnection& connection,
                                             const EventFilter& filter, std::int64_t after) {
  if (!needs_bound(filter)) return std::optional<std::int64_t>();
  auto rows = connection.query(statements::events_bound);
  rows.bind(":after", after).bind(":examine", static_cast<std::int64_t>(filter.examine) - 1);
  return first_integer(rows);
}

void bind_filter(MariadbQuery& rows, const EventFilter& filter, Timestamp now) {
  rows.bind_if(":type", filter.type).bind(":limit", static_cast<std::int64_t>(filter.limit));
  bind_aggregate(rows, filter.aggregate);
  if (filter.since) rows.bind(":since", now - *filter.since);
  if (filter.until) rows.bind(":until", now - *filter.until);
  if (filter.state && *filter.state != EventState::held) {
    rows.bind(":routed", std::int64_t{*filter.state == EventState::routed});
  }
}

class Places final : public DeliveryPlaces {
 public:
  explicit Places(MariadbConnection& connection) : connection_(connection) {}

  Result<std::optional<std::int64_t>> seq_of(const EventId& event) override {
    auto rows = connection_.query(statements::events_find);
    rows.bind(":id", id_text(event.value()));
    return first_integer(rows);
  }

  Result<std::optional<DeliveryPlace>> place_of(const DeliveryId& delivery) override {
    auto rows = connection_.query(statements::deliveries_find);
    rows.bind(":id", id_text(delivery.value()));
    std::optional<DeliveryPlace> place;
    if (rows.next()) {
      place =
          DeliveryPlace{rows.integer(0), rows.text(1), static_cast<std::int32_t>(rows.integer(2))};
    }
    if (auto read = rows.result(); !read) return read.error();
    return place;
  }

  Result<std::optional<DeliveryBound>> bound_of(const DeliverySpan& span,
                                                std::int64_t examine) override {
    auto rows = connection_.query(statements::deliveries_bound);
    rows.bind(":last", span.last).bind(":examine", examine - 1);
    bind_place(rows, span.after);
    std::optional<DeliveryBound> bound;
    if (rows.next()) {
      const auto id = Uuid::parse(rows.text(0));
      if (!id) return id.error();
      bound = DeliveryBound{DeliveryId(*id), rows.integer(1)};
    }
    if (auto read = rows.result(); !read) return read.error();
    return bound;
  }

 private:
  MariadbConnection& connection_;
};

void bind_filter(MariadbQuery& rows, const DeliveryFilter& filter, const DeliverySpan& span,
                 Timestamp now) {
  rows.bind(":first", span.first).bind(":last", span.last);
  bind_place(rows, span.after);
  rows.bind_if(":route", filter.route);
  bind_aggregate(rows, filter.aggregate);
  if (const auto status = status_of(filter)) rows.bind(":status", to_string(*status));
  if (filter.due) rows.bind(":due_by", now);
  rows.bind(":history", std::int64_t{filter.history || filter.id});
  rows.bind(":limit", static_cast<std::int64_t>(filter.limit));
}

}  // namespace

Result<EventPage> list_events(MariadbConnection& connection, const EventFilter& filter,
                              Timestamp now) {
  const auto after = filter.after ? filter.after->value() : above_all_events;
  const auto bound = bound_of(connection, filter, after);
  if (!bound) return bound.error();
  const bool held = filter.state == EventState::held;
  auto rows = connection.query(held ? statements::events_list_held : statements::events_list);
  rows.bind(":after", after).bind(":floor", bound->value_or(0));
  bind_filter(rows, filter, now);
  EventPage page;
  while (rows.next())
    page.events.push_back(read_summary(rows));
  if (auto read = rows.result(); !read) return read.error();
  set_next(page, filter, *bound);
  return page;
}

Result<std::optional<EventDetail>> show_event(MariadbConnection& connection, const EventId& id,
                                              bool with_payload) {
  auto row = connection.query(statements::events_show);
  row.bind(":id", id_text(id.value())).bind(":with_payload", std::int64_t{with_payload});
  std::optional<EventDetail> detail;
  if (row.next()) {
    detail.emplace().summary = read_summary(row);
    set_headers(*detail, row.optional_text(headers_column));
    if (with_payload) detail->payload = row.text(payload_column);
  }
  if (auto read = row.result(); !read) return read.error();
  return detail;
}

Result<DeliveryPage> list_deliveries(MariadbConnection& connection, const DeliveryFilter& filter,
                                     Timestamp now) {
  Places places(connection);
  const auto span = span_of(filter, places);
  if (!span) return span.error();
  DeliveryPage page;
  if (!*span) return page;
  auto rows = connection.query(statements::deliveries_list);
  if (filter.id) rows.bind(":id", id_text(filter.id->value()));
  bind_filter(rows, filter, **span, now);
  while (rows.next()) {
    page.deliveries.push_back({read_delivery_columns(rows).delivery,
                               rows.integer(current_column) != 0, rows.text(event_type_column),
                               aggregate_at(rows, aggregate_column)});
  }
  if (auto read = rows.result(); !read) return read.error();
  set_next(page, filter, **span);
  return page;
}

}  // namespace postrider::store::mariadb
