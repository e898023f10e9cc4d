// Relays that are stopped, frozen or dead, and destinations that are away, between PostgreSQL and
// RabbitMQ.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "process/patience.hpp"
#include "process/relay_line.hpp"
#include "servers/chaos_proxy.hpp"
#include "servers/rabbitmq_server.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

/// A line whose way to the broker leads through a proxy.
class ProxiedLine {
 public:
  explicit ProxiedLine(const std::string& name, LineSettings settings = {})
      : line_(name, through(settings, proxy_)) {
    run_ = line_.run();
    run_.events = 200;
  }

  [[nodiscard]] RelayLine& line() { return line_; }
  [[nodiscard]] ChaosProxy& proxy() { return proxy_; }
  [[nodiscard]] DrainRun& run() { return run_; }

  /// Writes all events, from number `from` on.
  void write(int from = 0) { write_events(run_, from, run_.events); }
  /// Starts a relay and lets it carry some of the events, until RabbitMQ has those that may be in
  /// flight at once and the relay has no answer. Null when it does not come to that.
  std::unique_ptr<Running> start_and_hold_answers() {
    auto relay = line_.start_relay();
    write_events(run_, 0, 1);
    const auto carried = [&](std::size_t events) {
      return comes_true([&] { return line_.arrived().size() == events; });
    };
    bool held = carried(1) && comes_true([&] { return unrouted() == 0; });
    proxy_.tell("down hold");
    write(1);
    held = held && carried(1 + static_cast<std::size_t>(run_.aggregates));
    EXPECT_TRUE(held) << relay->err();
    return held ? std::move(relay) : nullptr;
  }
  [[nodiscard]] std::int64_t unrouted() const { return line_.unrouted(); }
  [[nodiscard]] std::int64_t leased() const {
    return line_.count("outbox_partitions WHERE owner IS NOT NULL");
  }
  /// Waits until leases have been renewed for so long from now on, by the database's clock.
  [[nodiscard]] bool lives_for(const std::string& interval) const {
    const auto ends =
        line_.sql("SELECT max(leased_until) + '" + interval + "' FROM outbox_partitions");
    return comes_true([&] {
      return line_.sql("SELECT max(leased_until) > '" + ends + "' FROM outbox_partitions") == "t";
    });
  }
  /// Waits until everything has arrived, ends the relay, and looks at what arrived.
  void expect_end(Running& relay) {
    EXPECT_TRUE(all_arrive(run_)) << relay.err();
    EXPECT_TRUE(comes_true([&] { return unrouted() == 0; }));
    expect_clean_stop(relay);
    expect_sound(run_, line_.arrived());
  }

 private:
  static LineSettings through(LineSettings settings, const ChaosProxy& proxy) {
    settings.broker_port = proxy.port();
    return settings;
  }

  ChaosProxy proxy_{shared_rabbitmq().ports().amqp};
  RelayLine line_;
  DrainRun run_;
};

LineSettings wide_batches(const std::string& more = "") {
  LineSettings settings;
  settings.relay =
      "[relay]\nlease_time = \"300ms\"\nlease_renewal = \"100ms\"\nsleep = \"10ms\"\n"
      "probe_least = \"20ms\"\nprobe_most = \"50ms\"\n" +
      more;
  return settings;
}

TEST(RelayStop, F9_answers_that_come_in_time_are_marked_and_nothing_new_is_sent) {
  if (lacks_servers()) return;
  ProxiedLine held("stop-in-time", wide_batches());
  const auto relay = held.start_and_hold_answers();
  ASSERT_TRUE(relay);
  relay->signal(SIGTERM);
  EXPECT_TRUE(held.lives_for("500ms")) << "it waits, and keeps its leases while it does";
  held.proxy().tell("down release");
  const auto finished = relay->finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("\"left_in_flight\":0"));
  EXPECT_EQ(held.unrouted(), held.run().events - 1 - held.run().aggregates);
  EXPECT_EQ(held.leased(), 0);

  const auto next = held.line().start_relay();
  held.expect_end(*next);
  EXPECT_EQ(repeats_among(held.line().arrived()), 0U);
}

TEST(RelayStop, F9_a_stop_without_answers_ends_in_time_with_another_code_and_gives_leases_back) {
  if (lacks_servers()) return;
  ProxiedLine held("stop-forced", wide_batches("drain_timeout = \"1s\"\n"));
  const auto relay = held.start_and_hold_answers();
  ASSERT_TRUE(relay);
  relay->signal(SIGTERM);
  const auto finished = relay->finish();
  EXPECT_EQ(finished.code, 75) << finished.err;
  EXPECT_THAT(finished.err,
              HasSubstr("\"left_in_flight\":" + std::to_string(held.run().aggregates)));
  EXPECT_EQ(held.unrouted(), held.run().events - 1) << "what was not answered is left as it was";
  EXPECT_EQ(held.leased(), 0);

  held.proxy().tell("down release");
  const auto next = held.line().start_relay();
  held.expect_end(*next);
  EXPECT_EQ(repeats_among(held.line().arrived()), static_cast<std::size_t>(held.run().aggregates));
}

