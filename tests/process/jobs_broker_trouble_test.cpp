// Jobs by way of RabbitMQ while connections, the broker and workers die.
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "process/broker_line.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

// Heartbeats of a worker whose death a relay has to notice.
constexpr const char* quick_heartbeats = "heartbeat = \"200ms\"\ndead_after = \"3s\"\n";

using JobsInTrouble = BrokerJobs;

TEST_P(JobsInTrouble, A_task_that_is_redelivered_while_it_runs_is_not_run_twice) {
  prepare("", broker_route("print"));
  const auto relay = start_relay();
  const auto worker = start_broker_worker("while ! [ -e go ]; do sleep 0.02; done\n");
  write_events(0, 3);
  ASSERT_EQ(runs_come_to(3).size(), 3U) << worker->err();
  server_->control({"close_all_connections", "test"});
  EXPECT_TRUE(comes_true([&] { return told(*worker, "source_recovered") == 1; })) << worker->err();
  EXPECT_EQ(told(*worker, "source_failed"), 1);
  shop_.write("go", "");
  write_events(3, 5);
  EXPECT_TRUE(come_to(5, "status = 'completed'")) << worker->err();
  stop_cleanly(*worker);
  EXPECT_EQ(runs().size(), 5U);
  expect_each_dispatch_ran_once();
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsInTrouble, JT_09_of_a_worker_killed_before_the_acknowledgement_the_jobs_are_recovered) {
  prepare(quick_heartbeats,
          broker_route("print", "on_worker_death = \"retry\"\nretry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  const auto killed = start_broker_worker("[ -e calm ] || exec sleep 600\n");
  write_events(0, 3);
  ASSERT_EQ(runs_come_to(3).size(), 3U) << killed->err();
  shop_.write("calm", "");
  const auto other = start_broker_worker("[ -e calm ] || exec sleep 600\n");
  await_consumers(2);

  kill_9(*killed);
  EXPECT_TRUE(come_to(3, "status = 'completed' AND deaths = 1")) << other->err() << relay->err();
  const auto copies = [&] { return told(*other, "task_repeated") + told(*other, "task_stale"); };
  EXPECT_TRUE(waiting_comes_to(0));
  stop_cleanly(*other);
  EXPECT_LE(copies(), 3) << "the tasks of the dead one came again, and were dropped";
  EXPECT_EQ(runs().size(), 6U);
  expect_each_dispatch_ran_once();
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsInTrouble, A_broker_that_restarts_ends_no_worker_and_loses_no_job) {
  relay_settings_ = "probe_most = \"1s\"\n";
  prepare("", broker_route("print"));
  const auto relay = start_relay();
  const auto worker =
      start_broker_worker("while ! [ -e go ]; do sleep 0.02; done\n", {"--concurrency", "3"});
  write_events(0, 10);
  ASSERT_EQ(runs_come_to(3).size(), 3U) << worker->err();
  server_->stop();
  write_events(10, 15);  // the relay has to wait with these
  EXPECT_TRUE(comes_true([&] { return told(*worker, "source_failed") == 1; })) << worker->err();
  shop_.write("go", "");
  EXPECT_TRUE(come_to(3, "status = 'completed'")) << "what runs ends, with or without the broker";
  server_->start();
  EXPECT_TRUE(come_to(15, "status = 'completed'")) << worker->err() << relay->err();
  EXPECT_EQ(jobs("attempts > 0"), 0) << "an outage uses no attempt";
  stop_cleanly(*worker);
  EXPECT_EQ(told(*worker, "source_recovered"), 1);
  EXPECT_EQ(runs().size(), 15U);
  expect_each_dispatch_ran_once();
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsInTrouble, A_worker_that_starts_before_its_broker_waits_for_it) {
  prepare("", broker_route("print"));
  server_->stop();
  const auto worker = start_broker_worker("exit 0\n");
  EXPECT_TRUE(comes_true([&] { return told(*worker, "source_failed") == 1; })) << worker->err();
  server_->start();
  const auto relay = start_relay();
  write_event_of("1");
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << worker->err() << relay->err();
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsInTrouble, A_worker_whose_broker_is_frozen_stops_all_the_same) {
  prepare("grace = \"10ms\"\n", broker_route("print"));
  const auto worker = start_broker_worker("exit 0\n");
  await_consumers(1);
  server_->freeze();
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->finish().code, 0) << worker->err();
  server_->thaw();
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsInTrouble, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
