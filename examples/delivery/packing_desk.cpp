#include "delivery/packing_desk.hpp"

#include <postrider/sqlite.hpp>

#include "common/order_events.hpp"

namespace examples::delivery {
namespace {

using postrider::Event;
using postrider::InboxResult;
using postrider::Result;

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
  return postrider::transaction(database_.handle(), [&]() -> Result<InboxResult> {
    auto result = process(event);
    if (result) {
      database_.run("INSERT INTO arrivals (event_id, order_id, type, result) VALUES (?, ?, ?, ?)",
                    {event.id.value().to_string(), event.aggregate ? event.aggregate->id : "",
                     event.type, std::string(to_string(*result))});
    }
    return result;
  });
}

// [receive]
Result<InboxResult> PackingDesk::process(const Event& event) {
  const postrider::SqliteInbox inbox;
  const postrider::InboxMessage message{"packing-desk", "shop", event.id.value().to_string(),
                                        content_hash(event)};
  if (trust_ == Trust::luck) {
    auto acted = act_on(event);
    return acted ? Result(InboxResult::processed) : Result<InboxResult>(acted.error());
  }
  return inbox.process(database_.handle(), message, [&] { return act_on(event); });
}
// [receive]

// [act]
Result<void> PackingDesk::act_on(const Event& event) {
  database_.run("INSERT INTO effects (order_id, type) VALUES (?, ?)",
                {event.aggregate ? event.aggregate->id : "", event.type});
  if (event.type == postrider::event_name<OrderPlaced>()) {
    const auto placed = postrider::decode_event<OrderPlaced>(event.type, event.payload);
    if (!placed) return placed.error();
    database_.run("INSERT INTO parcels (order_id, item, quantity, status) VALUES (?, ?, ?, ?)",
                  {placed.value().orderId, placed.value().item, placed.value().quantity, "packed"});
    return {};
  }
  if (event.type == postrider::event_name<OrderPaid>()) {
    const auto paid = postrider::decode_event<OrderPaid>(event.type, event.payload);
    return paid ? move_parcel(paid.value().orderId, "ready") : paid.error();
  }
  if (event.type == postrider::event_name<OrderShipped>()) {
    const auto shipped = postrider::decode_event<OrderShipped>(event.type, event.payload);
    return shipped ? move_parcel(shipped.value().orderId, "handed over") : shipped.error();
  }
  return {};  // an event that concerns others
}
// [act]

Result<void> PackingDesk::move_parcel(std::int64_t order_id, const std::string& status) {
  const auto moved = database_.run("UPDATE parcels SET status = ? WHERE order_id = ? RETURNING id",
                                   {status, order_id});
  if (!moved.empty()) return {};
  return postrider::Error{postrider::ErrorCode::conflict, postrider::Disposition::reject,
                          "The order has no parcel: its first event has never come. Look for it in "
                          "the shop's outbox.",
                          "delivery", ""};
}

}  // namespace examples::delivery
