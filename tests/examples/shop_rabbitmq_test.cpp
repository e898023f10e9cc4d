// The two example services with a RabbitMQ between them, and the relay as the daemon that it is.
#include <csignal>

#include <gmock/gmock.h>

#include "cli/program.hpp"
#include "common/database.hpp"
#include "common/http.hpp"
#include "examples/example_service.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {
namespace {

constexpr int orders = 20;
const std::string name = "example-shop";

class ShopWithRabbitmq : public ::testing::Test {
 protected:
  void SetUp() override {
    need_rabbitmq();
    if (IsSkipped() || HasFatalFailure()) return;
    broker_ = &shared_rabbitmq();
    shop_ = std::make_unique<ExampleService>(
        folder_, "shop", std::vector<std::string>{"--database", folder_.file("shop.db")},
        "listening on");
    workshop_.write("postrider.toml", "store = \"sqlite:" + folder_.file("shop.db") +
                                          "\"\n[[routes]]\nname = \"delivery\"\nto = \"" + url() +
                                          "\"\n[routes.amqp]\nexchange = \"" + name +
                                          "\"\n[relay]\nprobe_most = \"1s\"\n");
  }

  void TearDown() override {
    if (broker_ == nullptr || !broker_->running()) return;
    delivery_.reset();
    RabbitmqSession session(broker_->ports().amqp);
    session.delete_queue(name);
    session.delete_exchange(name);
  }

  [[nodiscard]] std::string url() const {
    return "amqp://127.0.0.1:" + std::to_string(broker_->ports().amqp);
  }

  void start_delivery() {
    delivery_ = std::make_unique<ExampleService>(
        folder_, "delivery",
        std::vector<std::string>{"--database", folder_.file("delivery.db"), "--from", url(),
                                 "--exchange", name, "--queue", name},
        "consumer: connected");
  }

  int post(const std::string& target, const std::string& body = {}) const {
    const auto answer = examples::send_http(
        shop_->port(), {"POST", target, {{"content-type", "application/json"}}, body},
        Deadline::after(std::chrono::seconds(30)));
    return answer ? answer.value().status : 0;
  }
  void place_orders() const {
    for (int id = 1; id <= orders; ++id)
      EXPECT_EQ(post("/orders", R"({"item":"lamp","quantity":1})"), 201);
    for (const std::string step : {"/payment", "/shipment"}) {
      for (int id = 1; id <= orders; ++id)
        EXPECT_EQ(post("/orders/" + std::to_string(id) + step), 200);
    }
  }

  [[nodiscard]] std::int64_t effects() const {
    return examples::Database(folder_.file("delivery.db")).number("SELECT count(*) FROM effects");
  }
  [[nodiscard]] std::vector<examples::SqlRow> effects_by_order() const {
    return examples::Database(folder_.file("delivery.db"))
        .run(
            "SELECT group_concat(type) FROM (SELECT order_id, type FROM effects ORDER BY n)"
            " GROUP BY order_id");
  }

  Rabbitmq* broker_ = nullptr;
  TemporaryFolder folder_{"shop"};
  Workshop workshop_;
  std::unique_ptr<ExampleService> shop_;
  std::unique_ptr<ExampleService> delivery_;
};

TEST_F(ShopWithRabbitmq,
       R036_R037_orders_are_answered_while_the_broker_is_down_and_have_their_effect_once_after) {
  start_delivery();
  const auto relay = workshop_.start({"relay", "--loop"});
  broker_->stop();

  place_orders();
  EXPECT_EQ(effects(), 0);

  broker_->start();
  ASSERT_TRUE(eventually([&] { return effects() >= orders; }));
  delivery_->process().kill();
  start_delivery();
  ASSERT_TRUE(eventually([&] { return effects() >= 3 * orders; })) << relay->err();

  relay->signal(SIGTERM);
  EXPECT_EQ(relay->finish().code, 0);
  const auto rows = effects_by_order();
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(orders));
  for (const auto& row : rows)
    EXPECT_EQ(row[0], "order.placed,order.paid,order.shipped");
  EXPECT_EQ(examples::Database(folder_.file("delivery.db")).number("SELECT count(*) FROM parcels"),
            orders);
}

TEST_F(ShopWithRabbitmq, A_message_that_can_never_be_taken_is_set_aside_and_holds_up_nobody) {
  start_delivery();
  RabbitmqSession session(broker_->ports().amqp);
  examples::Database shop(folder_.file("shop.db"));
  shop.run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)"
      " VALUES ('order', '99', 'order.placed', '{card 4711')");
  EXPECT_EQ(post("/orders", R"({"item":"lamp","quantity":1})"), 201);

  EXPECT_EQ(workshop_.run({"relay"}).code, 0);

  ASSERT_TRUE(eventually([&] { return effects() >= 1; }));
  EXPECT_THAT(delivery_->output(), ::testing::HasSubstr("invalid_argument"));
  EXPECT_THAT(delivery_->output(), ::testing::Not(::testing::HasSubstr("4711")))
      << "a payload stands in no log";
  EXPECT_EQ(effects_by_order().size(), 1U);
}

}  // namespace
}  // namespace postrider::testing
