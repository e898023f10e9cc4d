// Jobs of C++ handlers in child processes, with real deaths.
#include <postrider/runner/process.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/descriptor.hpp"
#include "unit/recording_desk.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

/// Its reading end sees the end of all processes that hold the writing end.
struct LifeLine {
  LifeLine() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    reading = Descriptor(ends[0]);
    writing = Descriptor(ends[1]);
  }
  /// Nobody else holds it any more, within a patience that no machine needs.
  bool is_cut() {
    writing.reset();
    const auto until = Deadline::after(10s);
    std::array<char, 16> bytes{};
    while (!until.passed()) {
      pollfd watched{reading.get(), POLLIN, 0};
      if (::poll(&watched, 1, static_cast<int>(until.remaining().count())) <= 0) continue;
      if (read(reading.get(), bytes.data(), bytes.size()) == 0) return true;
    }
    return false;
  }
  /// A byte that somebody has written.
  bool is_told() {
    char byte = 0;
    return read(reading.get(), &byte, 1) == 1;
  }
  void tell() const { EXPECT_EQ(write(writing.get(), "x", 1), 1); }
  Descriptor reading;
  Descriptor writing;
};

class ProcessRunnerTest : public ::testing::Test {
 protected:
  std::unique_ptr<JobRunner> make(std::size_t slots) {
    auto made = make_process_runner(handlers_, slots, desk_);
    EXPECT_TRUE(made) << describe(made.error());
    return std::move(made).value();
  }
  static Task task(std::uint8_t number, std::string job = "work") {
    std::array<std::uint8_t, 16> bytes{};
    bytes.back() = number;
    Task task;
    task.dispatch_id = DispatchId(Uuid(bytes));
    bytes.front() = 1;
    task.job.delivery_id = DeliveryId(Uuid(bytes));
    task.job.job = std::move(job);
    task.event = std::make_shared<const Event>();
    return task;
  }
  static AttemptEnd next(JobRunner& runner) {
    const auto until = Deadline::after(10s);
    while (!until.passed()) {
      auto reports = runner.poll(until);
      EXPECT_LE(reports.size(), 1U);
      if (!reports.empty()) return reports.front().end;
    }
    ADD_FAILURE() << "no report";
    return {};
  }
  AttemptEnd run(JobRunner& runner, Task task) {
    runner.start(std::move(task));
    return next(runner);
  }
  static JobOutcome outcome(const AttemptEnd& end) {
    const auto* const outcome = std::get_if<JobOutcome>(&end);
    EXPECT_NE(outcome, nullptr) << "it ended otherwise: " << end.index();
    return outcome == nullptr ? JobOutcome::fail("no_outcome") : *outcome;
  }
  static WorkerDeath death(const AttemptEnd& end) {
    const auto* const death = std::get_if<WorkerDeath>(&end);
    EXPECT_NE(death, nullptr) << "it ended otherwise: " << end.index();
    return death == nullptr ? WorkerDeath{-1, std::nullopt, false} : *death;
  }

  Handlers handlers_;
  RecordingDesk desk_;
};

TEST_F(ProcessRunnerTest, A_handler_runs_in_another_process_and_its_outcome_comes_back) {
  handlers_.bind("work", [worker = getpid()](const Event& event) {
    if (getpid() == worker) return JobOutcome::fail("same_process");
    return JobOutcome::retry_in(3s, "busy", std::to_string(event.payload.size()));
  });
  const auto runner = make(1);
  EXPECT_EQ(runner->traits().slots, 1U);
  EXPECT_TRUE(runner->traits().can_kill);
  EXPECT_FALSE(runner->traits().crash_kills_worker);

  auto large = task(1);
  Event event;
  event.payload = std::string(3U << 20U, '\0');
  large.event = std::make_shared<const Event>(std::move(event));
  EXPECT_EQ(outcome(run(*runner, large)), JobOutcome::retry_in(3s, "busy", "3145728"));
}

TEST_F(ProcessRunnerTest, Exceptions_become_outcomes_in_the_child) {
  handlers_.bind("work", [] { throw RetryableError("busy"); });
  handlers_.bind("worse", [] { throw std::runtime_error("canary"); });
  const auto runner = make(1);
  EXPECT_EQ(outcome(run(*runner, task(1))), JobOutcome::retry("busy"));
  EXPECT_EQ(outcome(run(*runner, task(2, "worse"))),
            JobOutcome::fail(job_code::handler_error, "std::runtime_error"));
}

