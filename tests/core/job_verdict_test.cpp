// The whole policy of jobs: what each end of an attempt makes of its row.
#include "core/job_verdict.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

using std::chrono::seconds;
using Status = DeliveryStatus;

const DispatchId some_dispatch(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8059").value());

Job job_with_delays(std::vector<milliseconds> delays) {
  Job job;
  job.delivery_id = DeliveryId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8058").value());
  job.retry_delays = std::move(delays);
  return job;
}

Job with_two_delays(int attempts) {
  auto job = job_with_delays({seconds(60), seconds(120)});
  job.attempts = attempts;
  return job;
}

Job with_deaths(int attempts, int deaths, int max_deaths = 2) {
  auto job = job_with_delays({seconds(1), seconds(2), seconds(3), seconds(4)});
  job.on_worker_death = OnWorkerDeath::retry;
  job.attempts = attempts;
  job.deaths = deaths;
  job.max_deaths = max_deaths;
  return job;
}

Job cancelled_by_a_person(Job job) {
  job.cancel_requested = true;
  return job;
}

Job snoozed(int snoozes) {
  auto job = with_two_delays(0);
  job.snoozes = snoozes;
  return job;
}

const WorkerDeath segfault{11, std::nullopt, false};
const WorkerDeath out_of_memory{9, std::nullopt, true};
const WorkerDeath clean_exit{0, 0, false};
const WorkerDeath host_gone{0, std::nullopt, false};

struct Judged {
  std::string name;
  Job job;
  AttemptEnd end;
  Status status = Status::completed;
  int attempts = 0;
  milliseconds wait{0};
  std::string code;
  int deaths = 0;
  int snoozes = 0;
  int interruptions = 0;
};

void expect(const Judged& row) {
  SCOPED_TRACE(row.name);
  const auto update = judge_job(row.job, some_dispatch, row.end);
  EXPECT_EQ(update.delivery_id, row.job.delivery_id);
  EXPECT_EQ(update.dispatch_id, some_dispatch);
  EXPECT_EQ(to_string(update.status), to_string(row.status));
  EXPECT_EQ(update.attempts, row.attempts);
  EXPECT_EQ(update.available_in, row.wait);
  EXPECT_EQ(update.failure_code, row.code);
  EXPECT_EQ(update.deaths, row.deaths);
  EXPECT_EQ(update.snoozes, row.snoozes);
  EXPECT_EQ(update.interruptions, row.interruptions);
  EXPECT_FALSE(update.result.empty());
}

TEST(JobVerdict, What_a_handler_reports_becomes_the_row) {
  const auto retry = JobOutcome::retry("shop_closed", "opens at nine");
  const auto own_delay = JobOutcome::retry_in(seconds(7), "shop_closed");
  const auto fail = JobOutcome::fail("no_such_order");
  const auto snooze = JobOutcome::snooze(seconds(30));
  const std::vector<Judged> rows = {
      {"done completes", with_two_delays(0), JobOutcome::done(), Status::completed, 0, {}, ""},
      {"done completes after failures",
       with_two_delays(2),
       JobOutcome::done(),
       Status::completed,
       2,
       {},
       ""},
      {"R_184: the first retry waits the first delay", with_two_delays(0), retry, Status::pending,
       1, seconds(60), "shop_closed"},
      {"R_191: the second retry waits the second delay", with_two_delays(1), retry, Status::pending,
       2, seconds(120), "shop_closed"},
      {"R_191: the third failure is final",
       with_two_delays(2),
       retry,
       Status::failed,
       3,
       {},
       "shop_closed"},
      {"R_192: without delays the first failure is final",
       job_with_delays({}),
       retry,
       Status::failed,
       1,
       {},
       "shop_closed"},
      {"J_17: attempts that are used up stay used up",
       with_two_delays(9),
       retry,
       Status::failed,
       10,
       {},
       "shop_closed"},
      {"a delay of the handler's own takes the place of the next one", with_two_delays(0),
       own_delay, Status::pending, 1, seconds(7), "shop_closed"},
      {"but makes no attempt more",
       with_two_delays(2),
       own_delay,
       Status::failed,
       3,
       {},
       "shop_closed"},
      {"R_185: fail is final with retries left",
       with_two_delays(0),
       fail,
       Status::failed,
       1,
       {},
       "no_such_order"},
      {"JT_26: snooze uses no attempt", snoozed(0), snooze, Status::pending, 0, seconds(30), "", 0,
       1},
      {"JT_26: the last snooze", snoozed(JobOutcome::most_snoozes - 1), snooze, Status::pending, 0,
       seconds(30), "", 0, JobOutcome::most_snoozes},
      {"JT_26: one too many has failed",
       snoozed(JobOutcome::most_snoozes),
       snooze,
       Status::failed,
       1,
       {},
       "snoozed_too_often",
       0,
       JobOutcome::most_snoozes},
      {"cancelled without a request is cancelled",
       with_two_delays(0),
       JobOutcome::cancelled(),
       Status::cancelled,
       0,
       {},
       "cancelled"},
  };
  for (const auto& row : rows)
    expect(row);
}

TEST(JobVerdict, What_nobody_reported_becomes_the_row) {
  const SendRefused refused{"queue_full", "10000 tasks"};
  auto interrupted_before = with_two_delays(1);
  interrupted_before.interruptions = 4;
  const std::vector<Judged> rows = {
      {"R_200: a deadline uses an attempt", with_two_delays(0), TimedOut{}, Status::pending, 1,
       seconds(60), "timed_out"},
      {"R_200: the last deadline is final",
       with_two_delays(2),
       TimedOut{},
       Status::failed,
       3,
       {},
       "timed_out"},
      {"R_203: a refused hand-over uses an attempt", with_two_delays(0), refused, Status::pending,
       1, seconds(60), "send_refused"},
      {"R_203: the last one is final",
       with_two_delays(2),
       refused,
       Status::failed,
       3,
       {},
       "send_refused"},
      {"JT_15, JT_17: an interruption uses none and is due at once",
       with_two_delays(0),
       Interrupted{},
       Status::pending,
       0,
       {},
       "interrupted",
       0,
       0,
       1},
      {"JT_15: also of the last attempt",
       with_two_delays(2),
       Interrupted{},
       Status::pending,
       2,
       {},
       "interrupted",
       0,
       0,
       1},
      {"interruptions are counted",
       interrupted_before,
       Interrupted{},
       Status::pending,
       1,
       {},
       "interrupted",
       0,
       0,
       5},
  };
  for (const auto& row : rows)
    expect(row);
}

TEST(JobVerdict, A_death_follows_the_policy_of_its_job) {
  const std::vector<Judged> rows = {
      {"R_209: death is final by default",
       with_two_delays(0),
       segfault,
       Status::failed,
       1,
       {},
       "worker_died",
       1},
      {"F123: the host is gone",
       with_two_delays(0),
       host_gone,
       Status::failed,
       1,
       {},
       "worker_died",
       1},
      {"F124: exit without a result",
       with_two_delays(0),
       clean_exit,
       Status::failed,
       1,
       {},
       "exited_without_result",
       1},
      {"F125: out of memory",
       with_two_delays(0),
       out_of_memory,
       Status::failed,
       1,
       {},
       "oom_killed",
       1},
      {"JT_08: a death is counted", with_deaths(0, 0), segfault, Status::pending, 1, seconds(1),
       "worker_died", 1},
      {"the last death that is forgiven", with_deaths(1, 1), segfault, Status::pending, 2,
       seconds(2), "worker_died", 2},
      {"one too many", with_deaths(2, 2), segfault, Status::failed, 3, {}, "worker_died", 3},
      {"none is forgiven", with_deaths(0, 0, 0), segfault, Status::failed, 1, {}, "worker_died", 1},
      {"an exit is a death, too",
       with_deaths(2, 2),
       clean_exit,
       Status::failed,
       3,
       {},
       "exited_without_result",
       3},
      {"J_17: no delay is left although deaths are",
       with_deaths(4, 0),
       segfault,
       Status::failed,
       5,
       {},
       "worker_died",
       1},
      {"no other end is a death", with_deaths(1, 1), TimedOut{}, Status::pending, 2, seconds(2),
       "timed_out", 1},
      {"nor is an interruption",
       with_deaths(1, 1),
       Interrupted{},
       Status::pending,
       1,
       {},
       "interrupted",
       1,
       0,
       1},
  };
  for (const auto& row : rows)
    expect(row);
}

TEST(JobVerdict, J_11_after_a_cancel_request_everything_but_done_cancels) {
  const auto job = cancelled_by_a_person(with_two_delays(0));
  const std::vector<Judged> rows = {
      {"it finished first", job, JobOutcome::done(), Status::completed, 0, {}, ""},
      {"retry", job, JobOutcome::retry("x"), Status::cancelled, 0, {}, "cancelled"},
      {"fail", job, JobOutcome::fail("x"), Status::cancelled, 0, {}, "cancelled"},
      {"snooze", job, JobOutcome::snooze(seconds(1)), Status::cancelled, 0, {}, "cancelled"},
      {"cancelled", job, JobOutcome::cancelled(), Status::cancelled, 0, {}, "cancelled"},
      {"timed out", job, TimedOut{}, Status::cancelled, 0, {}, "cancelled"},
      {"interrupted", job, Interrupted{}, Status::cancelled, 0, {}, "cancelled"},
      {"refused", job, SendRefused{"x", ""}, Status::cancelled, 0, {}, "cancelled"},
      {"JT_07: died, and it is counted", job, segfault, Status::cancelled, 0, {}, "cancelled", 1},
  };
  for (const auto& row : rows)
    expect(row);
}

// A job whose attempts all end in the same way, until it is final.
struct Life {
  std::vector<bool> last_attempt_flags;
  std::vector<milliseconds> waits;
  JobUpdate last;
};

Life live(Job job, const AttemptEnd& end) {
  Life life;
  constexpr std::size_t most_runs = 50;
  while (life.last_attempt_flags.size() < most_runs) {
    life.last_attempt_flags.push_back(job.last_attempt());
    life.last = judge_job(job, some_dispatch, end);
    if (life.last.status != Status::pending) return life;
    life.waits.push_back(life.last.available_in);
    job.attempts = life.last.attempts;
    job.deaths = life.last.deaths;
  }
  ADD_FAILURE() << "it never ends";
  return life;
}

TEST(JobVerdict, R_195_R_196_the_flag_of_the_last_attempt_follows_the_snapshot) {
  const auto retry = JobOutcome::retry("again");
  const auto two = live(with_two_delays(0), retry);
  EXPECT_EQ(two.last_attempt_flags, (std::vector{false, false, true}));
  EXPECT_EQ(two.waits, (std::vector<milliseconds>{seconds(60), seconds(120)}));
  EXPECT_EQ(live(job_with_delays({}), retry).last_attempt_flags, std::vector{true});
}

TEST(JobVerdict, JT_04_a_job_with_one_attempt_that_kills_its_worker_runs_once) {
  auto job = with_deaths(0, 0);
  job.retry_delays.clear();
  EXPECT_EQ(live(job, segfault).last_attempt_flags.size(), 1U);
  EXPECT_EQ(live(job, segfault).last.status, Status::failed);
}

TEST(JobVerdict, JT_05_two_deaths_are_forgiven_and_the_third_run_is_the_last) {
  const auto life = live(with_deaths(0, 0), segfault);
  EXPECT_EQ(life.last_attempt_flags.size(), 3U);
  EXPECT_EQ(life.last.status, Status::failed);
  EXPECT_EQ(life.last.failure_code, job_code::worker_died);
  EXPECT_EQ(life.last.deaths, 3);
}

TEST(JobVerdict, R_213_a_death_is_told_in_numbers) {
  const auto job = with_two_delays(0);
  EXPECT_EQ(judge_job(job, some_dispatch, segfault).failure_detail, "signal 11");
  EXPECT_EQ(judge_job(job, some_dispatch, WorkerDeath{0, 3, false}).failure_detail, "exit code 3");
}

TEST(JobVerdict, F132_equal_results_have_equal_words_and_different_ones_have_not) {
  const auto job = with_two_delays(0);
  const std::vector<AttemptEnd> ends = {
      JobOutcome::done(),
      JobOutcome::retry("a"),
      JobOutcome::retry("b"),
      JobOutcome::retry_in(seconds(1), "a"),
      JobOutcome::retry_in(seconds(2), "a"),
      JobOutcome::fail("a"),
      JobOutcome::snooze(seconds(1)),
      JobOutcome::snooze(seconds(2)),
      JobOutcome::cancelled(),
      segfault,
      WorkerDeath{6, std::nullopt, false},
      out_of_memory,
      clean_exit,
      WorkerDeath{0, 1, false},
      host_gone,
      TimedOut{},
      Interrupted{},
      SendRefused{"a", ""},
      SendRefused{"b", ""},
  };
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (std::size_t j = 0; j < ends.size(); ++j) {
      EXPECT_EQ(judge_job(job, some_dispatch, ends[i]).result ==
                    judge_job(job, some_dispatch, ends[j]).result,
                i == j)
          << judge_job(job, some_dispatch, ends[i]).result << " " << i << " " << j;
    }
  }
  EXPECT_EQ(judge_job(job, some_dispatch, JobOutcome::retry("a", "one")).result,
            judge_job(job, some_dispatch, JobOutcome::retry("a", "two")).result)
      << "details are for people";
}

