// The three faults of the example `dual_write`, met with an outbox: the message is a row, written
// in the transaction of the order. A relay carries it to the broker, now or later.

#include <functional>
#include <iostream>

#include <postrider/publisher/file.hpp>
#include <postrider/relay.hpp>
#include <postrider/sqlite.hpp>
#include <postrider/store/sqlite.hpp>

#include "common/order_events.hpp"
#include "common/shop_scene.hpp"
#include "common/silent_observer.hpp"
#include "common/sudden_death.hpp"

namespace {

using examples::Database;
using examples::OrderPlaced;
using examples::ShopScene;
using postrider::EventId;
using postrider::Result;

/// What happens at a moment that matters.
using Incident = std::function<void()>;
const Incident nothing = [] {};

// [place-order]
Result<EventId> place_order(Database& database, const Incident& before_commit = nothing) {
  const postrider::SqliteOutbox outbox;
  return postrider::transaction(database.handle(), [&]() -> Result<EventId> {
    insert_order(database);
    const auto event = make_event(OrderPlaced{1, "lamp", 1, 2500}, examples::order_aggregate(1));
    if (!event) return event.error();
    auto id = outbox.add(database.handle(), *event);
    before_commit();
    return id;
  });
}
// [place-order]

// [relay]
/// One pass of a relay that was just started, as `postrider relay` does it.
void run_relay(const ShopScene& scene) {
  std::vector<postrider::RouteBinding> routes(1);
  routes[0].route.name = "broker";
  routes[0].route.destination = "file:" + scene.broker_file();
  routes[0].publisher = postrider::make_file_publisher({scene.broker_file()});
  const auto random = postrider::system_random();
  examples::SilentObserver observer;
  postrider::Relay relay(postrider::make_sqlite_store({scene.database_path(), {}}),
                         std::move(routes), {}, postrider::system_clock(), *random, observer);
  const auto pass = examples::value_or_throw(relay.run_once());
  std::cout << "   the relay delivers " << pass.sent.size() << ", and leaves " << pass.waiting
            << " in the table\n";
}
// [relay]

/// True when the order was placed, and database and broker agree whenever somebody looks.
bool broker_down() {
  ShopScene scene("The broker is down.");
  const bool placed = place_order(scene.database()).ok();
  run_relay(scene);
  const bool agree = scene.tell();
  std::cout << "   The broker comes back.\n";
  scene.bring_broker_up();
  run_relay(scene);
  return placed && agree && scene.tell();
}

bool failing_commit() {
  ShopScene scene("The commit fails: a constraint does not hold.");
  scene.bring_broker_up();
  const bool placed = place_order(scene.database(), [&] {
                        insert_line_that_breaks_the_commit(scene.database());
                      }).ok();
  run_relay(scene);
  return !placed && scene.tell();
}

bool crash_after_commit() {
  ShopScene scene("The process is killed after its commit, before anything was sent.");
  scene.bring_broker_up();
  examples::in_a_process_that_dies([&] {
    Database database(scene.database_path());
    if (place_order(database).ok()) examples::die_at_once();
  });
  const bool agree = scene.tell();
  run_relay(scene);
  return agree && scene.tell();
}

bool crash_before_commit() {
  ShopScene scene("The process is killed before its commit.");
  scene.bring_broker_up();
  examples::in_a_process_that_dies([&] {
    Database database(scene.database_path());
    static_cast<void>(place_order(database, examples::die_at_once));
  });
  run_relay(scene);
  return scene.tell();
}

}  // namespace

int main() {
  try {
    std::cout << "The outbox: the message is a row in the order's own transaction.\n";
    bool kept = true;
    for (const auto scene : {broker_down, failing_commit, crash_after_commit, crash_before_commit})
      kept = scene() && kept;
    std::cout << (kept ? "\nEvery promise was kept.\n" : "\nA promise was BROKEN.\n");
    return kept ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "outbox: " << error.what() << '\n';
    return 70;
  }
}
