#include "store/common/listing_span.hpp"

#include <utility>

#include "store/common/headers_codec.hpp"

namespace postrider::store {
namespace {

/// Narrows `span` to one event; false when nothing is left of it.
bool narrow(DeliverySpan& span, std::int64_t event_seq) {
  if (event_seq > span.last || event_seq < span.first) return false;
  if (event_seq < span.last) span.after = std::nullopt;
  span.first = event_seq;
  span.last = event_seq;
  return true;
}

/// A list of everything needs none: each row that is looked at is a row of the page.
bool needs_bound(const DeliveryFilter& filter) {
  if (filter.id || filter.event || has_index(filter)) return false;
  return filter.route || filter.status || filter.aggregate || !filter.history;
}

}  // namespace

bool needs_bound(const EventFilter& filter) {
  if (filter.state == EventState::held) return false;
  return filter.type || filter.aggregate || filter.state || filter.since || filter.until;
}

void set_next(EventPage& page, const EventFilter& filter, std::optional<std::int64_t> bound) {
  if (page.events.size() == filter.limit) {
    page.next = page.events.back().seq;
  } else if (bound) {
    page.next = Seq(*bound);
  }
}

std::optional<DeliveryStatus> status_of(const DeliveryFilter& filter) {
  return filter.due && !filter.status ? DeliveryStatus::pending : filter.status;
}

bool has_index(const DeliveryFilter& filter) {
  const auto status = status_of(filter);
  if (!status) return false;
  switch (*status) {
    case DeliveryStatus::held:
    case DeliveryStatus::pending:
    case DeliveryStatus::dispatched:
      return true;
    case DeliveryStatus::failed:
      return !filter.history;
    case DeliveryStatus::completed:
    case DeliveryStatus::discarded:
    case DeliveryStatus::cancelled:
      return false;
  }
  return false;
}

Result<std::optional<DeliverySpan>> span_of(const DeliveryFilter& filter, DeliveryPlaces& places) {
  DeliverySpan span;
  if (filter.after) {
    auto place = places.place_of(*filter.after);
    if (!place) return place.error();
    if (!*place) return std::optional<DeliverySpan>();
    span.last = (*place)->event_seq;
    span.after = std::move(**place);
  }
  if (filter.id) {
    const auto place = places.place_of(*filter.id);
    if (!place) return place.error();
    if (!*place || !narrow(span, (*place)->event_seq)) return std::optional<DeliverySpan>();
  }
  if (filter.event) {
    const auto seq = places.seq_of(*filter.event);
    if (!seq) return seq.error();
    if (!*seq || !narrow(span, **seq)) return std::optional<DeliverySpan>();
  }
  if (!needs_bound(filter)) return std::optional(std::move(span));
  const auto bound = places.bound_of(span, static_cast<std::int64_t>(filter.examine));
  if (!bound) return bound.error();
  if (*bound) {
    span.first = (*bound)->event_seq;
    span.bound = (*bound)->id;
  }
  return std::optional(std::move(span));
}

void set_next(DeliveryPage& page, const DeliveryFilter& filter, const DeliverySpan& span) {
  if (page.deliveries.size() == filter.limit) {
    page.next = page.deliveries.back().delivery.id;
  } else {
    page.next = span.bound;
  }
}

void set_headers(EventDetail& detail, const std::optional<std::string>& text) {
  if (!text) return;
  const auto headers = decode_headers(*text);
  if (!headers) {
    detail.malformed = headers.error().message;
    return;
  }
  for (const auto& header : *headers)
    detail.header_names.push_back(header.first);
}

}  // namespace postrider::store
