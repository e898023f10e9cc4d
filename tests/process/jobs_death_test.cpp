// Jobs whose process dies, and workers that die with their jobs: real processes and kill -9.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "process/job_line.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A death is noticed in less than a second; five times that on a busy machine.
constexpr std::chrono::seconds at_once{5};
// Heartbeats of a worker whose death somebody else has to notice. JT-01 allows five seconds.
constexpr const char* quick_heartbeats = "heartbeat = \"200ms\"\ndead_after = \"1s\"\n";
constexpr std::chrono::seconds recovered_within{5};

class JobsDeath : public JobProcesses {
 protected:
  /// A worker that has looked for dead ones on this host, and will not look again by itself.
  std::unique_ptr<Running> start_other_worker(const std::string& script) {
    const auto known = value("SELECT count(*) FROM outbox_workers");
    auto other = start_worker(script);
    EXPECT_TRUE(comes_true([&] { return value("SELECT count(*) FROM outbox_workers") != known; }));
    return other;
  }
  /// How long it takes from now until so many jobs are in that state.
  steady_clock::duration time_until(int number, const std::string& where) {
    const auto begin = steady_clock::now();
    EXPECT_TRUE(come_to(number, where)) << where;
    return steady_clock::now() - begin;
  }
};

bool all_are_gone(const std::vector<HandlerRun>& runs) {
  return comes_true([&] {
    return std::none_of(runs.begin(), runs.end(),
                        [](const HandlerRun& run) { return is_alive(run.pid); });
  });
}

TEST_P(JobsDeath, F123_R_209_of_three_jobs_of_one_event_the_killed_one_fails_at_once_and_alone) {
  prepare("", route("ship") + route("bill") + route("mail"));
  const auto relay = start_relay();
  const auto worker = start_worker(
      "case $POSTRIDER_JOB in\n"
      "mail) echo c4n4ry >&2; exec sleep 600;;\n"
      "*) while ! [ -e go ]; do sleep 0.02; done;;\n"
      "esac\n");
  write_event_of("1");
  const auto started = runs_come_to(3);
  ASSERT_EQ(started.size(), 3U) << worker->err();
  const auto mail = std::find_if(started.begin(), started.end(),
                                 [](const HandlerRun& run) { return run.job == "mail"; });
  ASSERT_NE(mail, started.end());

  ::kill(mail->pid, SIGKILL);
  EXPECT_LT(time_until(1, "job = 'mail' AND status = 'failed'"), at_once);
  EXPECT_EQ(job("mail", "failure_code, failure_detail"), "worker_died|signal 9");
  EXPECT_EQ(jobs("status = 'dispatched'"), 2) << "the others run on";
  shop_.write("go", "");

  EXPECT_TRUE(come_to(2, "status = 'completed'"));
  EXPECT_EQ(runs().size(), 3U) << "each has run once";
  stop_cleanly(*worker);
  EXPECT_EQ(told(*worker, "worker_died"), 1);
  EXPECT_THAT(line_about(*worker, "worker_died"),
              AllOf(HasSubstr("\"error\""), HasSubstr(mail->delivery), HasSubstr(mail->dispatch)));
  EXPECT_THAT(worker->err(), Not(HasSubstr("c4n4ry")));
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_05_a_killed_job_runs_again_by_its_policy_until_the_cap_of_deaths) {
  prepare("", route("mail",
                    "retry_delays = [\"1ms\", \"1ms\", \"1ms\", \"1ms\", \"1ms\"]\n"
                    "on_worker_death = \"retry\"\nmax_deaths = 2\n"));
  const auto relay = start_relay();
  const auto worker = start_worker("exec sleep 600\n");
  write_event_of("1");
  for (std::size_t death = 1; death <= 3; ++death) {
    const auto all = runs_come_to(death);
    ASSERT_EQ(all.size(), death) << worker->err();
    ::kill(all.back().pid, SIGKILL);
  }
  EXPECT_TRUE(come_to(1, "status = 'failed'"));
  EXPECT_EQ(job("mail", "failure_code, deaths"), "worker_died|3");
  stop_cleanly(*worker);
  EXPECT_EQ(told(*worker, "worker_died"), 3);
  EXPECT_EQ(runs().size(), 3U);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_06_after_many_deaths_in_a_row_the_next_job_of_the_same_worker_runs) {
  prepare("", route("mail"));
  const auto relay = start_relay();
  const auto worker = start_worker("[ -e calm ] || kill -9 $$\n", {"--concurrency", "2"});
  write_events(0, 20);
  ASSERT_TRUE(come_to(20, "status = 'failed' AND failure_code = 'worker_died'")) << worker->err();
  shop_.write("calm", "");
  write_events(20, 22);
  EXPECT_TRUE(come_to(2, "status = 'completed'")) << worker->err();
  EXPECT_EQ(runs().size(), 22U) << "nothing was delivered again";
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_01_F129_of_a_killed_worker_the_commands_die_and_its_ten_jobs_end_in_5_s) {
  prepare(quick_heartbeats, route("print"));
  const auto relay = start_relay();
  const auto worker = start_worker("exec sleep 600\n", {"--concurrency", "10"});
  write_events(0, 10);
  const auto started = runs_come_to(10);
  ASSERT_EQ(started.size(), 10U) << worker->err();
  EXPECT_EQ(jobs("status = 'dispatched'"), 10);

  kill_9(*worker);
  EXPECT_LT(time_until(10, "status = 'failed' AND failure_code = 'worker_died'"), recovered_within);
  EXPECT_TRUE(all_are_gone(started));
  EXPECT_TRUE(comes_true([&] { return told(*relay, "worker_died") == 10; })) << relay->err();
  EXPECT_THAT(line_about(*relay, "worker_died"), HasSubstr("\"error\""));
  EXPECT_EQ(value("SELECT count(*) FROM outbox_workers WHERE state = 'dead'"), "1");
  stop_cleanly(*relay);
  EXPECT_EQ(told(*relay, "worker_died"), 10) << "each is told of once";
}