TEST_F(ProcessRunnerTest, F123_R_208_a_crash_ends_its_attempt_and_its_signal_is_known) {
  handlers_.bind("kill", [] { raise(SIGKILL); });
  handlers_.bind("segfault", [] {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  });
  handlers_.bind("abort", [] { std::abort(); });
  handlers_.bind("work", [] {});
  const auto runner = make(1);
  EXPECT_EQ(death(run(*runner, task(1, "kill"))), (WorkerDeath{SIGKILL, std::nullopt, false}));
  EXPECT_EQ(death(run(*runner, task(2, "segfault"))).signal, SIGSEGV);
  EXPECT_EQ(death(run(*runner, task(3, "abort"))).signal, SIGABRT);
  EXPECT_EQ(outcome(run(*runner, task(4))), JobOutcome::done()) << "a new child has its slot";
}

TEST_F(ProcessRunnerTest, F123_a_crash_leaves_the_other_attempts_alone) {
  LifeLine line;
  handlers_.bind("wait", [&](std::stop_token stop) {
    line.tell();
    while (!stop.stop_requested())
      std::this_thread::yield();
    return JobOutcome::fail("was_alive");
  });
  handlers_.bind("kill", [] { raise(SIGKILL); });
  const auto runner = make(2);
  runner->start(task(1, "wait"));
  ASSERT_TRUE(line.is_told());
  EXPECT_EQ(death(run(*runner, task(2, "kill"))).signal, SIGKILL);
  runner->request_stop(task(1).dispatch_id);
  EXPECT_EQ(outcome(next(*runner)), JobOutcome::fail("was_alive"));
}

TEST_F(ProcessRunnerTest, F124_an_exit_without_a_result_is_a_death_with_its_code) {
  handlers_.bind("work", [] { _exit(0); });
  handlers_.bind("seven", [] { std::exit(7); });
  const auto runner = make(1);
  EXPECT_EQ(death(run(*runner, task(1))), (WorkerDeath{0, 0, false}));
  EXPECT_EQ(death(run(*runner, task(2, "seven"))), (WorkerDeath{0, 7, false}));
}

TEST_F(ProcessRunnerTest, F125_a_kill_by_the_kernel_for_memory_is_told_apart) {
  std::string folder = (std::filesystem::temp_directory_path() / "postrider-oom-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto count = [folder](int kills) {
    std::ofstream(folder + "/memory.events") << "oom 9\noom_kill " << kills << "\n";
  };
  count(2);
  handlers_.bind("greedy", [count] {
    count(3);
    raise(SIGKILL);
  });
  handlers_.bind("kill", [] { raise(SIGKILL); });
  auto runner = make_process_runner(handlers_, 1, desk_, ProcessOptions{folder});
  ASSERT_TRUE(runner) << describe(runner.error());
  EXPECT_TRUE(death(run(**runner, task(1, "greedy"))).out_of_memory);
  EXPECT_FALSE(death(run(**runner, task(2, "kill"))).out_of_memory);
  std::filesystem::remove_all(folder);
}

TEST_F(ProcessRunnerTest, F126_a_handler_that_hangs_is_killed) {
  LifeLine line;
  handlers_.bind("work", [&] {
    line.tell();
    while (true)
      pause();
  });
  const auto runner = make(1);
  runner->start(task(1));
  ASSERT_TRUE(line.is_told());
  runner->request_stop(task(1).dispatch_id);
  runner->kill(task(1).dispatch_id);
  EXPECT_EQ(death(next(*runner)).signal, SIGKILL);
  runner->kill(task(1).dispatch_id);  // it has ended
}

/// Starts a process that writes its number into the line and lives for ever.
void start_background_process(const LifeLine& line) {
  if (fork() != 0) return;
  const auto self = getpid();
  EXPECT_EQ(write(line.writing.get(), &self, sizeof self), sizeof self);
  while (true)
    pause();
}

