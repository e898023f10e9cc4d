#include "delivery/packing_desk.hpp"

#include <utility>

#include <postrider/sqlite.hpp>

#include "common/order_events.hpp"

namespace examples::delivery {
namespace {

using postrider::decode_event;
using postrider::Event;
using postrider::event_name;
using postrider::InboxResult;
using postrider::Result;

std::string order_of(const Event& event) {
  return event.aggregate ? event.aggregate->id : "";
}

postrider::Error cannot_write(const DatabaseError& error) {
  return {postrider::ErrorCode::storage_failed, postrider::Disposition::retry,
          std::string("The database cannot take it: ") + error.what() + ". See to its disk.",
          "delivery", std::to_string(error.code())};
}

}  // namespace

PackingDesk::PackingDesk(const std::string& database_path, Trust trust)
    : database_((create_postrider_tables(database_path), database_path)), trust_(trust) {
  database_.script(
      "CREATE TABLE IF NOT EXISTS parcels (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL,"
      "  item TEXT NOT NULL, quantity INTEGER NOT NULL, status TEXT NOT NULL) STRICT;"
      // One row for each effect, and one for each copy that arrived, in order. For people.
      "CREATE TABLE IF NOT EXISTS effects (n INTEGER PRIMARY KEY, order_id TEXT, type TEXT) STRICT;"
      "CREATE TABLE IF NOT EXISTS arrivals (n INTEGER PRIMARY KEY, event_id TEXT, order_id TEXT,"
      "  type TEXT, result TEXT) STRICT");
}

Result<InboxResult> PackingDesk::receive(const Event& event) {
  try {
    return postrider::transaction(database_.handle(), [&]() -> Result<InboxResult> {
      auto result = trust_ == Trust::inbox ? process(event) : process_by_luck(event);
      if (result) note_arrival(event, *result);
      return result;
    });
  } catch (const DatabaseError& error) {
    return cannot_write(error);
  }
}

void PackingDesk::note_arrival(const Event& event, InboxResult result) {
  database_.run(
      "INSERT INTO arrivals (event_id, order_id, type, result) VALUES (?, ?, ?, ?)",
      {event.id.value().to_string(), order_of(event), event.type, std::string(to_string(result))});
}

// [receive]
Result<InboxResult> PackingDesk::process(const Event& event) {
  const postrider::SqliteInbox inbox;
  const postrider::InboxMessage message{"packing-desk", "shop", event.id.value().to_string(),
                                        content_hash(event)};
  return inbox.process(database_.handle(), message, [&] { return act_on(event); });
}
// [receive]

Result<InboxResult> PackingDesk::process_by_luck(const Event& event) {
  if (auto acted = act_on(event); !acted) return std::move(acted).error();
  return InboxResult::processed;
}

// [act]
Result<void> PackingDesk::act_on(const Event& event) {
  database_.run("INSERT INTO effects (order_id, type) VALUES (?, ?)",
                {order_of(event), event.type});
  if (event.type == event_name<OrderPlaced>()) return pack(event);
  if (event.type == event_name<OrderPaid>()) return move_parcel<OrderPaid>(event, "ready");
  if (event.type == event_name<OrderShipped>()) {
    return move_parcel<OrderShipped>(event, "handed over");
  }
  return {};  // concerns others
}
// [act]

Result<void> PackingDesk::pack(const Event& event) {
  const auto placed = decode_event<OrderPlaced>(event.type, event.payload);
  if (!placed) return placed.error();
  const auto& order = placed.value();
  database_.run("INSERT INTO parcels (order_id, item, quantity, status) VALUES (?, ?, ?, ?)",
                {order.orderId, order.item, order.quantity, "packed"});
  return {};
}

template <class OrderEvent>
Result<void> PackingDesk::move_parcel(const Event& event, const std::string& status) {
  const auto told = decode_event<OrderEvent>(event.type, event.payload);
  if (!told) return told.error();
  const auto moved = database_.run("UPDATE parcels SET status = ? WHERE order_id = ? RETURNING id",
                                   {status, told.value().orderId});
  if (!moved.empty()) return {};
  return postrider::Error{postrider::ErrorCode::conflict, postrider::Disposition::reject,
                          "The order has no parcel: its first event has never come. Look for it in "
                          "the shop's outbox.",
                          "delivery", ""};
}

}  // namespace examples::delivery
