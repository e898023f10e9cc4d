// Processes that die, hang, flood and fork: F123 to F129 as far as a runner sees them.

#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <map>
#include <thread>
#include <vector>

#include "runners/exec_fixture.hpp"
#include "servers/child_process.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;
using ExecFaults = ExecFixture;
using std::chrono::steady_clock;

/// A death is promised to be noticed within a second; it takes milliseconds.
constexpr std::chrono::seconds noticed_within{1};

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr)  // NOLINT(concurrency-mt-unsafe)
    ++count;
  ::closedir(folder);
  return count;
}

std::size_t peak_memory_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss);
}

/// Reports of `count` attempts.
std::map<DispatchId, std::string> reports_of(JobRunner& runner, std::size_t count) {
  std::map<DispatchId, std::string> reports;
  const auto deadline = Deadline::after(report_patience);
  while (reports.size() < count && !deadline.passed()) {
    for (const auto& report : runner.poll(deadline))
      EXPECT_TRUE(reports.emplace(report.dispatch_id, words_of(report.end)).second);
  }
  return reports;
}

TEST_F(ExecFaults, F123_each_deadly_signal_is_noticed_at_once_with_its_number) {
  for (const auto& [name, number] : std::map<std::string, int>{
           {"SEGV", 11}, {"ABRT", 6}, {"KILL", 9}, {"BUS", 7}, {"FPE", 8}, {"TERM", 15}}) {
    const auto started = steady_clock::now();
    EXPECT_EQ(words_of(end_of("ulimit -c 0; kill -" + name + " $$; sleep 600")),
              "died of signal " + std::to_string(number));
    EXPECT_LT(steady_clock::now() - started, noticed_within) << name;
  }
}

TEST_F(ExecFaults, F123_kill_9_ends_one_job_and_leaves_its_neighbour_alone) {
  auto& runner =
      use("echo $$ > $FOLDER/pid.$POSTRIDER_DISPATCH_ID; "
          "until [ -e $FOLDER/go ]; do sleep 0.01; done");
  runner.start(task(1));
  runner.start(task(2));
  const auto file_of = [](int number) { return "pid." + dispatch(number).value().to_string(); };
  const auto victim = pid_in(file_of(1));
  const auto neighbour = pid_in(file_of(2));
  const auto killed = steady_clock::now();
  ::kill(victim, SIGKILL);
  const auto report = next_report(runner);
  EXPECT_LT(steady_clock::now() - killed, noticed_within);
  EXPECT_EQ(report.dispatch_id, dispatch(1));
  EXPECT_EQ(report.end, AttemptEnd(WorkerDeath{SIGKILL, std::nullopt, false}));
  EXPECT_TRUE(runs(neighbour));
  folder_.write("go", "");
  EXPECT_EQ(words_of(next_report(runner).end), "done");
}

TEST_F(ExecFaults, F124_exit_0_is_the_contract_of_a_command_and_no_death) {
  EXPECT_EQ(words_of(end_of("kill -0 $$; exit 0")), "done");
}

TEST_F(ExecFaults, F125_a_kill_that_the_control_group_counts_is_out_of_memory) {
  folder_.write("memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 2\noom_group_kill 0\n");
  auto watched =
      options("printf 'oom 3\\noom_kill 3\\n' > $FOLDER/memory.events; kill -KILL $$; sleep 600");
  watched.cgroup_folder = folder_.path();
  auto& runner = use(watched);
  runner.start(task(1));
  const auto end = next_report(runner).end;
  EXPECT_EQ(end, AttemptEnd(WorkerDeath{SIGKILL, std::nullopt, true}));
  runner.start(task(2));  // the counter stays: somebody else's kill
  EXPECT_EQ(words_of(next_report(runner).end), "died of signal 9");
}

