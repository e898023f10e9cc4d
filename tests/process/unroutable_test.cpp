// An event whose exchange has no binding, from the database to the queue, by the program's own
// commands.
#include <string>

#include <gmock/gmock.h>

#include "cli/program.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

TEST(Unroutable, F77_it_becomes_a_dead_letter_and_dead_retry_delivers_it_once_a_binding_exists) {
  need_rabbitmq();
  if (IsSkipped() || HasFailure()) return;
  const std::string name = "unroutable-run";
  const auto port = shared_rabbitmq().ports().amqp;
  RabbitmqSession session(port);
  session.declare_exchange(name);
  session.declare_queue(name);
  Workshop shop;
  shop.write("postrider.toml",
             "store = \"sqlite:app.db\"\n[[routes]]\nname = \"all\"\nto = "
             "\"amqp://127.0.0.1:" +
                 std::to_string(port) + "\"\n[routes.amqp]\nexchange = \"" + name + "\"\n");
  ASSERT_EQ(shop.run({"migrate"}).code, 0);
  const auto emitted = shop.run(
      {"emit", "--type", "order.placed", "--aggregate", "order/1", "--payload", "{\"id\":1}"});
  ASSERT_EQ(emitted.code, 0) << emitted.err;

  EXPECT_EQ(shop.run({"relay"}).code, 0);
  EXPECT_TRUE(session.take_all(name).empty());
  const auto dead = shop.run({"dead", "list"});
  EXPECT_THAT(dead.out, HasSubstr("unroutable"));

  session.bind(name, name, "#");
  const auto retried = shop.run({"dead", "retry", "--all", "--yes", "--reason", "bound now"});
  ASSERT_EQ(retried.code, 0) << retried.err;
  EXPECT_EQ(shop.run({"relay"}).code, 0);
  const auto arrived = session.take_all(name);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].body, "{\"id\":1}");
  session.delete_queue(name);
  session.delete_exchange(name);
}

}  // namespace
}  // namespace postrider::testing
