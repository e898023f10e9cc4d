// The worker as an application embeds it: threads, stopping, heartbeats, what attempts may ask.
#include <postrider/worker.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/handlers.hpp>
#include <postrider/runner/thread.hpp>
#include <postrider/testing/manual_clock.hpp>

#include "engine/job_table.hpp"

namespace postrider {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Status = DeliveryStatus;
using testing::JobTable;
using testing::ManualClock;
using testing::TableJobStore;
using namespace std::chrono_literals;

class NoticeList final : public Observer {
 public:
  void notice(const Notice& notice) override {
    const std::lock_guard lock(mutex_);
    notices_.push_back(notice);
  }
  [[nodiscard]] std::size_t count(NoticeKind kind) {
    const std::lock_guard lock(mutex_);
    std::size_t found = 0;
    for (const auto& notice : notices_)
      found += notice.kind == kind ? 1 : 0;
    return found;
  }
  [[nodiscard]] std::vector<Notice> all() {
    const std::lock_guard lock(mutex_);
    return notices_;
  }

 private:
  std::mutex mutex_;
  std::vector<Notice> notices_;
};

/// Bounded, for what another thread does.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = Deadline::after(10s);
  while (!condition()) {
    if (until.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Lets handlers in, and out when it is opened.
struct Gate {
  std::atomic<int> inside = 0;
  std::atomic<bool> open = false;
  void pass() {
    ++inside;
    while (!open)
      std::this_thread::yield();
  }
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() {
    options_.queues = {{"work", 1}};
    options_.concurrency = 4;
    options_.heartbeat = 50ms;
    options_.poll = 10ms;
  }
  ~WorkerTest() override { finish(); }

  Worker& make(const Clock& clock = system_clock()) {
    worker_ =
        std::make_unique<Worker>([this] { return std::make_unique<TableJobStore>(table_); },
                                 [this](AttemptDesk& desk) {
                                   return make_thread_runner(handlers_, options_.concurrency, desk);
                                 },
                                 options_, clock, *random_, observer_);
    return *worker_;
  }
  Worker& start(const Clock& clock = system_clock()) {
    auto& worker = make(clock);
    thread_ = std::thread([&] { result_ = worker.run(); });
    return worker;
  }
  /// Stops it, if that was not done, and waits for the end of its run.
  WorkerReport finish() {
    if (!thread_.joinable()) return {};
    worker_->request_stop();
    thread_.join();
    EXPECT_TRUE(result_->ok()) << describe(result_->error());
    return result_->ok() ? result_->value() : WorkerReport{};
  }
  bool reaches(DeliveryId job, Status status) {
    return eventually([&] { return table_.row(job).status == status; });
  }

  JobTable table_;
  WorkerOptions options_;
  Handlers handlers_;
  NoticeList observer_;
  std::unique_ptr<Random> random_ = seeded_random(5);
  std::unique_ptr<Worker> worker_;
  std::optional<Result<WorkerReport>> result_;
  std::thread thread_;
};

TEST_F(WorkerTest, Jobs_are_run_and_their_ends_recorded) {
  std::atomic<int> runs = 0;
  handlers_.bind("count", [&] { ++runs; });
  handlers_.bind("later", [] { throw RetryableError("busy"); });
  handlers_.bind("never", [] { throw std::runtime_error("canary"); });
  for (int i = 0; i < 100; ++i)
    table_.add("count");
  const auto later = table_.add("later");
  const auto never = table_.add("never");
  start();
  EXPECT_TRUE(eventually(
      [&] { return table_.count(Status::pending) + table_.count(Status::dispatched) == 0; }));
  const auto report = finish();

  EXPECT_EQ(runs, 100);
  EXPECT_EQ(table_.count(Status::completed), 100U);
  EXPECT_EQ(table_.row(later).last.failure_code, "busy");
  EXPECT_EQ(table_.row(later).last.available_in, 1000ms);
  EXPECT_EQ(table_.row(never).status, Status::failed);
  EXPECT_EQ(report.completed, 100U);
  EXPECT_EQ(report.retried, 1U);
  EXPECT_EQ(report.failed, 1U);
  EXPECT_TRUE(report.clean());
  for (const auto& notice : observer_.all())
    EXPECT_THAT(notice.detail, Not(HasSubstr("canary")));
}

TEST_F(WorkerTest, A_stop_before_the_start_lets_it_return_at_once) {
  handlers_.bind("count", [] {});
  const auto job = table_.add("count");
  auto& worker = make();
  worker.request_stop();
  const auto report = worker.run();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->clean());
  EXPECT_EQ(table_.row(job).status, Status::pending);
  EXPECT_TRUE(table_.workers().empty());
}

TEST_F(WorkerTest, It_signs_in_before_it_takes_and_signs_off_at_its_end) {
  handlers_.bind("count", [] {});
  options_.name = "shop";
  start();
  ASSERT_TRUE(eventually([&] { return table_.heartbeats() > 1; }));
  const auto workers = table_.workers();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].info.name, "shop");
  EXPECT_EQ(workers[0].info.pid, getpid());
  EXPECT_THAT(workers[0].info.queues, ::testing::ElementsAre("work"));
  EXPECT_FALSE(workers[0].info.host.empty());
  EXPECT_FALSE(workers[0].info.version.empty());
  finish();
  EXPECT_EQ(table_.state_of(workers[0].info.id), WorkerState::stopped);
}

