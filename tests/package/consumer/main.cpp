// A shop that takes an order, with the relay inside. Built against an installed Postrider by
// tests/package; the regions between the brackets are in docs/learn/use-as-a-library.md.
//
//   shop FOLDER    FOLDER is empty; ends with 0 when exactly the committed order was announced

#include <sqlite3.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <postrider/publisher/file.hpp>
#include <postrider/relay.hpp>
#include <postrider/sqlite.hpp>
#include <postrider/store/sqlite.hpp>
#include <postrider/typed_event.hpp>

namespace shop {

using postrider::Deadline;
using postrider::Result;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(30));
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// The value, or the end of the program with the error's own words.
template <class T>
T value_of(Result<T> result) {
  require(result.ok(), result.ok() ? "" : postrider::describe(result.error()));
  return std::move(result).value();
}

/// What the shop itself does with its database.
class Database {
 public:
  explicit Database(const std::string& path) {
    require(sqlite3_open(path.c_str(), &handle_) == SQLITE_OK, "cannot open " + path);
    run("CREATE TABLE orders (id INTEGER PRIMARY KEY, total_cents INTEGER NOT NULL)");
  }
  ~Database() { sqlite3_close(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql) {
    require(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
            sqlite3_errmsg(handle_));
  }
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

// [migrate]
/// Once, before the first event: the tables of Postrider, beside those of the shop.
void migrate(const std::string& path) {
  postrider::SqliteOptions options;
  options.path = path;
  options.create = true;
  value_of(postrider::make_sqlite_migrator(options)->up(std::nullopt, soon()));
}
// [migrate]

// [write]
struct OrderPlaced {
  std::int64_t orderId = 0;
  std::int64_t totalCents = 0;
};
POSTRIDER_EVENT(OrderPlaced, "order.placed", orderId, totalCents)

/// The order and its event: both are committed, or neither.
Result<postrider::EventId> place_order(Database& database, const OrderPlaced& order,
                                       bool card_is_declined) {
  const postrider::SqliteOutbox outbox;
  return postrider::transaction(database.handle(), [&]() -> Result<postrider::EventId> {
    database.run("INSERT INTO orders VALUES (" + std::to_string(order.orderId) + ", " +
                 std::to_string(order.totalCents) + ")");
    const auto event =
        postrider::make_event(order, postrider::Aggregate{"order", std::to_string(order.orderId)});
    if (!event) return event.error();
    auto id = outbox.add(database.handle(), *event);
    if (card_is_declined) throw std::runtime_error("the card is declined");
    return id;
  });
}
// [write]

// [relay]
class SilentObserver final : public postrider::Observer {
 public:
  void notice(const postrider::Notice& /*notice*/) override {}
};

/// One pass. A service calls `run` instead, in a thread of its own, and `request_stop` at its end.
postrider::PassReport relay_to_file(const std::string& database, const std::string& file) {
  postrider::SqliteOptions store;
  store.path = database;
  postrider::FileOptions destination;
  destination.path = file;
  postrider::Route route;
  route.name = "announcements";
  route.destination = "file:" + file;

  std::vector<postrider::RouteBinding> routes;
  routes.push_back({route, postrider::make_file_publisher(destination)});
  const auto random = postrider::system_random();
  SilentObserver observer;
  postrider::Relay relay(postrider::make_sqlite_store(store), std::move(routes), {},
                         postrider::system_clock(), *random, observer);
  return value_of(relay.run_once());
}
// [relay]

bool is_declined(Database& database, const OrderPlaced& order) {
  try {
    (void)place_order(database, order, true);
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

void play(const std::string& folder) {
  const auto path = folder + "/shop.db";
  const auto announced = folder + "/announced.jsonl";
  Database database(path);
  migrate(path);
  const auto id = value_of(place_order(database, {1, 2500}, false));
  require(is_declined(database, {2, 900}), "an exception did not come back to its caller");

  const auto report = relay_to_file(path, announced);
  require(report.errors.empty(), "the relay reports an error");
  require(report.sent.size() == 1 && report.sent[0].event_id == id,
          "not exactly the committed event was sent");
  require(relay_to_file(path, announced).sent.empty(), "the event was sent twice");

  std::ifstream file(announced);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  require(text.find(R"("payload":"{\"orderId\":1,\"totalCents\":2500}")") != std::string::npos,
          "the payload is not in the file: " + text);
  require(text.find('\n') == text.size() - 1, "not exactly one line: " + text);
}

}  // namespace shop

int main(int count, char** arguments) {
  try {
    shop::require(count == 2, "usage: shop FOLDER");
    shop::play(arguments[1]);
  } catch (const std::exception& failure) {
    std::cerr << "shop: " << failure.what() << "\n";
    return 1;
  }
  std::cout << "shop: one order committed and announced, one rolled back and not\n";
  return 0;
}
