// The fault that the outbox removes: an order service that writes to a database and to a broker,
// without it and with it. SQLite and files are real; processes that die are killed.

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <postrider/publisher/file.hpp>
#include <postrider/relay.hpp>
#include <postrider/sqlite.hpp>
#include <postrider/testing/memory_publisher.hpp>
#include <postrider/typed_event.hpp>

#include "outbox/inbox_builders.hpp"
#include "outbox/outbox_builders.hpp"

namespace shop {

struct OrderPlaced {
  std::int64_t orderId = 0;
  std::int64_t totalCents = 0;
};
POSTRIDER_EVENT(OrderPlaced, "order.placed", orderId, totalCents)

}  // namespace shop

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SilentObserver final : public Observer {
 public:
  void notice(const Notice&) override {}
};

/// What a broker's client gives to a service: one call that says whether the message was taken.
class Broker {
 public:
  explicit Broker(std::unique_ptr<Publisher> publisher) : publisher_(std::move(publisher)) {}

  [[nodiscard]] bool publish(const shop::OrderPlaced& placed) {
    const auto made = make_event(placed, Aggregate{"order", std::to_string(placed.orderId)});
    if (!made) return false;
    auto event = std::make_shared<Event>();
    event->id = EventId(fresh_uuid());
    event->type = made->type;
    event->payload = made->payload;
    event->content_type = made->content_type;
    const std::vector<Message> messages = {
        {AttemptId(1), event, DispatchId(fresh_uuid()), milliseconds(1000)}};
    if (!publisher_->submit(messages, soon())) return false;
    const auto outcomes = publisher_->poll(soon());
    return outcomes.size() == 1 && outcomes[0].outcome.kind == OutcomeKind::confirmed;
  }

 private:
  std::unique_ptr<Publisher> publisher_;
};

class DualWrite : public ::testing::Test {
 protected:
  /// The business transaction with its event.
  static Result<EventId> place_order(
      sqlite3* database, const std::function<void()>& then = [] {}) {
    const SqliteOutbox outbox;
    return transaction(database, [&]() -> Result<EventId> {
      sqlite3_exec(database, "INSERT INTO orders (total_cents) VALUES (2500)", nullptr, nullptr,
                   nullptr);
      const auto event = make_event(shop::OrderPlaced{1, 2500}, Aggregate{"order", "1"});
      if (!event) return event.error();
      auto id = outbox.add(database, *event);
      then();
      return id;
    });
  }

  /// A relay that was just started, to this destination.
  [[nodiscard]] std::unique_ptr<Relay> relay_to(std::unique_ptr<Publisher> publisher) {
    Route route;
    route.name = "out";
    route.destination = "memory:";
    std::vector<RouteBinding> routes;
    routes.push_back({route, std::move(publisher)});
    RelayOptions options;
    options.sleep = milliseconds(1);
    options.probe_least = milliseconds(1);
    options.probe_most = milliseconds(5);
    return std::make_unique<Relay>(shop_.database().store(), std::move(routes), options,
                                   system_clock(), *random_, observer_);
  }
  void drain_to(std::unique_ptr<Publisher> publisher) {
    const auto relay = relay_to(std::move(publisher));
    EXPECT_TRUE(value_of(relay->drain(std::nullopt)).drained);
  }

  [[nodiscard]] std::vector<std::string> published() const {
    std::vector<std::string> payloads;
    for (const auto& event : journal_->accepted())
      payloads.push_back(event->type + " " + event->payload);
    return payloads;
  }

