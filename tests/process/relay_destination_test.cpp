// A destination that reads slowly, whose name does not resolve, or whose queue vanishes.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "process/patience.hpp"
#include "process/relay_line.hpp"
#include "servers/chaos_proxy.hpp"
#include "servers/rabbitmq_server.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

const std::string quick_relay =
    "[relay]\nbatch = 100\nbatch_bytes = 1048576\nsleep = \"10ms\"\nsettle_patience = \"100ms\"\n"
    "probe_least = \"20ms\"\nprobe_most = \"100ms\"\n";
const std::string beside_a_file = "[[routes]]\nname = \"file\"\nto = \"file:events.jsonl\"\n";

TEST(RelayDestination, F72_a_receiver_that_stops_reading_costs_bounded_memory_and_only_itself) {
  if (lacks_servers()) return;
  ChaosProxy proxy(shared_rabbitmq().ports().amqp);
  LineSettings settings;
  settings.broker_port = proxy.port();
  settings.relay = quick_relay;
  settings.route = "window = 50\n";
  settings.more = beside_a_file;
  RelayLine line("slow-receiver", settings);
  auto run = line.run();
  run.events = 2000;
  const auto relay = line.start_relay();
  write_events(run, 0, 100);  // The connection is there before it gets slow.
  ASSERT_TRUE(comes_true([&] { return line.arrived().size() == 100; }));

  const auto before = relay->peak_memory_bytes();
  proxy.tell("up black-hole");
  constexpr std::int64_t payload_bytes = 32 << 10;
  line.sql(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) "
      "SELECT 'order', (n % 100)::text, 'order.changed', "
      "n || repeat('x', " +
      std::to_string(payload_bytes) +
      ") "
      "FROM generate_series(1, 1900) AS n");
  EXPECT_TRUE(comes_true([&] { return line.unrouted() == 0; })) << "the other route has to wait";
  EXPECT_EQ(line.arrived().size(), 100U);
  EXPECT_LT(relay->peak_memory_bytes() - before, 1900 * payload_bytes / 2);

  proxy.tell("up pass");
  EXPECT_TRUE(all_arrive(run)) << relay->err();
  expect_clean_stop(*relay);
  expect_sound(run, line.arrived());
}

TEST(RelayDestination,
     F78_a_queue_that_is_deleted_under_load_makes_dead_letters_that_can_be_retried) {
  if (lacks_servers()) return;
  LineSettings settings;
  settings.relay = quick_relay;
  settings.route = "window = 20\n";
  RelayLine line("deleted-queue", settings);
  auto run = line.run();
  run.events = 1000;
  write_events(run, 0, run.events);
  const auto relay = line.start_relay();
  ASSERT_TRUE(comes_true([&] { return run.progress() >= 50; }));
  line.session().delete_queue(line.name());
  write_events(run, run.events, run.events + 100);  // All before may have been sent by now.
  EXPECT_TRUE(tells(*relay, "route_paused")) << relay->err();
  EXPECT_TRUE(tells(*relay, "delivery_failed")) << relay->err();
  EXPECT_THAT(relay->err(), HasSubstr("unroutable"));

  line.declare_queue();
  const auto waiting = "outbox_deliveries WHERE current AND status IN ('pending', 'failed')";
  const auto retried =
      line.shop().run({"dead", "retry", "--all", "--yes", "--reason", "the queue is there again"});
  EXPECT_EQ(retried.code, 0) << retried.err;
  // One that failed between the two commands.
  EXPECT_TRUE(comes_true([&] {
    line.shop().run({"dead", "retry", "--all", "--yes", "--reason", "again"});
    return line.unrouted() == 0 && line.count(waiting) == 0;
  }));
  expect_clean_stop(*relay);
  expect_ordered(line.arrived());
  // What is missing was on the queue: RabbitMQ had confirmed it at the first attempt.
  std::string ids = "'00000000-0000-0000-0000-000000000000'";
  for (const auto& one : line.arrived())
    ids += ",'" + one.id + "'";
  EXPECT_EQ(line.count("outbox_deliveries WHERE event_id NOT IN (" + ids + ")"), 0);
  EXPECT_GT(line.count("outbox_deliveries WHERE status = 'failed' AND failure_code = "
                       "'unroutable' AND NOT current"),
            0);
}