TEST_F(WorkerTest, A_job_starts_when_it_is_written_and_not_when_somebody_looks) {
  handlers_.bind("count", [] {});
  options_.poll = std::chrono::minutes(10);
  start();
  ASSERT_TRUE(eventually([&] { return table_.takes > 0; }));
  const auto job = table_.add("count");
  EXPECT_TRUE(reaches(job, Status::completed));
}

TEST_F(WorkerTest, J_14_a_take_that_hangs_stops_no_heartbeat) {
  handlers_.bind("count", [] {});
  table_.stuck = true;
  start();
  ASSERT_TRUE(eventually([&] { return table_.takes == 1; }));
  const auto before = table_.heartbeats();
  EXPECT_TRUE(eventually([&] { return table_.heartbeats() >= before + 5; }));
  table_.stuck = false;
}

TEST_F(WorkerTest, J_18_a_stop_lets_a_job_end_within_the_grace) {
  Gate gate;
  handlers_.bind("slow", [&] { gate.pass(); });
  const auto job = table_.add("slow");
  auto& worker = start();
  ASSERT_TRUE(eventually([&] { return gate.inside == 1; }));
  worker.request_stop();
  ASSERT_TRUE(eventually([&] { return observer_.count(NoticeKind::worker_quiet) == 1; }));
  const auto unseen = table_.add("slow");
  gate.open = true;
  EXPECT_TRUE(finish().clean());
  EXPECT_EQ(table_.row(job).status, Status::completed);
  EXPECT_EQ(table_.row(unseen).status, Status::pending) << "a quiet worker takes nothing";
}

TEST_F(WorkerTest, JT_15_a_job_longer_than_the_grace_is_given_back_without_using_an_attempt) {
  options_.grace = 0ms;
  std::atomic<bool> inside = false;
  handlers_.bind("endless", [&](std::stop_token stop) {
    inside = true;
    while (!stop.stop_requested())
      std::this_thread::yield();
    return JobOutcome::cancelled();
  });
  const auto job = table_.add("endless");
  start();
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  const auto report = finish();
  EXPECT_EQ(report.released, 1U);
  EXPECT_FALSE(report.clean());
  const auto recorded = table_.row(job).last;
  EXPECT_EQ(recorded.status, Status::pending) << "no person has cancelled it";
  EXPECT_EQ(recorded.attempts, 0);
  EXPECT_EQ(recorded.interruptions, 1);
  EXPECT_EQ(recorded.available_in, 0ms);
}

TEST_F(WorkerTest, J_18_a_second_stop_asks_the_jobs_to_stop_at_once) {
  options_.grace = std::chrono::hours(1);
  std::atomic<bool> inside = false;
  handlers_.bind("endless", [&](Attempt& attempt) {
    inside = true;
    while (!attempt.stop_requested())
      std::this_thread::yield();
    return JobOutcome::cancelled();
  });
  table_.add("endless");
  auto& worker = start();
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  worker.request_stop();
  worker.request_stop();
  worker.request_stop();
  EXPECT_EQ(finish().released, 1U);
}

TEST_F(WorkerTest, A_handler_that_ignores_the_stop_holds_up_no_report_but_the_close) {
  options_.grace = 0ms;
  options_.hard_grace = 0ms;
  Gate gate;
  handlers_.bind("deaf", [&] { gate.pass(); });
  const auto job = table_.add("deaf");
  start();
  ASSERT_TRUE(eventually([&] { return gate.inside == 1; }));
  EXPECT_EQ(finish().released, 1U);
  EXPECT_EQ(table_.row(job).last.interruptions, 1);

  auto closed = std::async(std::launch::async, [&] { worker_->close(); });
  EXPECT_EQ(closed.wait_for(20ms), std::future_status::timeout);
  gate.open = true;
  closed.get();
}

TEST_F(WorkerTest, JT_18_a_running_job_sees_that_a_person_has_cancelled_it) {
  std::atomic<bool> inside = false;
  handlers_.bind("endless", [&](std::stop_token stop) {
    inside = true;
    while (!stop.stop_requested())
      std::this_thread::yield();
    return JobOutcome::cancelled();
  });
  const auto job = table_.add("endless");
  start();
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  table_.cancel(job);
  EXPECT_TRUE(reaches(job, Status::cancelled));
  EXPECT_EQ(finish().cancelled, 1U);
}