TEST_F(ExecFaults, F125_one_kill_for_memory_explains_one_death) {
  folder_.write("memory.events", "oom_kill 0\n");
  auto watched = options("echo $$ > $FOLDER/pid.$POSTRIDER_DISPATCH_ID; exec sleep 600");
  watched.cgroup_folder = folder_.path();
  auto& runner = use(watched);
  runner.start(task(1));
  runner.start(task(2));
  const auto first = pid_in("pid." + dispatch(1).value().to_string());
  const auto second = pid_in("pid." + dispatch(2).value().to_string());
  folder_.write("memory.events", "oom_kill 1\n");
  ::kill(first, SIGKILL);
  EXPECT_EQ(words_of(next_report(runner).end), "out of memory, signal 9");
  ::kill(second, SIGKILL);
  EXPECT_EQ(words_of(next_report(runner).end), "died of signal 9");
}

TEST_F(ExecFaults, F126_a_command_that_ignores_SIGTERM_is_killed_with_its_process_group) {
  auto& runner =
      use("trap '' TERM; sleep 600 & echo $! > $FOLDER/grandchild; echo $$ > $FOLDER/pid; "
          "while :; do sleep 0.02; done");
  runner.start(task(1));
  const auto pid = pid_in("pid");
  const auto grandchild = pid_in("grandchild");
  runner.request_stop(dispatch(1));
  EXPECT_TRUE(runner.poll(Deadline::after(milliseconds(100))).empty());
  EXPECT_TRUE(runs(pid));
  runner.kill(dispatch(1));
  EXPECT_EQ(words_of(next_report(runner).end), "interrupted");
  EXPECT_FALSE(runs(pid));
  EXPECT_TRUE(comes_true([&] { return !runs(grandchild); }));
}

TEST_F(ExecFaults, F126_a_command_that_was_stopped_hears_of_the_end) {
  auto& runner = use("echo $$ > $FOLDER/pid; kill -STOP $$; sleep 600");
  runner.start(task(1));
  const auto pid = pid_in("pid");
  ASSERT_TRUE(comes_true([&] {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(stat, line);
    return line.find(") T ") != std::string::npos;
  }));
  runner.request_stop(dispatch(1));
  EXPECT_EQ(words_of(next_report(runner).end), "interrupted");
}

TEST_F(ExecFaults, F127_a_grandchild_does_not_outlive_the_command_that_started_it) {
  for (const std::string how : {"exit 0", "kill -KILL $$"}) {
    // A double fork that keeps all pipes open: their end would never come.
    const auto end = end_of("( sleep 600 & echo $! > $FOLDER/grandchild ) & wait; " + how);
    EXPECT_EQ(words_of(end), how == "exit 0" ? "done" : "died of signal 9");
    const auto grandchild = pid_in("grandchild");
    EXPECT_TRUE(comes_true([&] { return !runs(grandchild); })) << how;
    std::filesystem::remove(path("grandchild"));
  }
}

TEST_F(ExecFaults, F127_a_daemon_in_a_session_of_its_own_is_found) {
  const std::string held = "setsid sh -c 'echo $$ > $FOLDER/daemon; exec sleep 600' & ";
  const std::string closed =
      "setsid sh -c 'echo $$ > $FOLDER/daemon; exec sleep 600' <&- >&- 2>&- 3>&- & ";
  const std::string wait = "until [ -s $FOLDER/daemon ]; do sleep 0.01; done; ";
  for (const auto& script :
       {held + wait + "exit 0", held + wait + "kill -KILL $$", closed + wait + "kill -KILL $$"}) {
    end_of(script);
    const auto daemon = pid_in("daemon");
    EXPECT_TRUE(comes_true([&] { return !runs(daemon); })) << script;
    std::filesystem::remove(path("daemon"));
  }
}

TEST_F(ExecFaults, F128_a_flood_of_output_leaves_the_worker_unharmed) {
  auto& runner = use("if [ $POSTRIDER_DISPATCH_ID = " + dispatch(1).value().to_string() +
                     " ]; then head -c 200M /dev/zero; head -c 1M /dev/zero >&2; exit 1; fi");
  const auto before = peak_memory_kib();
  runner.start(task(1));
  runner.start(task(2));
  EXPECT_EQ(next_report(runner).dispatch_id, dispatch(2));
  const auto flood = next_report(runner);
  EXPECT_THAT(std::get<JobOutcome>(flood.end).detail, HasSubstr("210763776 bytes of output"));
  EXPECT_LT(peak_memory_kib() - before, 32U << 10U);
}

