#include "store/common/event_row.hpp"

#include <string_view>
#include <utility>

#include "store/common/headers_codec.hpp"

namespace postrider::store {
namespace {

/// Remembers the first fault: one reason is enough to act on.
class Faults {
 public:
  void add(std::string_view fault) {
    if (first_.empty()) first_ = fault;
  }
  [[nodiscard]] std::string take() { return std::move(first_); }

 private:
  std::string first_;
};

EventId read_id(std::string_view text, Faults& faults) {
  const auto id = Uuid::parse(text);
  if (id) return EventId(*id);
  faults.add("the event's id is not a UUID. Write the event again under a sound id.");
  return {};
}

std::optional<Aggregate> read_aggregate(EventRow& row, Faults& faults) {
  if (row.aggregate_type.has_value() != row.aggregate_id.has_value()) {
    faults.add("the aggregate has a type or an id and not both. Write the event again.");
    return std::nullopt;
  }
  if (!row.aggregate_type) return std::nullopt;
  return Aggregate{*std::move(row.aggregate_type), *std::move(row.aggregate_id)};
}

Headers read_headers(const std::optional<std::string>& text, Faults& faults) {
  if (!text) return {};
  auto headers = decode_headers(*text);
  if (headers) return std::move(headers).value();
  faults.add(headers.error().message);
  return {};
}

}  // namespace

ReadEvent read_event(EventRow row) {
  Faults faults;
  auto event = std::make_shared<Event>();
  event->seq = Seq(row.seq);
  event->id = read_id(row.id, faults);
  event->aggregate = read_aggregate(row, faults);
  event->aggregate_version = row.aggregate_version;
  event->headers = read_headers(row.headers, faults);
  event->type = std::move(row.type);
  event->payload = std::move(row.payload);
  event->content_type = std::move(row.content_type);
  event->available_at = row.available_at;
  if (row.created_at) {
    event->created_at = *row.created_at;
  } else {
    faults.add("the event's creation time cannot be read. Write the event again.");
  }
  return {std::move(event), faults.take()};
}

}  // namespace postrider::store
