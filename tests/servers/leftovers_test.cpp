// What a supervisor finds on its server before it ends it. Processes and folders are found by
// scripts/find-leftovers, which has a test of its own.

#include <stdexcept>
#include <string>

#include <gmock/gmock.h>

#include "backends/postgres_database.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_session.hpp"
#include "servers/report_leftovers.hpp"

namespace postrider::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Leftovers, A_database_is_named_until_it_is_dropped) {
  POSTRIDER_NEEDS_POSTGRES();
  auto& server = shared_postgres();
  const auto name = server.create_database();

  EXPECT_THAT(server.leftovers(), Contains(HasSubstr("database " + name)));

  server.drop_database(name);
  EXPECT_THAT(server.leftovers(), Not(Contains(HasSubstr(name))));
}

TEST(Leftovers, A_schema_in_the_database_of_all_is_named_until_it_is_dropped) {
  POSTRIDER_NEEDS_POSTGRES();
  auto& server = shared_postgres();
  PostgresSession session(server.conninfo("postgres"));
  session.run("CREATE SCHEMA leftover_of_a_test");

  EXPECT_THAT(server.leftovers(), Contains("schema leftover_of_a_test"));

  session.run("DROP SCHEMA leftover_of_a_test");
  EXPECT_THAT(server.leftovers(), Not(Contains("schema leftover_of_a_test")));
}

TEST(Leftovers, A_queue_and_an_exchange_are_named_until_they_are_deleted) {
  need_rabbitmq();
  if (IsSkipped() || HasFailure()) return;
  auto& server = shared_rabbitmq();
  const std::string name = "leftover-of-a-test";
  RabbitmqSession session(server.ports().amqp);
  session.declare_queue(name);
  session.declare_exchange(name);

  EXPECT_THAT(server.leftovers(), Contains("queue " + name));
  EXPECT_THAT(server.leftovers(), Contains("exchange " + name));

  session.delete_queue(name);
  session.delete_exchange(name);
  EXPECT_THAT(server.leftovers(), Not(Contains(HasSubstr(name))));
}

TEST(Leftovers, A_supervisor_fails_for_what_is_left_and_for_a_server_that_says_nothing) {
  EXPECT_TRUE(nothing_is_left([] { return std::vector<std::string>(); }));
  EXPECT_FALSE(nothing_is_left([] { return std::vector<std::string>{"queue a"}; }));
  EXPECT_FALSE(nothing_is_left(
      []() -> std::vector<std::string> { throw std::runtime_error("nobody listens"); }));
}

}  // namespace
}  // namespace postrider::testing
