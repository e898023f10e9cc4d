#include "shop/orders.hpp"

#include <postrider/sqlite.hpp>

#include "common/order_events.hpp"

namespace examples::shop {
namespace {

// [announce]
/// Writes the event into the outbox, in the transaction that is open.
template <class Event>
void announce(Database& database, const Event& event) {
  static const postrider::SqliteOutbox outbox;
  const auto made = make_event(event, order_aggregate(event.orderId));
  value_or_throw(outbox.add(database.handle(), value_or_throw(made)));
}
// [announce]

std::int64_t price_of(Database& database, const std::string& item) {
  const auto rows = database.run("SELECT price_cents FROM stock WHERE item = ?", {item});
  if (rows.empty()) {
    throw Refusal(Refusal::Reason::unknown_item, "The shop does not sell this item.");
  }
  return std::stoll(rows[0][0]);
}

void take_from_stock(Database& database, const std::string& item, std::int64_t quantity) {
  try {
    database.run("UPDATE stock SET available = available - ? WHERE item = ?", {quantity, item});
  } catch (const DatabaseError& error) {
    if (!error.is_failed_check()) throw;
    throw Refusal(Refusal::Reason::sold_out, "So many are not in stock.");
  }
}

/// The order, which has to be in this status.
Order order_that_is(Database& database, std::int64_t id, const std::string& status) {
  auto order = find_order(database, id);
  if (!order) {
    throw Refusal(Refusal::Reason::unknown_order, "There is no such order.");
  }
  if (order->status != status) {
    throw Refusal(Refusal::Reason::wrong_status,
                  "The order is " + order->status + ", not " + status + ".");
  }
  return *order;
}

void set_status(Database& database, Order& order, const std::string& status) {
  order.status = status;
  database.run("UPDATE orders SET status = ? WHERE id = ?", {status, order.id});
}

}  // namespace

void create_shop_tables(Database& database) {
  database.script(
      "CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, price_cents INTEGER NOT NULL,"
      "  available INTEGER NOT NULL CHECK (available >= 0)) STRICT;"
      "INSERT OR IGNORE INTO stock (item, price_cents, available)"
      "  VALUES ('lamp', 2500, 1000), ('rug', 9900, 1000), ('piano', 450000, 1);"
      "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY AUTOINCREMENT,"
      "  item TEXT NOT NULL REFERENCES stock (item), quantity INTEGER NOT NULL,"
      "  total_cents INTEGER NOT NULL, status TEXT NOT NULL) STRICT");
}

// [place-order]
Order place_order(Database& database, const std::string& item, std::int64_t quantity) {
  Order order{0, item, quantity, price_of(database, item) * quantity, "placed"};
  order.id = database.number(
      "INSERT INTO orders (item, quantity, total_cents, status) VALUES (?, ?, ?, ?) RETURNING id",
      {order.item, order.quantity, order.total_cents, order.status});
  announce(database, OrderPlaced{order.id, order.item, order.quantity, order.total_cents});
  take_from_stock(database, item, quantity);  // may fail, and then there is neither order nor event
  return order;
}
// [place-order]

Order pay_order(Database& database, std::int64_t id) {
  auto order = order_that_is(database, id, "placed");
  set_status(database, order, "paid");
  announce(database, OrderPaid{id});
  return order;
}

Order ship_order(Database& database, std::int64_t id) {
  auto order = order_that_is(database, id, "paid");
  set_status(database, order, "shipped");
  announce(database, OrderShipped{id});
  return order;
}

std::optional<Order> find_order(Database& database, std::int64_t id) {
  const auto rows =
      database.run("SELECT item, quantity, total_cents, status FROM orders WHERE id = ?", {id});
  if (rows.empty()) return std::nullopt;
  const auto& row = rows[0];
  return Order{id, row[0], std::stoll(row[1]), std::stoll(row[2]), row[3]};
}

}  // namespace examples::shop
