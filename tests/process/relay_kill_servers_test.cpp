// kill -9 of the relay between PostgreSQL and RabbitMQ (F1 to F4).
#include <string>

#include <gtest/gtest.h>

#include "backends/postgres_database.hpp"
#include "process/kill_run.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {
namespace {

std::string configuration(const PostgresDatabase& database, const std::string& exchange) {
  const auto store = "postgresql://postgres@127.0.0.1:" + std::to_string(database.server().port()) +
                     "/" + database.name();
  const auto broker = "amqp://127.0.0.1:" + std::to_string(shared_rabbitmq().ports().amqp);
  return "store = \"" + store + "\"\n[[routes]]\nname = \"all\"\nto = \"" + broker +
         "\"\n[routes.amqp]\nexchange = \"" + exchange + "\"\n";
}

TEST(RelayKill, F1_to_F4_at_50_random_moments_from_PostgreSQL_to_RabbitMQ) {
  POSTRIDER_NEEDS_POSTGRES();
  need_rabbitmq();
  if (IsSkipped() || HasFailure()) return;
  const std::string name = "kill-run";
  RabbitmqSession session(shared_rabbitmq().ports().amqp);
  session.declare_exchange(name);
  session.declare_queue(name);
  session.bind(name, name, "#");
  PostgresDatabase database;
  Workshop shop;
  shop.write("postrider.toml", configuration(database, name) + std::string(relay_settings));
  const auto migrated = shop.run({"migrate"});
  ASSERT_EQ(migrated.code, 0) << migrated.err;

  std::vector<Arrived> all;
  KillRun run;
  run.open_store = [&database] { return database.open_store(); };
  run.arrived = [&] {
    for (auto& message : session.take_all(name)) {
      all.push_back({std::stoll(message.headers.at("postrider-seq")),
                     message.headers.at("postrider-aggregate-id"), message.message_id,
                     message.body});
    }
    return all;
  };
  run.progress = [&run] { return run.arrived().size(); };
  expect_survival(shop, run);
  session.delete_queue(name);
  session.delete_exchange(name);
}

}  // namespace
}  // namespace postrider::testing