/// From now on its programs ask the file `hosts` first.
void let_test_resolve(Workshop& shop) {
  shop.variables["LD_PRELOAD"] = POSTRIDER_FAKE_RESOLVER;
  shop.variables["ASAN_OPTIONS"] = "verify_asan_link_order=0";  // It wants to be first itself.
  shop.variables["POSTRIDER_TEST_HOSTS"] = shop.path("hosts").string();
}

/// A line whose broker has a name that the test resolves.
class NamedLine {
 public:
  explicit NamedLine(const std::string& name, const std::string& more = {},
                     const std::string& route = {})
      : line_(name, {quick_relay, route, more, "broker.test", proxy_.port(), 0, nullptr}) {
    let_test_resolve(line_.shop());
    run_ = line_.run();
    run_.events = 300;
  }
  void resolve(const std::string& fate) {
    line_.shop().write("hosts", "broker.test " + fate + "\n");
  }
  [[nodiscard]] RelayLine& line() { return line_; }
  [[nodiscard]] ChaosProxy& proxy() { return proxy_; }
  [[nodiscard]] const DrainRun& run() const { return run_; }

 private:
  ChaosProxy proxy_{shared_rabbitmq().ports().amqp};
  RelayLine line_;
  DrainRun run_;
};

TEST(RelayDestination, F75_a_name_is_resolved_again_at_each_connection) {
  if (lacks_servers()) return;
  NamedLine named("resolved-names");
  auto& line = named.line();
  named.resolve("fail");
  write_events(named.run(), 0, 100);
  const auto relay = line.start_relay();
  EXPECT_TRUE(tells(*relay, "route_paused"));
  EXPECT_EQ(line.unrouted(), 100);

  named.resolve("127.0.0.9 ::1 127.0.0.1");  // Nobody listens at the first two.
  EXPECT_TRUE(tells(*relay, "route_resumed"));
  EXPECT_TRUE(comes_true([&] { return line.arrived().size() == 100; }));

  named.resolve("127.0.0.9");
  named.proxy().tell("both reset");
  write_events(named.run(), 100, 200);
  EXPECT_TRUE(tells(*relay, "route_paused", 2));
  EXPECT_LT(line.arrived().size(), 200U);
  named.resolve("127.0.0.1");
  write_events(named.run(), 200, 300);
  EXPECT_TRUE(all_arrive(named.run())) << relay->err();
  expect_clean_stop(*relay);
  expect_sound(named.run(), line.arrived());
  EXPECT_EQ(line.count("outbox_deliveries WHERE attempts > 1"), 0);
}

TEST(RelayDestination,
     F75_a_resolver_that_does_not_answer_delays_neither_other_routes_nor_the_end) {
  if (lacks_servers()) return;
  NamedLine named("slow-resolver", beside_a_file, "timeout = \"500ms\"\n");
  auto& line = named.line();
  named.resolve("slow 60000");
  const auto relay = line.start_relay();
  write_events(named.run(), 0, named.run().events);
  EXPECT_TRUE(comes_true([&] { return line.unrouted() == 0; })) << relay->err();
  EXPECT_EQ(line.sql("SELECT max(attempts) FROM outbox_deliveries"), "0");
  const auto asked = std::chrono::steady_clock::now();
  expect_clean_stop(*relay);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(10));

  named.resolve("127.0.0.1");
  const auto next = line.start_relay();
  EXPECT_TRUE(all_arrive(named.run())) << next->err();
  expect_clean_stop(*next);
  expect_sound(named.run(), line.arrived());
}

TEST(RelayDestination, F75_localhost_has_more_than_one_address) {
  if (lacks_servers()) return;
  LineSettings settings;
  settings.broker_host = "localhost";
  RelayLine line("localhost", settings);
  let_test_resolve(line.shop());
  line.shop().write("hosts", "localhost ::1 127.0.0.1\n");  // As most systems have it.
  auto run = line.run();
  run.events = 100;
  write_events(run, 0, run.events);
  const auto drained = line.shop().run({"relay", "--drain"});
  EXPECT_EQ(drained.code, 0) << drained.err;
  expect_sound(run, line.arrived());
}

}  // namespace
}  // namespace postrider::testing