TEST_F(ExecFaults, F128_a_command_that_opens_everything_meets_its_limit) {
  auto limited = options("");
  limited.command = {"/usr/bin/python3", "-c",
                     "import os\nwhile True: os.open('/dev/null', os.O_RDONLY)"};
  limited.most_open_files = 32;
  EXPECT_EQ(words_of(end_of(limited)), "fail exit_1");
}

TEST_F(ExecFaults, F129_commands_and_what_they_have_started_die_with_a_killed_worker) {
  ChildProcess worker({POSTRIDER_EXEC_WORKER, folder_.path()}, {}, path("output"));
  const auto child = pid_in("child");
  const auto grandchild = pid_in("grandchild");
  ASSERT_TRUE(runs(child) && runs(grandchild)) << content("output");
  worker.signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return !runs(child); }));
  EXPECT_TRUE(comes_true([&] { return !runs(grandchild); }));
}

TEST_F(ExecFaults, a_hundred_commands_start_at_once_and_leave_nothing_behind) {
  auto many = options("exit $(( 0x${POSTRIDER_DISPATCH_ID##*-} % 2 ))");
  many.slots = 100;
  // What tests before this one have left to us: a started server makes us adopt orphans.
  ASSERT_TRUE(comes_true([] { return ::waitpid(-1, nullptr, WNOHANG) == -1; }));
  auto& runner = use(many);
  const auto descriptors = open_descriptors();
  for (int round = 0; round < 3; ++round) {
    for (int number = 0; number < 100; ++number)
      runner.start(task(number));
    const auto reports = reports_of(runner, 100);
    ASSERT_EQ(reports.size(), 100U);
    for (int number = 0; number < 100; ++number)
      EXPECT_EQ(reports.at(dispatch(number)), number % 2 == 0 ? "done" : "fail exit_1");
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  runner_.reset();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, not even a zombie
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ExecFaults, F126_a_hundred_commands_that_ignore_SIGTERM_are_gone_after_close) {
  auto many = options(
      "trap '' TERM; setsid sleep 600 & echo $! > $FOLDER/$POSTRIDER_DISPATCH_ID; "
      "while :; do sleep 1; done");
  many.slots = 100;
  auto& runner = use(many);
  std::vector<pid_t> daemons;
  for (int number = 0; number < 100; ++number)
    runner.start(task(number));
  for (int number = 0; number < 100; ++number)
    daemons.push_back(pid_in(dispatch(number).value().to_string()));
  runner.close();
  const auto reports = reports_of(runner, 100);
  ASSERT_EQ(reports.size(), 100U);
  for (const auto& [id, words] : reports)
    EXPECT_EQ(words, "interrupted");
  for (const auto daemon : daemons)
    EXPECT_TRUE(comes_true([&] { return !runs(daemon); }));
}

TEST_F(ExecFaults, starts_stops_and_kills_from_many_threads_end_each_attempt_once) {
  auto many = options("trap 'exit 0' TERM; sleep 0.0$(( 0x${POSTRIDER_DISPATCH_ID##*-} % 10 ))");
  many.slots = 200;
  auto& runner = use(many);
  std::vector<std::thread> threads;
  for (int first = 0; first < 200; first += 50) {
    threads.emplace_back([&runner, first] {
      for (int number = first; number < first + 50; ++number) {
        runner.start(task(number));
        if (number % 3 == 0) runner.request_stop(dispatch(number));
        if (number % 5 == 0) runner.kill(dispatch(number));
      }
    });
  }
  EXPECT_EQ(reports_of(runner, 200).size(), 200U);
  for (auto& thread : threads)
    thread.join();
  EXPECT_TRUE(runner.poll(Deadline::after(milliseconds(0))).empty());
}

TEST_F(ExecFaults, without_descriptors_a_command_is_tried_again_later) {
  auto& runner = use("exit 0");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 10;  // fewer than pipes are moved above
  ::setrlimit(RLIMIT_NOFILE, &none);
  runner.start(task(1));
  const auto end = next_report(runner).end;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(words_of(end), "retry cannot_start");
  runner.start(task(2));
  EXPECT_EQ(words_of(next_report(runner).end), "done");
}

}  // namespace
}  // namespace postrider::testing