TEST(JobVerdict, Words_that_no_database_takes_are_cleaned_and_cut) {
  JobOutcome outcome;
  outcome.kind = JobOutcome::Kind::fail;
  outcome.code = std::string("no\0code", 7);
  outcome.detail = std::string(1U << 20U, 'x') + "\xC3";
  const auto update = judge_job(with_two_delays(0), some_dispatch, outcome);
  EXPECT_EQ(update.failure_code.find('\0'), std::string::npos);
  EXPECT_EQ(update.result.find('\0'), std::string::npos);
  EXPECT_LE(update.failure_detail.size(), JobOutcome::detail_bytes);
  outcome.code.clear();
  EXPECT_EQ(judge_job(with_two_delays(0), some_dispatch, outcome).failure_code,
            job_code::handler_error);
}

// Every end with every policy: what must hold whatever they are.
TEST(JobVerdict, No_combination_breaks_a_limit_or_loses_a_count) {
  const std::vector<AttemptEnd> ends = {
      JobOutcome::done(),
      JobOutcome::retry("x"),
      JobOutcome::retry_in(JobOutcome::most_delay, "x"),
      JobOutcome::fail("x"),
      JobOutcome::snooze(seconds(1)),
      JobOutcome::cancelled(),
      segfault,
      out_of_memory,
      clean_exit,
      host_gone,
      TimedOut{},
      Interrupted{},
      SendRefused{"x", ""},
  };
  std::size_t combinations = 0;
  for (const auto& end : ends) {
    for (const int attempts : {0, 1, 2}) {
      for (const auto policy : {OnWorkerDeath::fail, OnWorkerDeath::retry}) {
        for (const int deaths : {0, 1, 2, 3}) {
          for (const bool cancel : {false, true}) {
            for (const int snoozes : {0, JobOutcome::most_snoozes}) {
              auto job = with_two_delays(attempts);
              job.on_worker_death = policy;
              job.max_deaths = 2;
              job.deaths = deaths;
              job.cancel_requested = cancel;
              job.snoozes = snoozes;
              ++combinations;
              const auto update = judge_job(job, some_dispatch, end);
              SCOPED_TRACE(update.result + " attempts " + std::to_string(attempts) + " deaths " +
                           std::to_string(deaths) + (cancel ? " cancel" : ""));
              const bool died = std::holds_alternative<WorkerDeath>(end);
              const bool done = end == AttemptEnd(JobOutcome::done());
              EXPECT_EQ(update.deaths, deaths + (died ? 1 : 0));
              EXPECT_EQ(update.status == Status::completed, done);
              EXPECT_LE(update.snoozes, JobOutcome::most_snoozes);
              if (cancel && !done) {
                EXPECT_EQ(update.status, Status::cancelled);
              }
              if (update.status == Status::pending) {
                EXPECT_LE(update.attempts, 2) << "no delay was left for another attempt";
                EXPECT_EQ(update.attempts + update.snoozes + update.interruptions,
                          attempts + snoozes + 1)
                    << "something was used, or it could go on forever";
              }
              if (died && update.status == Status::pending) {
                EXPECT_LE(update.deaths, 2);
              }
              if (update.status != Status::pending) {
                EXPECT_EQ(update.available_in, milliseconds(0));
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(combinations, ends.size() * 3U * 2U * 4U * 2U * 2U);
}

}  // namespace
}  // namespace postrider::core