TEST_F(WorkerTest, R_202_an_attempt_that_was_taken_over_learns_it_and_its_result_changes_nothing) {
  std::atomic<bool> inside = false;
  std::atomic<bool> was_current = false;
  std::atomic<bool> learned = false;
  handlers_.bind("pages", [&](Attempt& attempt) {
    was_current = attempt.is_current().value();
    inside = true;
    while (attempt.is_current().value())
      std::this_thread::yield();
    learned = true;
  });
  const auto job = table_.add("pages");
  start();
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  table_.give_away(job);
  EXPECT_TRUE(eventually([&] { return learned.load(); }));
  EXPECT_TRUE(was_current);
  EXPECT_EQ(finish().completed, 0U);
  EXPECT_EQ(table_.row(job).status, Status::dispatched) << "it is another attempt's";
  EXPECT_EQ(observer_.count(NoticeKind::result_stale), 1U);
}

TEST_F(WorkerTest, J_20_progress_and_checkpoint_are_written_while_it_runs) {
  Gate gate;
  handlers_.bind("pages", [&](Attempt& attempt) {
    EXPECT_TRUE(attempt.progress(40, "page 3"));
    EXPECT_TRUE(attempt.checkpoint("3"));
    gate.pass();
  });
  const auto job = table_.add("pages");
  start();
  ASSERT_TRUE(eventually([&] { return gate.inside == 1; }));
  EXPECT_EQ(table_.row(job).percent, 40);
  EXPECT_EQ(table_.row(job).checkpoint, "3");
  gate.open = true;
  finish();  // before what its threads use is gone
}

TEST_F(WorkerTest, J_13_a_deadline_that_was_moved_is_the_one_that_counts) {
  ManualClock clock;
  Gate gate;
  options_.heartbeat = 5s;
  handlers_.bind("long", [&](Attempt& attempt) {
    EXPECT_TRUE(attempt.extend(std::chrono::minutes(1)));
    gate.pass();
    return attempt.stop_requested() ? JobOutcome::fail("asked_to_stop") : JobOutcome::done();
  });
  const auto job = table_.add("long", 10s);
  start(clock);
  ASSERT_TRUE(eventually([&] { return gate.inside == 1; }));
  const auto before = table_.heartbeats();
  clock.advance(15s);
  ASSERT_TRUE(eventually([&] { return table_.heartbeats() > before; }));
  gate.open = true;
  EXPECT_TRUE(reaches(job, Status::completed));
  finish();  // before what its threads use is gone
}

TEST_F(WorkerTest, A_job_that_outlives_its_deadline_is_ended_by_the_worker) {
  ManualClock clock;
  options_.heartbeat = 5s;
  std::atomic<bool> inside = false;
  handlers_.bind("long", [&](std::stop_token stop) {
    inside = true;
    while (!stop.stop_requested())
      std::this_thread::yield();
  });
  const auto job = table_.add("long", 10s);
  start(clock);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  clock.advance(11s);
  EXPECT_TRUE(reaches(job, Status::held)) << "it waits for its retry";
  EXPECT_EQ(table_.row(job).last.failure_code, job_code::timed_out);
  EXPECT_EQ(table_.row(job).last.attempts, 1);
  finish();  // before what its threads use is gone
}

// ---- who was here before

WorkerInfo earlier(const WorkerInfo& now, std::uint8_t number, std::int64_t pid) {
  auto info = now;
  std::array<std::uint8_t, 16> id{};
  id.back() = number;
  info.id = WorkerId(Uuid(id));
  info.pid = pid;
  info.state = WorkerState::running;
  return info;
}

std::int64_t pid_of_a_process_that_is_gone() {
  const auto child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return child;
}

TEST_F(WorkerTest, F130_JT_12_starts_of_this_host_whose_process_is_gone_are_declared_dead_at_once) {
  handlers_.bind("count", [] {});
  start();
  ASSERT_TRUE(eventually([&] { return !table_.workers().empty(); }));
  const auto alive = table_.workers()[0].info;

  const auto gone = earlier(alive, 1, pid_of_a_process_that_is_gone());
  const auto same_number = earlier(alive, 2, getpid());
  const auto neighbour = earlier(alive, 3, getppid());
  auto elsewhere = earlier(alive, 4, gone.pid);
  elsewhere.host = "another/boot/1";
  for (const auto& each : {gone, same_number, neighbour, elsewhere})
    table_.add_worker(each);

  const auto random = seeded_random(6);
  Worker second([this] { return std::make_unique<TableJobStore>(table_); },
                [this](AttemptDesk& desk) { return make_thread_runner(handlers_, 1, desk); },
                options_, system_clock(), *random, observer_);
  const auto checks = table_.schema_checks.load();
  std::thread thread([&] { EXPECT_TRUE(second.run()); });
  EXPECT_TRUE(eventually([&] { return table_.workers().size() == 6; }));
  EXPECT_GT(table_.schema_checks, checks);

  EXPECT_EQ(table_.state_of(gone.id), WorkerState::dead);
  EXPECT_EQ(table_.state_of(same_number.id), WorkerState::dead)
      << "our number, and none of our workers: the first process of a container before";
  EXPECT_EQ(table_.state_of(neighbour.id), WorkerState::running);
  EXPECT_EQ(table_.state_of(elsewhere.id), WorkerState::running) << "its numbers are not ours";
  EXPECT_EQ(table_.state_of(alive.id), WorkerState::running) << "another worker of this process";
  second.request_stop();
  thread.join();
}