TEST_P(JobsDeath, JT_01_F129_jobs_that_may_be_retried_run_again_at_another_worker_with_new_ids) {
  prepare(quick_heartbeats,
          route("print", "on_worker_death = \"retry\"\nretry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  const auto killed = start_worker("[ -e calm ] || exec sleep 600\n");
  write_events(0, 5);
  ASSERT_EQ(runs_come_to(5).size(), 5U) << killed->err();
  shop_.write("calm", "");
  const auto other = start_other_worker("[ -e calm ] || exec sleep 600\n");

  kill_9(*killed);
  EXPECT_TRUE(come_to(5, "status = 'completed'")) << other->err();
  std::set<std::string> deliveries;
  std::set<std::string> dispatches;
  for (const auto& run : runs()) {
    deliveries.insert(run.delivery);
    dispatches.insert(run.dispatch);
  }
  EXPECT_EQ(deliveries.size(), 5U);
  EXPECT_EQ(dispatches.size(), 10U);
  EXPECT_EQ(jobs("deaths = 1"), 5);
  stop_cleanly(*other);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_25_two_relays_end_the_jobs_of_a_dead_worker_once) {
  prepare(quick_heartbeats,
          route("print", "on_worker_death = \"retry\"\nretry_delays = [\"1h\"]\n"));
  const auto one = start_relay();
  const auto two = start_relay();
  const auto worker = start_worker("exec sleep 600\n", {"--concurrency", "10"});
  write_events(0, 10);
  ASSERT_EQ(runs_come_to(10).size(), 10U) << worker->err();

  kill_9(*worker);
  EXPECT_TRUE(come_to(10, "status = 'pending' AND deaths = 1 AND attempts = 1"));
  const auto tell_of_ten = [&] {
    return told(*one, "worker_died") + told(*two, "worker_died") == 10;
  };
  EXPECT_TRUE(comes_true(tell_of_ten)) << one->err() << two->err();
  stop_cleanly(*one);
  stop_cleanly(*two);
  EXPECT_TRUE(tell_of_ten()) << one->err() << two->err();
  EXPECT_EQ(jobs("deaths = 1 AND attempts = 1"), 10);
}

TEST_P(JobsDeath, JT_12_F130_a_restart_on_the_same_host_recovers_the_jobs_of_the_killed_one) {
  prepare("dead_after = \"30m\"\n", route("print",
                                          "on_worker_death = \"retry\"\n"
                                          "retry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  const std::string script = "[ -e calm ] || exec sleep 600\n";
  const auto killed = start_worker(script);
  write_events(0, 3);
  ASSERT_EQ(runs_come_to(3).size(), 3U) << killed->err();
  kill_9(*killed);
  EXPECT_EQ(jobs("status = 'dispatched'"), 3) << "nobody knows yet";
  shop_.write("calm", "");

  const auto next = start_worker(script);
  EXPECT_LT(time_until(3, "status = 'completed'"), recovered_within)
      << "and not after half an hour";
  EXPECT_EQ(runs().size(), 6U);
  stop_cleanly(*next);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_20_the_next_job_of_a_serial_key_starts_once_the_killed_one_is_recovered) {
  prepare(quick_heartbeats, route("print", "serial_key = \"{aggregate_id}\"\n"));
  const auto relay = start_relay();
  const std::string script = "[ -e calm ] || exec sleep 600\n";
  const auto killed = start_worker(script);
  write_event_of("7");
  const auto first = runs_come_to(1);
  ASSERT_EQ(first.size(), 1U) << killed->err();
  write_event_of("7");
  write_event_of("8");
  EXPECT_EQ(runs_come_to(2).size(), 2U) << "another key does not wait";
  EXPECT_TRUE(come_to(1, "status = 'pending'"));
  shop_.write("calm", "");
  const auto other = start_other_worker(script);

  kill_9(*killed);
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << other->err();
  EXPECT_EQ(jobs("status = 'failed' AND failure_code = 'worker_died'"), 2);
  const auto all = runs();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_NE(all[2].delivery, first[0].delivery);
  stop_cleanly(*other);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_07_a_job_between_two_deaths_is_cancelled_and_does_not_run_again) {
  prepare("", route("mail", "on_worker_death = \"retry\"\nretry_delays = [\"1h\"]\n"));
  const auto relay = start_relay();
  const auto worker = start_worker("exec sleep 600\n");
  write_event_of("1");
  const auto first = runs_come_to(1);
  ASSERT_EQ(first.size(), 1U) << worker->err();
  ::kill(first[0].pid, SIGKILL);
  ASSERT_TRUE(come_to(1, "status = 'pending' AND deaths = 1")) << worker->err();

  const auto cancelled = shop_.run({"job", "cancel", first[0].delivery});
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_EQ(job("mail", "status, deaths"), "cancelled|1");
  EXPECT_NE(shop_.run({"job", "reschedule", first[0].delivery}).code, 0);
  stop_cleanly(*worker);
  EXPECT_EQ(runs().size(), 1U);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_18_a_cancelled_job_is_asked_to_stop_within_a_heartbeat_and_ends_cancelled) {
  prepare("heartbeat = \"200ms\"\n", route("print"));
  const auto relay = start_relay();
  const auto worker = start_worker("trap 'exit 143' TERM\nsleep 600 & wait\n");
  write_event_of("1");
  const auto first = runs_come_to(1);
  ASSERT_EQ(first.size(), 1U) << worker->err();

  const auto asked = shop_.run({"job", "cancel", first[0].delivery});
  EXPECT_THAT(asked.out, HasSubstr("is asked to stop"));
  EXPECT_LT(time_until(1, "status = 'cancelled'"), at_once) << worker->err();
  EXPECT_TRUE(all_are_gone(first));
  stop_cleanly(*worker);
  EXPECT_EQ(runs().size(), 1U);
  stop_cleanly(*relay);
}

TEST_P(JobsDeath, JT_03_while_heartbeats_go_on_a_job_may_run_for_many_times_the_dead_threshold) {
  prepare("heartbeat = \"50ms\"\ndead_after = \"2s\"\n",
          route("print", "on_worker_death = \"retry\"\nretry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  const std::string script = "while ! [ -e go ]; do sleep 0.02; done\n";
  const auto worker = start_worker(script);
  write_event_of("1");
  ASSERT_EQ(runs_come_to(1).size(), 1U) << worker->err();
  const auto idle = start_worker(script);
  // What the keeper had to overlook is long past when a later heartbeat stands in the table.
  const auto begin = steady_clock::now();
  const std::string seen = "SELECT max(last_seen_at) FROM outbox_workers";
  std::set<std::string> heartbeats;
  EXPECT_TRUE(comes_true([&] {
    heartbeats.insert(value(seen));
    return heartbeats.size() > 20 &&
           steady_clock::now() - begin > 2 * std::chrono::milliseconds(2000);
  }));
  EXPECT_EQ(jobs("status = 'dispatched' AND interruptions = 0"), 1);
  shop_.write("go", "");
  EXPECT_TRUE(come_to(1, "status = 'completed'"));
  EXPECT_EQ(runs().size(), 1U);
  stop_cleanly(*worker);
  stop_cleanly(*idle);
  stop_cleanly(*relay);
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsDeath, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
