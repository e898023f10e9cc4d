// Jobs by way of RabbitMQ from the event to the end: what workers do with tasks, good and bad.
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "process/broker_line.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using JobsByBroker = BrokerJobs;

TEST_P(JobsByBroker, R_204_one_is_done_one_is_retried_one_dies_and_every_task_is_acknowledged) {
  prepare("", broker_route("ship") + broker_route("bill", "retry_delays = [\"1ms\", \"1ms\"]\n") +
                  broker_route("mail"));
  const auto relay = start_relay();
  const auto worker = start_broker_worker(
      "case $POSTRIDER_JOB in\n"
      "bill) [ \"$POSTRIDER_LAST_ATTEMPT\" = true ] || exit 75;;\n"
      "mail) kill -9 $$;;\n"
      "esac\n");
  write_event_of("1");

  EXPECT_TRUE(come_to(2, "status = 'completed'")) << worker->err() << relay->err();
  EXPECT_TRUE(come_to(1, "status = 'failed' AND failure_code = 'worker_died'")) << worker->err();
  EXPECT_EQ(job("bill", "status, attempts"), "completed|2");
  EXPECT_EQ(job("ship", "status, attempts"), "completed|0");
  stop_cleanly(*worker);
  std::map<std::string, int> runs_of;
  for (const auto& run : runs())
    ++runs_of[run.job];
  EXPECT_EQ(runs_of, (std::map<std::string, int>{{"bill", 3}, {"mail", 1}, {"ship", 1}}));
  expect_each_dispatch_ran_once();
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, JT_06_after_many_deaths_nothing_was_redelivered_and_the_next_job_runs) {
  prepare("", broker_route("mail"));
  const auto relay = start_relay();
  const auto worker = start_broker_worker("[ -e calm ] || kill -9 $$\n", {"--concurrency", "2"});
  write_events(0, 20);
  ASSERT_TRUE(come_to(20, "status = 'failed' AND failure_code = 'worker_died'")) << worker->err();
  shop_.write("calm", "");
  write_events(20, 22);
  EXPECT_TRUE(come_to(2, "status = 'completed'")) << worker->err();
  stop_cleanly(*worker);
  EXPECT_EQ(runs().size(), 22U);
  EXPECT_EQ(told(*worker, "task_stale") + told(*worker, "task_repeated"), 0) << worker->err();
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, Two_workers_share_the_tasks_and_each_runs_once) {
  prepare("", broker_route("print"));
  const auto relay = start_relay();
  const std::string script = "while ! [ -e go ]; do sleep 0.02; done\n";
  const auto one = start_broker_worker(script, {"--concurrency", "2"});
  const auto two = start_broker_worker(script, {"--concurrency", "2"});
  write_events(0, 30);
  EXPECT_EQ(runs_come_to(4).size(), 4U) << "both are busy, and neither has taken all";
  shop_.write("go", "");
  EXPECT_TRUE(come_to(30, "status = 'completed'")) << one->err() << two->err();
  EXPECT_EQ(value("SELECT count(DISTINCT worker) FROM outbox_deliveries WHERE kind = 'job'"), "2");
  stop_cleanly(*one);
  stop_cleanly(*two);
  EXPECT_EQ(runs().size(), 30U);
  expect_each_dispatch_ran_once();
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, One_worker_serves_a_queue_of_the_database_and_one_of_the_broker) {
  prepare("", broker_route("ship") + route("bill"));
  const auto relay = start_relay();
  const auto worker = start_worker_of(
      {"--queue", "work", "--from", server_->url(), "--from-queue", queue_}, "exit 0\n");
  write_events(0, 20);
  EXPECT_TRUE(come_to(40, "status = 'completed'")) << worker->err();
  stop_cleanly(*worker);
  EXPECT_EQ(runs().size(), 40U);
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, R_179_a_task_whose_deadline_passed_in_the_queue_is_dropped_with_both_ids) {
  prepare("", broker_route("ship", "timeout = \"200ms\"\nretry_delays = []\n"));
  const auto relay = start_relay();
  write_event_of("1");
  ASSERT_TRUE(come_to(1, "status = 'failed' AND failure_code = 'timed_out'")) << relay->err();
  ASSERT_TRUE(waiting_comes_to(1));

  const auto worker = start_broker_worker("exit 0\n");
  ASSERT_TRUE(comes_true([&] { return told(*worker, "task_stale") == 1; })) << worker->err();
  EXPECT_THAT(line_about(*worker, "task_stale"),
              AllOf(HasSubstr("\"warning\""), HasSubstr(job("ship", "id")), HasSubstr("dispatch")));
  stop_cleanly(*worker);
  EXPECT_TRUE(runs().empty());
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, R_180_tasks_of_another_job_and_foreign_messages_are_warnings_and_no_runs) {
  prepare("", broker_route("ship"));
  const auto relay = start_relay();
  write_event_of("1");
  ASSERT_TRUE(waiting_comes_to(1)) << relay->err();
  {
    auto broker = session();
    const auto task = broker.take_all(queue_).at(0);
    broker.send(queue_, "bill", task.body);
    broker.send(queue_, "ship", "c4n4ry");
    broker.send(queue_, task.type, task.body);
  }
  const auto worker = start_broker_worker("exit 0\n");
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << worker->err();
  stop_cleanly(*worker);
  EXPECT_EQ(told(*worker, "task_refused"), 2) << worker->err();
  EXPECT_THAT(worker->err(), AllOf(HasSubstr("of another job"), HasSubstr("no JSON object")));
  EXPECT_THAT(worker->err(), Not(HasSubstr("c4n4ry")));
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(session().take_all(dead_).size(), 1U) << "the foreign one is a dead letter there";
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, JT_09_a_task_that_was_acknowledged_and_never_run_still_leads_to_an_outcome) {
  prepare("", broker_route("ship", "timeout = \"1s\"\nretry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  write_event_of("1");
  ASSERT_TRUE(waiting_comes_to(1)) << relay->err();
  const auto lost = session().take_all(queue_);  // acknowledged, by somebody who is gone
  ASSERT_EQ(lost.size(), 1U);

  ASSERT_TRUE(come_to(1, "attempts >= 1")) << relay->err();
  const auto worker = start_broker_worker("exit 0\n");
  // On a slow machine the second dispatch may have passed its deadline before a worker was there.
  EXPECT_TRUE(come_to(1, "status IN ('completed', 'failed')")) << worker->err() << relay->err();
  for (const auto& run : runs())
    EXPECT_THAT(lost[0].body, Not(HasSubstr(run.dispatch))) << "under a new dispatch";
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, JT_15_a_job_that_a_stop_gives_back_runs_elsewhere_under_a_new_dispatch) {
  prepare("grace = \"10ms\"\nhard_grace = \"10ms\"\n", broker_route("print"));
  const auto relay = start_relay();
  const auto first = start_broker_worker("[ -e calm ] || exec sleep 600\n");
  write_event_of("1");
  ASSERT_EQ(runs_come_to(1).size(), 1U) << first->err();
  shop_.write("calm", "");
  first->signal(SIGTERM);
  EXPECT_EQ(first->finish().code, 75) << "something was given back";

  const auto second = start_broker_worker("[ -e calm ] || exec sleep 600\n");
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << second->err();
  EXPECT_EQ(job("print", "attempts, deaths, interruptions"), "0|0|1");
  stop_cleanly(*second);
  EXPECT_EQ(runs().size(), 2U);
  expect_each_dispatch_ran_once();
  EXPECT_EQ(told(*second, "task_stale"), 0) << "it was acknowledged after it was recorded";
  expect_broker_is_empty();
  stop_cleanly(*relay);
}

TEST_P(JobsByBroker, A_queue_that_is_missing_ends_the_worker_and_says_what_to_do) {
  prepare("", broker_route("ship"));
  const auto worker = shop_.run(
      {"worker", "--from", server_->url(), "--from-queue", "jobs.nowhere", "--exec", "true"});
  EXPECT_NE(worker.code, 0);
  EXPECT_THAT(worker.err, HasSubstr("no such queue"));
  EXPECT_THAT(worker.err, HasSubstr("declare it"));
}

TEST_P(JobsByBroker, A_password_of_the_broker_is_in_no_log) {
  prepare("", broker_route("ship"));
  const auto worker = shop_.run(
      {"worker", "--from", "amqp://guest:c4n4ry@127.0.0.1:" + std::to_string(server_->ports().amqp),
       "--from-queue", queue_, "--log-level", "debug", "--exec", "true"});
  EXPECT_NE(worker.code, 0);
  EXPECT_THAT(worker.err, HasSubstr("***"));
  EXPECT_THAT(worker.err + worker.out, Not(HasSubstr("c4n4ry")));
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsByBroker, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
