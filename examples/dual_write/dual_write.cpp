// The fault that an outbox removes. An order has to be in the database, and a message about it at
// the broker: two systems, and no transaction over both. Whichever is written first, it can go
// wrong. The database is a SQLite, the crash is a SIGKILL.

#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>

#include <postrider/sqlite.hpp>

#include "common/shop_scene.hpp"
#include "common/sudden_death.hpp"

namespace {

using examples::Database;
using examples::ShopScene;

/// What a broker's client gives to a service: one call that says whether the message was taken.
class Broker {
 public:
  explicit Broker(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] bool publish(const std::string& message) const {
    std::ofstream file(file_, std::ios::app);
    file << message << std::endl;
    return file.good();
  }

 private:
  std::string file_;
};

constexpr auto order_placed = R"({"orderId":1,"totalCents":2500})";

/// What happens at a moment that matters.
using Incident = std::function<void()>;
const Incident nothing = [] {};

// [commit-then-send]
bool commit_then_send(Database& database, const Broker& broker, const Incident& between = nothing) {
  insert_order(database);  // is committed
  between();
  return broker.publish(order_placed);
}
// [commit-then-send]

// [send-then-commit]
bool send_then_commit(Database& database, const Broker& broker) {
  const auto committed = postrider::transaction(database.handle(), [&] {
    insert_order(database);
    insert_line_that_breaks_the_commit(database);
    if (!broker.publish(order_placed)) throw std::runtime_error("the broker is down");
  });
  return committed.ok();
}
// [send-then-commit]

/// True when the scene ended as the title says.
bool broker_down() {
  ShopScene scene("Commit, then send. The broker is down.");
  const bool sent = commit_then_send(scene.database(), Broker(scene.broker_file()));
  scene.bring_broker_up();
  return !sent && !scene.tell();
}

bool failing_commit() {
  ShopScene scene("Send, then commit. The commit fails: a constraint does not hold.");
  scene.bring_broker_up();
  const bool committed = send_then_commit(scene.database(), Broker(scene.broker_file()));
  return !committed && !scene.tell();
}

bool crash_in_between() {
  ShopScene scene("Commit, then send. The process is killed between the two.");
  scene.bring_broker_up();
  examples::in_a_process_that_dies([&] {
    Database database(scene.database_path());
    static_cast<void>(
        commit_then_send(database, Broker(scene.broker_file()), examples::die_at_once));
  });
  const bool agree = scene.tell();
  std::cout << "   No retry around the call helps: who would retry is gone.\n";
  return !agree;
}

}  // namespace

int main() {
  try {
    std::cout << "The dual write: one order, two systems.\n";
    bool shown = true;
    for (const auto scene : {broker_down, failing_commit, crash_in_between})
      shown = scene() && shown;
    std::cout << "\nThe same three with an outbox: see the example `outbox`.\n";
    return shown ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "dual_write: " << error.what() << '\n';
    return 70;
  }
}
