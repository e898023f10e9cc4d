// What happens to servers and relays while events are carried from PostgreSQL to RabbitMQ.
#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "process/patience.hpp"
#include "process/relay_line.hpp"
#include "servers/rabbitmq_server.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

DrainRun small_run(RelayLine& line, int portions) {
  auto run = line.run();
  run.portions = portions;
  run.events = portions * 300;
  return run;
}

void nothing(int) {}

/// Waits until the last trouble that a relay has told of is over: what the queue still holds counts
/// as progress, and a strike has to meet the relay at work.
[[nodiscard]] bool is_over(const Running& relay, const std::string& trouble,
                           const std::string& end) {
  return comes_true([&] { return count_of(relay, end) >= count_of(relay, trouble); });
}

TEST(RelayDisturbed, F66_RabbitMQ_is_restarted_again_and_again) {
  if (lacks_servers()) return;
  RelayLine line("restarts-of-broker");
  auto run = small_run(line, 3);
  auto& broker = shared_rabbitmq();
  const auto relay = line.start_relay();
  constexpr int more = 10;  // In each outage: a relay with nothing to send does not see it.
  int written = run.events;
  drain_disturbed(run, {[&](int) { EXPECT_TRUE(is_over(*relay, "route_paused", "route_resumed")); },
                        [&](int portion) {
                          const auto told = count_of(*relay, "route_paused");
                          if (portion % 2 == 0) {
                            broker.stop();
                          } else {
                            broker.kill();
                          }
                          write_events(run, written, written + more);
                          written += more;
                          EXPECT_TRUE(tells(*relay, "route_paused", told + 1));
                          broker.start();
                        }});
  run.events = written;
  EXPECT_TRUE(all_arrive(run));
  expect_clean_stop(*relay);
  expect_sound(run, line.arrived());
  EXPECT_EQ(line.count("outbox_deliveries WHERE status = 'failed'"), 0);
}

TEST(RelayDisturbed, F18_PostgreSQL_crashes_again_and_again) {
  if (lacks_servers()) return;
  PostgresServer server;
  RelayLine line("crashes-of-database", on_server(server));
  const auto run = small_run(line, 4);
  const auto relay = line.start_relay();
  drain_disturbed(run,
                  {[&](int) { EXPECT_TRUE(is_over(*relay, "store_failed", "store_recovered")); },
                   [&](int) {
                     const auto told = count_of(*relay, "store_failed");
                     server.stop_immediate();
                     EXPECT_TRUE(tells(*relay, "store_failed", told + 1));
                     server.start();
                   }});
  EXPECT_TRUE(all_arrive(run));
  EXPECT_TRUE(is_over(*relay, "store_failed", "store_recovered"));
  expect_clean_stop(*relay);
  expect_sound(run, line.arrived());
}

TEST(RelayDisturbed, Relays_join_and_leave_and_the_first_one_too) {
  if (lacks_servers()) return;
  RelayLine line("joins-and-leaves");
  const auto run = small_run(line, 8);
  std::array<std::unique_ptr<Running>, 2> relays = {line.start_relay(), nullptr};
  // In turn: the newer one leaves, or the older one does and the newer one takes over.
  drain_disturbed(run, {[&](int) {
                          relays[1] = line.start_relay();
                          EXPECT_TRUE(tells(*relays[1], "relay_started"));
                        },
                        [&](int portion) {
                          const auto leaving = static_cast<std::size_t>(portion / 2 % 2 == 0);
                          if (portion % 2 == 0) {
                            expect_clean_stop(*relays.at(leaving));
                          } else {
                            relays.at(leaving)->signal(SIGKILL);
                            EXPECT_EQ(relays.at(leaving)->finish().code, 128 + SIGKILL);
                          }
                          relays[0] = std::move(relays.at(1 - leaving));
                        }});
  EXPECT_TRUE(all_arrive(run));
  EXPECT_TRUE(tells(*relays[0], "lease_gained")) << "all may have been sent before it was alone";
  expect_clean_stop(*relays[0]);
  expect_sound(run, line.arrived());
}

TEST(RelayDisturbed, F7_two_relays_of_one_name_both_work_and_say_so) {
  if (lacks_servers()) return;
  LineSettings settings;
  settings.relay += "name = \"twin\"\n";
  RelayLine line("twins", settings);
  const auto run = small_run(line, 2);
  auto first = line.start_relay();
  ASSERT_TRUE(tells(*first, "lease_gained"));
  const auto token = line.sql("SELECT max(token) FROM outbox_partitions");
  auto second = line.start_relay();
  EXPECT_TRUE(tells(*second, "name_shared"));
  EXPECT_THAT(second->err(), HasSubstr("'twin'"));
  drain_disturbed(run, {nothing, [&](int portion) {
                          if (portion == 0) expect_clean_stop(*first);
                        }});
  EXPECT_TRUE(all_arrive(run));
  EXPECT_NE(line.sql("SELECT max(token) FROM outbox_partitions"), token);
  expect_clean_stop(*second);
  EXPECT_EQ(count_of(*second, "name_shared"), 1U);
  expect_sound(run, line.arrived());
}

TEST(RelayDisturbed, F5_a_relay_that_was_frozen_past_its_lease_drops_its_batch) {
  if (lacks_servers()) return;
  LineSettings settings;
  // So long that no relay loses it on a busy machine but the one that is frozen.
  settings.relay =
      "[relay]\nbatch = 4\nlease_time = \"3s\"\nlease_renewal = \"500ms\"\n"
      "sleep = \"10ms\"\n";
  RelayLine line("frozen-relay", settings);
  const auto run = small_run(line, 4);
  auto working = line.start_relay();
  ASSERT_TRUE(tells(*working, "lease_gained"));
  auto waiting = line.start_relay();
  drain_disturbed(run, {nothing, [&](int) {
                          const auto gained = count_of(*waiting, "lease_gained");
                          const auto lost = count_of(*working, "lease_lost");
                          working->signal(SIGSTOP);
                          EXPECT_TRUE(tells(*waiting, "lease_gained", gained + 1));
                          working->signal(SIGCONT);
                          EXPECT_TRUE(tells(*working, "lease_lost", lost + 1));
                          EXPECT_EQ(count_of(*working, "lease_lost"), lost + 1);
                          std::swap(working, waiting);
                        }});
  EXPECT_TRUE(all_arrive(run));
  // It takes part again: when the other one leaves, it works.
  const auto gained = count_of(*waiting, "lease_gained");
  expect_clean_stop(*working);
  EXPECT_TRUE(tells(*waiting, "lease_gained", gained + 1));
  expect_clean_stop(*waiting);
  expect_sound(run, line.arrived());
  std::map<std::string, int> copies;
  for (const auto& one : line.arrived())
    EXPECT_LE(++copies[one.id], 2) << "more than one repeat of " << one.id;
  EXPECT_EQ(line.count("outbox_deliveries"), 0) << "a freeze is nobody's failed attempt";
}

}  // namespace
}  // namespace postrider::testing
