// Deadlines and retries of jobs with real processes: what runs too long, and what comes too late.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "backends/postgres_database.hpp"
#include "process/job_line.hpp"
#include "process/patience.hpp"
#include "servers/moved_clock.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobsDeadline : public JobProcesses {
 protected:
  [[nodiscard]] std::vector<bool> last_attempt_flags() const {
    std::vector<bool> flags;
    for (const auto& run : runs())
      flags.push_back(run.last_attempt);
    return flags;
  }
  /// A pending row says when it is due; the clock is far behind that until the test moves it.
  [[nodiscard]] bool waits_for_attempt(int number) {
    return come_to(1, "status = 'pending' AND attempts = " + std::to_string(number));
  }
};

TEST_P(JobsDeadline, F131_R_188_JT_10_a_late_success_changes_nothing_and_is_a_warning_with_ids) {
  // Who is busy with one job and has just told that he lives asks nothing of the database, so that
  // no transaction is frozen with him.
  prepare("heartbeat = \"5m\"\ndead_after = \"1h\"\n",
          route("print", "timeout = \"3s\"\nretry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  const auto frozen = start_worker(
      "mkdir first 2>/dev/null || exit 0\n"
      "while ! [ -e go ]; do sleep 0.02; done\n",
      {"--concurrency", "1"});
  write_event_of("1");
  const auto first = runs_come_to(1);
  ASSERT_EQ(first.size(), 1U) << frozen->err();
  frozen->signal(SIGSTOP);  // It cannot see the deadline pass, nor its command succeed.
  shop_.write("go", "");
  EXPECT_TRUE(comes_true([&] { return !is_alive(first[0].pid); }));
  const auto other = start_worker("mkdir first 2>/dev/null || exit 0\n");
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << relay->err() << other->err();
  const auto all = runs();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].delivery, first[0].delivery);
  EXPECT_NE(all[1].dispatch, first[0].dispatch);
  const std::string columns =
      "status, attempts, dispatch_id, failure_code, available_at, finished_at, deaths";
  const auto before = job("print", columns);
  EXPECT_THAT(before, HasSubstr(all[1].dispatch));

  frozen->signal(SIGCONT);
  EXPECT_TRUE(comes_true([&] { return told(*frozen, "result_stale") > 0; })) << frozen->err();
  EXPECT_THAT(
      line_about(*frozen, "result_stale"),
      AllOf(HasSubstr("\"warning\""), HasSubstr(first[0].delivery), HasSubstr(first[0].dispatch)));
  EXPECT_EQ(job("print", columns), before);
  stop_cleanly(*frozen);
  EXPECT_EQ(told(*frozen, "result_stale"), 1);
  EXPECT_EQ(job("print", columns), before);
  EXPECT_EQ(runs().size(), 2U);
  stop_cleanly(*other);
  stop_cleanly(*relay);
}

TEST_P(JobsDeadline, F126_a_command_that_ignores_its_deadline_is_killed_and_the_next_try_runs) {
  prepare("kill_grace = \"100ms\"\n",
          route("print", "timeout = \"1s\"\nretry_delays = [\"1ms\"]\n"));
  const auto relay = start_relay();
  const auto worker =
      start_worker("mkdir first 2>/dev/null || exit 0\ntrap '' TERM\nexec sleep 600\n");
  write_event_of("1");
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << worker->err();
  const auto all = runs();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(comes_true([&] { return !is_alive(all[0].pid); }));
  EXPECT_EQ(job("print", "deaths"), "0") << "it did not die, it was killed for its deadline";
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsDeadline, JT_24_a_job_with_a_short_deadline_ends_beside_a_long_one_that_runs_on) {
  prepare("kill_grace = \"100ms\"\n", route("quick", "timeout = \"500ms\"\nretry_delays = []\n") +
                                          route("slow", "timeout = \"1h\"\n"));
  const auto relay = start_relay();
  const auto worker = start_worker("while ! [ -e go ]; do sleep 0.02; done\n");
  write_event_of("1");
  EXPECT_TRUE(come_to(1, "job = 'quick' AND status = 'failed'")) << worker->err();
  EXPECT_EQ(job("quick", "failure_code"), "timed_out");
  EXPECT_TRUE(come_to(1, "job = 'slow' AND status = 'dispatched'"));
  shop_.write("go", "");
  EXPECT_TRUE(come_to(1, "job = 'slow' AND status = 'completed'")) << worker->err();
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsDeadline, R_195_delays_of_60_and_120_s_give_three_attempts_and_the_third_is_the_last) {
  if (lacks(why_no_moved_clock())) return;
  const MovedClock clock;
  prepare("dead_after = \"1h\"\n",
          route("print", "timeout = \"1h\"\nretry_delays = [\"60s\", \"120s\"]\n"),
          clock.environment());
  const auto relay = start_relay();
  const auto worker = start_worker("exit 75\n");
  write_event_of("1");
  ASSERT_TRUE(waits_for_attempt(1)) << worker->err();
  clock.move("+61s");
  ASSERT_TRUE(waits_for_attempt(2)) << worker->err();
  clock.move("+182s");
  ASSERT_TRUE(come_to(1, "status = 'failed'")) << worker->err();
  EXPECT_EQ(job("print", "attempts, failure_code"), "3|exit_75");
  clock.move("+30m");
  stop_cleanly(*worker);
  stop_cleanly(*relay);
  EXPECT_THAT(last_attempt_flags(), ElementsAre(false, false, true));
}

TEST_P(JobsDeadline, R_195_without_delays_the_only_attempt_is_the_last) {
  prepare("", route("print", "retry_delays = []\n"));
  const auto relay = start_relay();
  const auto worker = start_worker("exit 75\n");
  write_event_of("1");
  ASSERT_TRUE(come_to(1, "status = 'failed'")) << worker->err();
  stop_cleanly(*worker);
  stop_cleanly(*relay);
  EXPECT_THAT(last_attempt_flags(), ElementsAre(true));
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsDeadline, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
