#include "demo/books.hpp"

namespace examples::demo {
namespace {

/// The `types` in their order, without "order.", as "placed, paid".
std::string listed(Database& database, const std::string& sql, const std::string& order) {
  std::string list;
  for (const auto& row : database.run(sql, {order}))
    list += (list.empty() ? "" : ", ") + row[0].substr(row[0].find('.') + 1);
  return list;
}

}  // namespace

std::vector<Written> Books::waiting() {
  std::vector<Written> waiting;
  const auto rows = shop_.run(
      "SELECT seq, id, aggregate_id, type FROM outbox_events AS e WHERE routed_at IS NULL"
      "  OR EXISTS (SELECT 1 FROM outbox_deliveries AS d WHERE d.event_seq = e.seq"
      "    AND d.status NOT IN ('completed', 'discarded', 'cancelled'))"
      "  ORDER BY seq");
  for (const auto& row : rows)
    waiting.push_back({std::stoll(row[0]), row[1], row[2], row[3]});
  return waiting;
}

std::vector<std::string> Books::copies_of(const std::string& event_id) {
  std::vector<std::string> results;
  for (auto& row :
       delivery_.run("SELECT result FROM arrivals WHERE event_id = ? ORDER BY n", {event_id})) {
    results.push_back(std::move(row[0]));
  }
  return results;
}

std::vector<OrderBooks> Books::orders() {
  std::vector<OrderBooks> all;
  for (const auto& row : shop_.run("SELECT id FROM orders ORDER BY id")) {
    const auto& order = row[0];
    all.push_back(
        {order,
         listed(shop_, "SELECT type FROM outbox_events WHERE aggregate_id = ? ORDER BY seq", order),
         listed(delivery_, "SELECT type FROM arrivals WHERE order_id = ? ORDER BY n", order),
         listed(delivery_, "SELECT type FROM effects WHERE order_id = ? ORDER BY n", order),
         delivery_.number("SELECT count(*) FROM parcels WHERE order_id = ?", {order})});
  }
  return all;
}

bool Books::announced_what_is_not_there() {
  for (const auto& row : delivery_.run("SELECT DISTINCT order_id FROM arrivals")) {
    if (shop_.number("SELECT count(*) FROM orders WHERE id = ?", {row[0]}) == 0) return true;
  }
  return shop_.number(
             "SELECT count(*) FROM outbox_events"
             "  WHERE CAST(aggregate_id AS INTEGER) NOT IN (SELECT id FROM orders)") != 0;
}

std::int64_t Books::repeats() {
  return delivery_.number("SELECT count(*) - count(DISTINCT event_id) FROM arrivals");
}

}  // namespace examples::demo
