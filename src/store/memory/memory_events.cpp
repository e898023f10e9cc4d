#include "store/memory/memory_events.hpp"

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace postrider::testing {
namespace {

Error taken(std::string_view what) {
  return {ErrorCode::already_exists, Disposition::reject,
          std::string(what) + " is taken. Nothing was written; give each event its own.", "memory",
          ""};
}

Event to_event(const NewEvent& written, EventId id, Timestamp now) {
  Event event;
  event.id = id;
  event.aggregate = written.aggregate;
  event.aggregate_version = written.aggregate_version;
  event.type = written.type;
  event.payload = written.payload;
  event.content_type = written.content_type;
  event.headers = written.headers;
  event.created_at = now;
  event.available_at = written.available_at;
  return event;
}

}  // namespace

Result<void> check_free(const Tables& tables, std::span<const NewEvent> events) {
  std::set<EventId> ids;
  std::set<std::pair<Aggregate, std::int64_t>> versions;
  for (const auto& event : events) {
    if (event.id && (tables.has_event_id(*event.id) || !ids.insert(*event.id).second)) {
      return taken("an event's id");
    }
    if (!event.aggregate || !event.aggregate_version) continue;
    const auto& aggregate = *event.aggregate;
    const auto version = *event.aggregate_version;
    if (tables.has_version(aggregate, version) || !versions.insert({aggregate, version}).second) {
      return taken("an aggregate's version");
    }
  }
  return {};
}

Result<std::vector<EventId>> insert_events(MemoryDatabase& database,
                                           std::span<const NewEvent> events) {
  auto& tables = database.tables;
  if (auto free = check_free(tables, events); !free) return free.error();
  const auto now = database.time_of(std::nullopt);
  std::vector<EventId> ids;
  ids.reserve(events.size());
  for (const auto& event : events) {
    ids.push_back(event.id ? *event.id : EventId(database.ids.next()));
    tables.insert_event(to_event(event, ids.back(), now), "");
  }
  return ids;
}

}  // namespace postrider::testing