TEST(RelayStop, F30_no_session_of_a_relay_is_in_a_transaction_while_answers_are_awaited) {
  if (lacks_servers()) return;
  ProxiedLine held("idle-sessions", wide_batches());
  const auto relay = held.start_and_hold_answers();
  ASSERT_TRUE(relay);
  const auto session = held.line().database().open_session();
  const std::string of_relay =
      "FROM pg_stat_activity WHERE datname = current_database() "
      "AND application_name = 'postrider'";
  std::size_t looks = 0;
  const auto look = [&] {
    ++looks;
    EXPECT_NE(session->run("SELECT count(*) " + of_relay), "0");
    EXPECT_EQ(session->run("SELECT count(*) " + of_relay + " AND state LIKE 'idle in %'"), "0");
    // Between its renewals it has neither a transaction nor a snapshot.
    return session->run(
               "SELECT bool_and(state = 'idle' AND backend_xid IS NULL AND "
               "backend_xmin IS NULL) " +
               of_relay) == "t";
  };
  EXPECT_TRUE(comes_true([&] { return look() && looks > 200; }));
  held.proxy().tell("down release");
  held.expect_end(*relay);
}

TEST(RelayStop, F13_a_relay_that_dies_right_after_its_start_uses_up_no_attempt) {
  if (lacks_servers()) return;
  ProxiedLine line("crash-loop", wide_batches());
  line.proxy().tell("refuse");
  line.write();
  constexpr int starts = 5;
  for (int start = 0; start < starts; ++start) {
    const auto relay = line.line().start_relay();
    ASSERT_TRUE(tells(*relay, "lease_gained")) << relay->err();
    ASSERT_TRUE(tells(*relay, "route_paused")) << relay->err();
    // A death while one event alone is on its way is held against that event, at its second time.
    ASSERT_TRUE(comes_true(
        [&] { return line.line().count("outbox_partitions WHERE probe_seq IS NOT NULL") == 0; }));
    relay->signal(SIGKILL);
    EXPECT_EQ(relay->finish().code, 128 + SIGKILL);
  }
  EXPECT_EQ(line.line().sql("SELECT max(token) FROM outbox_partitions"), std::to_string(starts))
      << "each start takes each partition once";
  EXPECT_EQ(line.line().count("outbox_deliveries"), 0);
  line.proxy().tell("accept");
  const auto relay = line.line().start_relay();
  line.expect_end(*relay);
  EXPECT_EQ(line.line().count("outbox_deliveries WHERE attempts > 0 OR status = 'failed'"), 0);
}

TEST(RelayStop, F65_while_the_broker_is_away_nothing_is_read_and_no_attempt_is_used) {
  if (lacks_servers()) return;
  ProxiedLine line("broker-away", wide_batches());
  line.proxy().tell("refuse");
  line.write();
  const auto relay = line.line().start_relay();
  ASSERT_TRUE(tells(*relay, "route_paused")) << relay->err();
  ASSERT_TRUE(line.lives_for("2s")) << "some forty probes";
  EXPECT_EQ(line.unrouted(), line.run().events);
  EXPECT_EQ(line.line().count("outbox_deliveries"), 0);
  EXPECT_EQ(count_of(*relay, "route_paused"), 1U) << "an outage is told of once";
  line.proxy().tell("accept");
  line.expect_end(*relay);
  EXPECT_EQ(line.line().count("outbox_deliveries"), 0);
}

TEST(RelayStop, F65_beside_a_healthy_route_the_share_of_the_dead_one_waits_without_attempts) {
  if (lacks_servers()) return;
  auto settings = wide_batches();
  settings.more = "[[routes]]\nname = \"file\"\nto = \"file:events.jsonl\"\n";
  ProxiedLine line("broker-away-parked", settings);
  line.proxy().tell("refuse");
  const auto relay = line.line().start_relay();
  line.write();
  ASSERT_TRUE(comes_true([&] { return line.unrouted() == 0; })) << relay->err();
  ASSERT_TRUE(line.lives_for("2s"));
  EXPECT_EQ(line.line().count("outbox_deliveries WHERE route = 'all' AND status = 'pending'"),
            line.run().events);
  EXPECT_EQ(line.line().sql("SELECT max(attempts) FROM outbox_deliveries"), "0");
  line.proxy().tell("accept");
  line.expect_end(*relay);
  EXPECT_TRUE(comes_true(
      [&] { return line.line().count("outbox_deliveries WHERE status <> 'completed'") == 0; }));
}

TEST(RelayStop, F6_a_relay_that_was_frozen_and_whom_nobody_missed_goes_on_under_its_token) {
  if (lacks_servers()) return;
  RelayLine line("frozen-alone", wide_batches());
  auto run = line.run();
  run.events = 400;
  const auto relay = line.start_relay();
  write_events(run, 0, 200);
  ASSERT_TRUE(comes_true([&] { return run.progress() > 0; }));
  relay->signal(SIGSTOP);
  const auto token = line.sql("SELECT max(token) FROM outbox_partitions");
  ASSERT_TRUE(comes_true([&] {
    return line.sql(
               "SELECT max(leased_until) + interval '3s' < clock_timestamp() "
               "FROM outbox_partitions") == "t";
  }));
  write_events(run, 200, 400);
  relay->signal(SIGCONT);
  EXPECT_TRUE(all_arrive(run));
  EXPECT_EQ(line.sql("SELECT max(token) FROM outbox_partitions"), token);
  EXPECT_EQ(count_of(*relay, "lease_lost"), 0U);
  expect_clean_stop(*relay);
  expect_sound(run, line.arrived());
}

}  // namespace
}  // namespace postrider::testing