// ---- what prevents work

TEST_F(WorkerTest, A_database_that_is_away_at_the_start_is_waited_for_and_told_once) {
  handlers_.bind("count", [] {});
  table_.fail(Error{ErrorCode::unavailable, Disposition::retry, "gone.", "test", ""});
  start();
  EXPECT_TRUE(eventually([&] { return table_.schema_checks > 2; }));
  table_.fail(std::nullopt);
  const auto job = table_.add("count");
  EXPECT_TRUE(reaches(job, Status::completed));
  EXPECT_EQ(observer_.count(NoticeKind::store_failed), 1U);
  EXPECT_EQ(observer_.count(NoticeKind::store_recovered), 1U);
}

TEST_F(WorkerTest, A_stop_ends_the_wait_for_a_database) {
  handlers_.bind("count", [] {});
  table_.fail(Error{ErrorCode::unavailable, Disposition::retry, "gone.", "test", ""});
  start();
  EXPECT_TRUE(eventually([&] { return table_.schema_checks > 1; }));
  EXPECT_TRUE(finish().clean());
}

TEST_F(WorkerTest, An_end_is_recorded_when_the_database_is_back) {
  Gate gate;
  handlers_.bind("slow", [&] { gate.pass(); });
  const auto job = table_.add("slow");
  start();
  ASSERT_TRUE(eventually([&] { return gate.inside == 1; }));
  table_.fail(Error{ErrorCode::unavailable, Disposition::retry, "gone.", "test", ""});
  gate.open = true;
  EXPECT_TRUE(eventually([&] { return observer_.count(NoticeKind::store_failed) > 0; }));
  table_.fail(std::nullopt);
  EXPECT_TRUE(reaches(job, Status::completed));
  finish();  // before what its threads use is gone
}

TEST_F(WorkerTest, R_215_what_a_person_has_to_mend_ends_the_run) {
  handlers_.bind("count", [] {});
  table_.fail(Error{ErrorCode::schema_mismatch, Disposition::stop, "migrate.", "test", ""});
  EXPECT_EQ(make().run().error().code, ErrorCode::schema_mismatch);
}

TEST_F(WorkerTest, Options_and_handlers_that_cannot_be_used_are_errors_of_the_run) {
  EXPECT_EQ(make().run().error().code, ErrorCode::config_invalid) << "no handler is bound";
  handlers_.bind("count", [] {});
  options_.queues.clear();
  options_.dead_after = 150ms;
  const auto wrong = make().run();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("queues"));
  EXPECT_THAT(wrong.error().message, HasSubstr("dead_after"));
}

TEST_F(WorkerTest, A_worker_runs_once) {
  handlers_.bind("count", [] {});
  auto& worker = make();
  worker.request_stop();
  EXPECT_TRUE(worker.run());
  EXPECT_EQ(worker.run().error().code, ErrorCode::config_invalid);
}

TEST_F(WorkerTest, Starting_and_stopping_at_any_moment_hangs_nowhere_and_loses_no_job) {
  std::atomic<int> runs = 0;
  handlers_.bind("count", [&](std::stop_token stop) {
    for (int i = 0; i < 50 && !stop.stop_requested(); ++i)
      std::this_thread::yield();
    ++runs;
  });
  const auto chance = seeded_random(11);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 3; ++i)
      table_.add("count");
    auto& worker = start();
    const auto turns = chance->next() % 2000;
    for (std::uint64_t i = 0; i < turns; ++i)
      std::this_thread::yield();
    if (chance->next() % 2 == 0) worker.request_stop();
    EXPECT_EQ(finish().unrecorded, 0U);
    ASSERT_EQ(table_.count(Status::dispatched), 0U) << "round " << round;
  }
  start();
  EXPECT_TRUE(eventually([&] { return table_.count(Status::completed) == 600; }));
  EXPECT_EQ(runs, 600);
}

}  // namespace
}  // namespace postrider
