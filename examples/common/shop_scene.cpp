#include "common/shop_scene.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>

namespace examples {

ShopScene::ShopScene(const std::string& title) {
  std::cout << '\n' << title << '\n';
  create_postrider_tables(database_path());
  database_ = std::make_unique<Database>(database_path());
  database_->script(
      "CREATE TABLE orders (id INTEGER PRIMARY KEY, total_cents INTEGER NOT NULL);"
      "CREATE TABLE lines (order_id INTEGER NOT NULL REFERENCES orders (id)"
      "  DEFERRABLE INITIALLY DEFERRED)");
}

void ShopScene::bring_broker_up() {
  std::filesystem::create_directory(folder_.file("broker"));
}

std::int64_t ShopScene::messages() const {
  std::ifstream file(broker_file());
  std::int64_t count = 0;
  for (std::string line; std::getline(file, line);)
    ++count;
  return count;
}

bool ShopScene::tell() {
  const auto orders = database_->number("SELECT count(*) FROM orders");
  const auto waiting =
      database_->number("SELECT count(*) FROM outbox_events WHERE routed_at IS NULL");
  const auto sent = messages();
  std::cout << "   orders in the database: " << orders << ", events that wait there: " << waiting
            << ", messages at the broker: " << sent << '\n';
  if (orders > sent + waiting) {
    std::cout << "   LOST: the order exists, and nothing knows that a message is due.\n";
  } else if (orders < sent + waiting) {
    std::cout << "   MADE UP: others were told of an order that does not exist.\n";
  } else {
    std::cout << "   They agree.\n";
  }
  return orders == sent + waiting;
}

void insert_order(Database& database) {
  database.run("INSERT INTO orders (total_cents) VALUES (?)", {2500});
}

void insert_line_that_breaks_the_commit(Database& database) {
  database.run("INSERT INTO lines (order_id) VALUES (?)", {99});
}

}  // namespace examples
