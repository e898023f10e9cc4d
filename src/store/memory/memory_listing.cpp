#include "store/memory/memory_listing.hpp"

#include <algorithm>
#include <iterator>

namespace postrider::testing {
namespace {

EventState state_of(const Tables& tables, Seq seq, const EventRow& row) {
  if (row.routed_at) return EventState::routed;
  return tables.is_held(seq) ? EventState::held : EventState::unrouted;
}

EventSummary summary_of(const Tables& tables, Seq seq, const EventRow& row) {
  const auto& event = *row.event;
  EventSummary summary;
  summary.seq = seq;
  summary.id = event.id;
  summary.aggregate = event.aggregate;
  summary.aggregate_version = event.aggregate_version;
  summary.type = event.type;
  summary.content_type = event.content_type;
  summary.payload_bytes = static_cast<std::int64_t>(event.payload.size());
  summary.created_at = event.created_at;
  summary.available_at = event.available_at;
  summary.routed_at = row.routed_at;
  summary.state = state_of(tables, seq, row);
  return summary;
}

bool fits(const EventFilter& filter, const EventSummary& event, Timestamp now) {
  return (!filter.type || *filter.type == event.type) &&
         (!filter.aggregate || filter.aggregate == event.aggregate) &&
         (!filter.state || *filter.state == event.state) &&
         (!filter.since || event.created_at >= now - *filter.since) &&
         (!filter.until || event.created_at <= now - *filter.until);
}

bool fits(const DeliveryFilter& filter, const ListedDelivery& listed, Timestamp now) {
  const auto& delivery = listed.delivery;
  const bool due = delivery.status == DeliveryStatus::pending && delivery.available_at <= now;
  return (!filter.id || *filter.id == delivery.id) &&
         (!filter.event || *filter.event == delivery.event_id) &&
         (!filter.route || *filter.route == delivery.route) &&
         (!filter.status || *filter.status == delivery.status) &&
         (!filter.aggregate || filter.aggregate == listed.aggregate) && (!filter.due || due) &&
         (filter.history || filter.id || listed.current);
}

}  // namespace

EventPage list_events(const Tables& tables, const EventFilter& filter, Timestamp now) {
  EventPage page;
  const auto& events = tables.events();
  auto row =
      std::make_reverse_iterator(filter.after ? events.lower_bound(*filter.after) : events.end());
  // Held events are not counted, as the other stores find them by an index.
  const bool counts = filter.state != EventState::held;
  for (std::size_t examined = 0; row != events.rend(); ++row) {
    auto event = summary_of(tables, row->first, row->second);
    const auto seq = event.seq;
    if (fits(filter, event, now)) page.events.push_back(std::move(event));
    const bool full = page.events.size() == filter.limit;
    if (full || (counts && ++examined == filter.examine)) {
      page.next = seq;
      break;
    }
  }
  return page;
}

std::optional<EventDetail> show_event(const Tables& tables, const EventId& id, bool with_payload) {
  const auto& events = tables.events();
  const auto found = std::find_if(events.begin(), events.end(),
                                  [&](const auto& row) { return row.second.event->id == id; });
  if (found == events.end()) return std::nullopt;
  const auto& event = *found->second.event;
  EventDetail detail;
  detail.summary = summary_of(tables, found->first, found->second);
  detail.malformed = found->second.malformed;
  for (const auto& header : event.headers)
    detail.header_names.push_back(header.first);
  if (with_payload) detail.payload = event.payload;
  return detail;
}

DeliveryPage list_deliveries(const Tables& tables, const DeliveryFilter& filter, Timestamp now) {
  DeliveryPage page;
  const auto& deliveries = tables.deliveries();
  auto end = deliveries.end();
  if (filter.after) {
    const auto* last = tables.find_delivery(*filter.after);
    if (last == nullptr) return page;
    end = deliveries.lower_bound({last->event_seq, last->route, last->generation});
  }
  auto row = std::make_reverse_iterator(end);
  for (std::size_t examined = 0; row != deliveries.rend(); ++row) {
    const auto& delivery = row->second;
    const auto& event = *tables.event_of(delivery).event;
    ListedDelivery listed{delivery, !tables.is_superseded(row->first), event.type, event.aggregate};
    if (fits(filter, listed, now)) page.deliveries.push_back(std::move(listed));
    if (page.deliveries.size() == filter.limit || ++examined == filter.examine) {
      page.next = delivery.id;
      break;
    }
  }
  return page;
}

}  // namespace postrider::testing
