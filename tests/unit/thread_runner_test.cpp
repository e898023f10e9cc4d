// Jobs in threads of this process.
#include <postrider/runner/thread.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/recording_desk.hpp"

namespace postrider {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class ThreadRunnerTest : public ::testing::Test {
 protected:
  std::unique_ptr<JobRunner> make(std::size_t threads) {
    auto made = make_thread_runner(handlers_, threads, desk_);
    EXPECT_TRUE(made) << describe(made.error());
    return std::move(made).value();
  }
  static Task task(std::uint8_t number, std::string job = "work") {
    std::array<std::uint8_t, 16> bytes{};
    bytes.back() = number;
    Task task;
    task.dispatch_id = DispatchId(Uuid(bytes));
    task.job.job = std::move(job);
    task.event = std::make_shared<const Event>();
    return task;
  }
  /// The next report, or none within a patience that no machine needs.
  static RunnerReport next(JobRunner& runner) {
    const auto until = Deadline::after(10s);
    while (!until.passed()) {
      auto reports = runner.poll(until);
      EXPECT_LE(reports.size(), 1U);
      if (!reports.empty()) return reports.front();
    }
    ADD_FAILURE() << "no report";
    return {};
  }

  Handlers handlers_;
  RecordingDesk desk_;
};

TEST_F(ThreadRunnerTest, An_attempt_ends_with_what_its_handler_returned) {
  handlers_.bind("work", [] { return JobOutcome::fail("no_stock"); });
  const auto runner = make(1);
  runner->start(task(1));
  const auto report = next(*runner);
  EXPECT_EQ(report.dispatch_id, task(1).dispatch_id);
  EXPECT_EQ(std::get<JobOutcome>(report.end), JobOutcome::fail("no_stock"));
  runner->start(task(2));
  EXPECT_EQ(next(*runner).dispatch_id, task(2).dispatch_id) << "the slot is free again";
}

TEST_F(ThreadRunnerTest, It_says_what_it_can_and_cannot_do) {
  handlers_.bind("work", [] {});
  const auto runner = make(3);
  EXPECT_EQ(runner->traits().slots, 3U);
  EXPECT_TRUE(runner->traits().crash_kills_worker);
  EXPECT_FALSE(runner->traits().can_kill);
  EXPECT_TRUE(runner->check_job("work"));
  EXPECT_FALSE(runner->check_job("other"));
}

TEST_F(ThreadRunnerTest, As_many_attempts_run_at_once_as_there_are_threads) {
  std::atomic<int> inside = 0;
  handlers_.bind("work", [&] {
    ++inside;
    while (inside < 3)
      std::this_thread::yield();
  });
  const auto runner = make(3);
  for (std::uint8_t i = 1; i <= 3; ++i)
    runner->start(task(i));
  std::size_t ended = 0;
  while (ended < 3)
    ended += runner->poll(Deadline::after(10s)).size();
}

TEST_F(ThreadRunnerTest, No_thread_sleeps_on_while_an_attempt_waits_whatever_ran_before) {
  constexpr std::uint8_t threads = 4;
  std::atomic<int> inside = 0;
  std::atomic<int> wanted = 0;
  handlers_.bind("short", [] {});
  handlers_.bind("work", [&] {
    ++inside;
    while (inside < wanted)
      std::this_thread::yield();
  });
  const auto runner = make(threads);
  const auto all_end = [&](const std::string& job) {
    for (std::uint8_t i = 1; i <= threads; ++i)
      runner->start(task(i, job));
    const auto until = Deadline::after(30s);
    std::size_t ended = 0;
    while (ended < threads && !until.passed())
      ended += runner->poll(until).size();
    wanted = 0;
    return ended == threads;
  };
  for (int round = 1; round <= 200; ++round) {
    ASSERT_TRUE(all_end("short"));
    wanted = round * threads;
    ASSERT_TRUE(all_end("work")) << "round " << round;
  }
}

TEST_F(ThreadRunnerTest, A_stop_request_reaches_its_attempt_only) {
  std::atomic<int> inside = 0;
  std::atomic<bool> open = false;
  handlers_.bind("work", [&](std::stop_token stop) {
    ++inside;
    while (!stop.stop_requested() && !open)
      std::this_thread::yield();
    return stop.stop_requested() ? JobOutcome::cancelled() : JobOutcome::done();
  });
  const auto runner = make(2);
  runner->start(task(1));
  runner->start(task(2));
  while (inside < 2)
    std::this_thread::yield();
  runner->kill(task(1).dispatch_id);  // cannot be done, and does nothing
  runner->request_stop(task(2).dispatch_id);
  const auto stopped = next(*runner);
  EXPECT_EQ(stopped.dispatch_id, task(2).dispatch_id);
  EXPECT_EQ(std::get<JobOutcome>(stopped.end), JobOutcome::cancelled());
  runner->request_stop(task(2).dispatch_id);  // it has ended
  open = true;
  EXPECT_EQ(std::get<JobOutcome>(next(*runner).end), JobOutcome::done());
}

TEST_F(ThreadRunnerTest, A_wake_ends_the_wait_for_reports) {
  handlers_.bind("work", [] {});
  const auto runner = make(1);
  auto polled =
      std::async(std::launch::async, [&] { return runner->poll(Deadline::after(1h)).size(); });
  runner->wake();
  EXPECT_EQ(polled.get(), 0U);
}

TEST_F(ThreadRunnerTest, A_close_asks_what_runs_to_stop_and_waits_for_it) {
  std::atomic<bool> inside = false;
  std::atomic<bool> ended = false;
  handlers_.bind("work", [&](std::stop_token stop) {
    inside = true;
    while (!stop.stop_requested())
      std::this_thread::yield();
    ended = true;
  });
  const auto runner = make(1);
  runner->start(task(1));
  while (!inside)
    std::this_thread::yield();
  runner->close();
  EXPECT_TRUE(ended);
  runner->close();
}

TEST_F(ThreadRunnerTest, An_attempt_asks_at_the_desk_of_its_runner) {
  handlers_.bind("work", [](Attempt& attempt) { EXPECT_TRUE(attempt.is_current().value()); });
  const auto runner = make(1);
  runner->start(task(1));
  next(*runner);
  ASSERT_EQ(desk_.asked.size(), 1U);
  EXPECT_EQ(desk_.asked[0].dispatch_id, task(1).dispatch_id);
}

TEST_F(ThreadRunnerTest, Handlers_that_cannot_be_used_make_no_runner) {
  EXPECT_EQ(make_thread_runner(handlers_, 1, desk_).error().code, ErrorCode::config_invalid);
  handlers_.bind("work", [](const RecordingDesk&) {});
  const auto refused = make_thread_runner(handlers_, 1, desk_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("RecordingDesk"));
}

}  // namespace
}  // namespace postrider