  [[nodiscard]] std::string broker_file() const {
    return shop_.database().folder() / "broker.jsonl";
  }
  [[nodiscard]] std::string in_broker_file() const {
    std::ifstream file(broker_file());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Shop shop_;
  std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
  std::unique_ptr<Random> random_ = system_random();
  SilentObserver observer_;
};

constexpr auto the_event = R"(order.placed {"orderId":1,"totalCents":2500})";

TEST_F(DualWrite, R001_R107_commit_then_publish_with_the_broker_down_loses_the_event_for_good) {
  Broker broker(make_memory_publisher(journal_));
  journal_->set_down(true);

  shop_.insert_order();
  EXPECT_FALSE(broker.publish({1, 2500}));

  journal_->set_down(false);
  drain_to(make_memory_publisher(journal_));
  EXPECT_EQ(shop_.orders(), "1");
  EXPECT_THAT(published(), IsEmpty());
  EXPECT_EQ(shop_.events(), "0") << "nothing remembers it";
}

TEST_F(DualWrite, R002_publish_then_a_failing_commit_announces_an_order_that_does_not_exist) {
  Broker broker(make_memory_publisher(journal_));
  shop_.app().must("PRAGMA foreign_keys = ON");
  shop_.app().must(
      "CREATE TABLE lines (order_id INTEGER REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");

  const auto placed = transaction(shop_.handle(), [&] {
    shop_.insert_order();
    shop_.app().must("INSERT INTO lines VALUES (99)");
    EXPECT_TRUE(broker.publish({1, 2500}));
  });

  EXPECT_FALSE(placed.ok());
  EXPECT_EQ(shop_.orders(), "0");
  EXPECT_THAT(published(), ElementsAre(the_event));
}

TEST_F(DualWrite, R003_a_process_killed_between_commit_and_publish_loses_the_event) {
  const auto path = shop_.database().path();
  const auto broker_path = broker_file();
  expect_killed([&] {
    RawConnection mine(path);
    Broker broker(make_file_publisher({broker_path}));
    mine.run("INSERT INTO orders (total_cents) VALUES (2500)");
    die();
    static_cast<void>(broker.publish({1, 2500}));
  });

  drain_to(make_file_publisher({broker_file()}));
  EXPECT_EQ(shop_.orders(), "1");
  EXPECT_EQ(in_broker_file(), "");
}

TEST_F(DualWrite, R003_with_the_outbox_the_same_kill_only_delays_the_event) {
  const auto path = shop_.database().path();
  expect_killed([&] {
    RawConnection mine(path);
    if (place_order(mine.handle()).ok()) die();
  });

  drain_to(make_file_publisher({broker_file()}));
  EXPECT_EQ(shop_.orders(), "1");
  EXPECT_THAT(in_broker_file(), HasSubstr(R"("type":"order.placed")"));
  EXPECT_THAT(in_broker_file(), HasSubstr(R"({\"orderId\":1,\"totalCents\":2500})"));
}

TEST_F(DualWrite, R006_a_process_killed_before_its_commit_has_neither_order_nor_event) {
  const auto path = shop_.database().path();
  expect_killed([&] {
    RawConnection mine(path);
    static_cast<void>(place_order(mine.handle(), die));
  });

  drain_to(make_memory_publisher(journal_));
  EXPECT_EQ(shop_.orders(), "0");
  EXPECT_THAT(published(), IsEmpty());
}

TEST_F(DualWrite, R108_with_the_outbox_the_event_waits_until_the_broker_is_back) {
  journal_->set_down(true);
  EXPECT_TRUE(place_order(shop_.handle()).ok()) << "R037: the order does not need the broker";
  const auto relay = relay_to(make_memory_publisher(journal_));
  EXPECT_TRUE(value_of(relay->run_once()).sent.empty());
  EXPECT_EQ(shop_.app().value("SELECT count(*) FROM outbox_events"), "1");
  EXPECT_THAT(published(), IsEmpty());

  journal_->set_down(false);
  EXPECT_TRUE(value_of(relay->drain(std::nullopt)).drained);
  EXPECT_THAT(published(), ElementsAre(the_event));
}

TEST_F(DualWrite, R109_an_exception_in_the_transaction_takes_back_order_and_event) {
  EXPECT_THROW(static_cast<void>(place_order(shop_.handle(),
                                             [] { throw std::runtime_error("no such customer"); })),
               std::runtime_error);

  drain_to(make_memory_publisher(journal_));
  EXPECT_EQ(shop_.orders(), "0");
  EXPECT_EQ(shop_.events(), "0");
  EXPECT_THAT(published(), IsEmpty());
}

TEST_F(DualWrite, R002_with_the_outbox_a_failing_commit_announces_nothing) {
  shop_.app().must("PRAGMA foreign_keys = ON");
  shop_.app().must(
      "CREATE TABLE lines (order_id INTEGER REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");

  const auto placed =
      place_order(shop_.handle(), [&] { shop_.app().must("INSERT INTO lines VALUES (99)"); });

  EXPECT_FALSE(placed.ok());
  drain_to(make_memory_publisher(journal_));
  EXPECT_EQ(shop_.orders(), "0");
  EXPECT_THAT(published(), IsEmpty());
}

}  // namespace
}  // namespace postrider::testing