bool is_gone(pid_t pid) {
  const auto until = Deadline::after(10s);
  while (kill(pid, 0) == 0) {
    if (until.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(ProcessRunnerTest, F127_what_a_child_has_started_dies_with_it_daemons_included) {
  LifeLine line;
  handlers_.bind("work", [&] {
    start_background_process(line);
    _exit(3);
  });
  handlers_.bind("daemon", [&] {
    const auto between = fork();
    if (between == 0) {
      setsid();
      start_background_process(line);
      _exit(0);
    }
    waitpid(between, nullptr, 0);
    _exit(3);
  });
  const auto runner = make(1);
  std::uint8_t number = 0;
  for (const auto* job : {"work", "daemon"}) {
    EXPECT_EQ(death(run(*runner, task(++number, job))).exit_code, 3);
    pid_t started = 0;
    // The first one may be killed before it has said its number.
    pollfd watched{line.reading.get(), POLLIN, 0};
    if (::poll(&watched, 1, 0) == 0) continue;
    ASSERT_EQ(read(line.reading.get(), &started, sizeof started), sizeof started);
    EXPECT_TRUE(is_gone(started)) << job;
  }
  runner->close();
  EXPECT_TRUE(line.is_cut());
}

TEST_F(ProcessRunnerTest, F129_when_the_worker_is_killed_its_children_go_too) {
  LifeLine line;
  const auto worker = fork();
  if (worker == 0) {
    handlers_.bind("work", [&] {
      line.tell();
      while (true)
        pause();
    });
    const auto runner = make(2);
    runner->start(task(1));
    while (true)
      pause();
  }
  EXPECT_TRUE(line.is_told());
  EXPECT_EQ(kill(worker, SIGKILL), 0);
  EXPECT_EQ(waitpid(worker, nullptr, 0), worker);
  EXPECT_TRUE(line.is_cut());
}

TEST_F(ProcessRunnerTest, Attempts_ask_at_the_desk_of_the_worker) {
  desk_.answer = AttemptState{true, false, 90s};
  handlers_.bind("work", [](Attempt& attempt) {
    const auto extended = attempt.extend(2min);
    if (!extended || extended->until_timeout != 90s) return JobOutcome::fail("extend");
    if (!attempt.progress(40, "page 3")) return JobOutcome::fail("progress");
    if (!attempt.checkpoint(attempt.last_checkpoint() + "4")) return JobOutcome::fail("checkpoint");
    return JobOutcome::done();
  });
  const auto runner = make(1);
  auto third = task(1);
  third.checkpoint = std::string("3\0", 2);
  EXPECT_EQ(outcome(run(*runner, third)), JobOutcome::done());
  ASSERT_EQ(desk_.asked.size(), 3U);
  EXPECT_EQ(desk_.asked[0].extend, milliseconds(2min));
  EXPECT_EQ(desk_.asked[0].delivery_id, third.job.delivery_id);
  EXPECT_EQ(desk_.asked[0].dispatch_id, third.dispatch_id);
  EXPECT_EQ(desk_.asked[1].percent, 40);
  EXPECT_EQ(desk_.asked[2].checkpoint, std::string("3\0004", 3));
}

TEST_F(ProcessRunnerTest, An_error_of_the_database_reaches_the_handler) {
  desk_.failure = Error{ErrorCode::unavailable, Disposition::retry, "gone.", "test", ""};
  handlers_.bind("work", [](Attempt& attempt) {
    return JobOutcome::fail(to_string(attempt.is_current().error().code));
  });
  const auto runner = make(1);
  EXPECT_EQ(outcome(run(*runner, task(1))).code, "unavailable");
}

TEST_F(ProcessRunnerTest, A_child_keeps_what_a_service_has_made_of_itself) {
  handlers_.bind("work", [count = std::make_shared<int>(0)] {
    return JobOutcome::fail("run_" + std::to_string(++*count));
  });
  const auto runner = make(1);
  EXPECT_EQ(outcome(run(*runner, task(1))).code, "run_1");
  EXPECT_EQ(outcome(run(*runner, task(2))).code, "run_2");
}

// A handler that writes where it should not.
TEST_F(ProcessRunnerTest, A_child_that_says_what_no_sound_child_says_is_ended) {
  handlers_.bind("work", [] {
    const std::string nonsense(100, '\xFF');
    for (int descriptor = 3; descriptor < 64; ++descriptor)
      (void)send(descriptor, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    while (true)
      pause();
  });
  handlers_.bind("sound", [] {});
  const auto runner = make(1);
  const auto end = death(run(*runner, task(1)));
  EXPECT_TRUE(end.signal == SIGKILL || end.exit_code == 0) << "killed, or gone by itself";
  EXPECT_EQ(outcome(run(*runner, task(2, "sound"))), JobOutcome::done());
}

TEST_F(ProcessRunnerTest, More_jobs_than_children_run_one_after_the_other) {
  handlers_.bind("work", [](DispatchId dispatch) {
    if (dispatch.value().bytes().back() % 10 == 0) raise(SIGKILL);
  });
  const auto runner = make(3);
  std::uint8_t started = 0;
  std::size_t running = 0;
  std::size_t done = 0;
  std::size_t died = 0;
  while (done + died < 100) {
    for (; running < 3 && started < 100; ++running)
      runner->start(task(++started));
    const auto reports = runner->poll(Deadline::after(10s));
    ASSERT_FALSE(reports.empty());
    for (const auto& report : reports) {
      --running;
      ++(std::holds_alternative<WorkerDeath>(report.end) ? died : done);
    }
  }
  EXPECT_EQ(done, 90U);
  EXPECT_EQ(died, 10U);
}

TEST_F(ProcessRunnerTest, A_process_with_threads_is_not_forked) {
  handlers_.bind("work", [] {});
  std::thread other([] { std::this_thread::sleep_for(200ms); });
  const auto refused = make_process_runner(handlers_, 1, desk_);
  other.join();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

TEST_F(ProcessRunnerTest, Handlers_that_cannot_be_used_make_no_runner) {
  EXPECT_EQ(make_process_runner(handlers_, 1, desk_).error().code, ErrorCode::config_invalid);
}

}  // namespace
}  // namespace postrider
