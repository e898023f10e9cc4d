// The contract between a worker and a command: input, environment, exit code, result line.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "runners/exec_fixture.hpp"
#include "values/event_line.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using ExecRunner = ExecFixture;

TEST_F(ExecRunner, the_exit_code_is_the_answer) {
  EXPECT_EQ(words_of(end_of("exit 0")), "done");
  EXPECT_EQ(words_of(end_of("exit 75")), "retry exit_75");
  EXPECT_EQ(words_of(end_of("exit 1")), "fail exit_1");
  EXPECT_EQ(words_of(end_of("exit 78")), "fail exit_78");
  EXPECT_EQ(words_of(end_of("exit 255")), "fail exit_255");
}

TEST_F(ExecRunner, the_event_stands_on_standard_input_as_file_destinations_write_it) {
  EXPECT_EQ(words_of(end_of("cat > $FOLDER/event")), "done");
  EXPECT_EQ(content("event"), event_line(*task(1).event).value());
}

TEST_F(ExecRunner, ids_and_the_last_attempt_stand_in_the_environment) {
  auto with_checkpoint = task(1);
  with_checkpoint.checkpoint = "page 7\nof 9";
  with_checkpoint.job.retry_delays = {milliseconds(1)};
  auto& runner = use("env | grep ^POSTRIDER_ | grep -v TEST | sort > $FOLDER/variables");
  runner.start(with_checkpoint);
  EXPECT_EQ(words_of(next_report(runner).end), "done");
  const auto variables = content("variables");
  EXPECT_THAT(variables, HasSubstr("POSTRIDER_JOB=ship_order\n"));
  EXPECT_THAT(variables, HasSubstr("POSTRIDER_QUEUE=shipping\n"));
  EXPECT_THAT(variables, HasSubstr("POSTRIDER_LAST_ATTEMPT=false\n"));
  EXPECT_THAT(variables, HasSubstr("POSTRIDER_CHECKPOINT=page 7\n"));
  const auto& job = with_checkpoint.job;
  for (const auto& line :
       {"POSTRIDER_DELIVERY_ID=" + job.delivery_id.value().to_string(),
        "POSTRIDER_EVENT_ID=" + job.event_id.value().to_string(),
        "POSTRIDER_DISPATCH_ID=" + with_checkpoint.dispatch_id.value().to_string()}) {
    EXPECT_THAT(variables, HasSubstr(line + "\n"));
  }
}

TEST_F(ExecRunner, a_failure_without_a_retry_delay_left_is_announced_as_the_last) {
  EXPECT_EQ(words_of(end_of("[ \"$POSTRIDER_LAST_ATTEMPT\" = true ]")), "done");
}

TEST_F(ExecRunner, what_configures_the_worker_is_not_handed_on) {
  ::setenv("POSTRIDER_STORE", "postgresql://me:canary@db", 1);
  ::setenv("OF_EVERYBODY", "seen", 1);
  EXPECT_EQ(words_of(end_of("[ -z \"$POSTRIDER_STORE\" ] && [ \"$OF_EVERYBODY\" = seen ]")),
            "done");
  ::unsetenv("POSTRIDER_STORE");
  ::unsetenv("OF_EVERYBODY");
}

TEST_F(ExecRunner, descriptors_of_the_application_are_not_inherited) {
  const Descriptor leaky(::open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  ASSERT_TRUE(leaky);
  EXPECT_EQ(words_of(end_of("ls /proc/$$/fd > $FOLDER/numbers")), "done");
  std::istringstream numbers(content("numbers"));
  for (int number = 0; numbers >> number;)
    EXPECT_THAT(number, ::testing::AnyOf(0, 1, 2, 3, 10));  // 10: a copy that some shells make
}

TEST_F(ExecRunner, signals_that_the_worker_ignores_or_blocks_reach_the_command) {
  auto* const before = ::signal(SIGUSR1, SIG_IGN);
  sigset_t usr2;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  EXPECT_EQ(words_of(end_of("kill -USR1 $$; exit 0")), "died of signal 10");
  EXPECT_EQ(words_of(end_of("kill -USR2 $$; exit 0")), "died of signal 12");
  pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr);
  ::signal(SIGUSR1, before);
}

TEST_F(ExecRunner, a_result_line_says_more_than_an_exit_code) {
  const auto end = end_of(
      R"(echo '{"outcome":"retry","code":"smtp_busy","detail":"421 later","delay":"30s"}' >&3)");
  const auto& outcome = std::get<JobOutcome>(end);
  EXPECT_EQ(outcome, JobOutcome::retry_in(std::chrono::seconds(30), "smtp_busy", "421 later"));
}

TEST_F(ExecRunner, a_result_line_decides_whatever_the_exit_code_but_done_needs_0) {
  const auto with_code = [&](const std::string& outcome, int code) {
    return words_of(end_of("echo '{\"outcome\":\"" + outcome +
                           "\"}' >&$POSTRIDER_RESULT_FD; exit " + std::to_string(code)));
  };
  EXPECT_EQ(with_code("done", 0), "done");
  EXPECT_EQ(with_code("done", 3), "fail exit_3");
  EXPECT_EQ(with_code("fail", 0), "fail handler_error");
  EXPECT_EQ(with_code("fail", 75), "fail handler_error");
  EXPECT_EQ(with_code("retry", 1), "retry handler_error");
  EXPECT_EQ(with_code("cancelled", 0), "cancelled cancelled");
}

TEST_F(ExecRunner, a_death_is_a_death_whatever_was_written_before) {
  EXPECT_EQ(words_of(end_of(R"(echo '{"outcome":"done"}' >&3; kill -KILL $$)")),
            "died of signal 9");
}

TEST_F(ExecRunner, a_result_that_breaks_its_rules_fails_the_job) {
  EXPECT_EQ(words_of(end_of("echo broken >&3")), "fail bad_result");
  EXPECT_EQ(words_of(end_of("head -c 1073741824 /dev/zero >&3")), "fail bad_result");
  EXPECT_EQ(words_of(end_of(R"(echo '{"outcome":"done"}{"outcome":"done"}' >&3)")),
            "fail bad_result");
}

TEST_F(ExecRunner, a_command_that_cannot_be_started_is_tried_again) {
  folder_.write("no_program", "text");
  folder_.write("no_interpreter", "#!/nowhere/python\n");
  std::filesystem::permissions(path("no_interpreter"), std::filesystem::perms::owner_all);
  for (const auto& program : {std::string("no-such-program-anywhere"), path("missing"),
                              path("no_program"), path("no_interpreter"), folder_.path()}) {
    auto missing = options("");
    missing.command = {program};
    const auto end = end_of(missing);
    EXPECT_EQ(words_of(end), "retry cannot_start") << program;
    EXPECT_THAT(std::get<JobOutcome>(end).detail, Not(IsEmpty())) << program;
  }
}

TEST_F(ExecRunner, a_program_is_found_by_PATH_and_its_arguments_are_no_shell_text) {
  auto plain = options("");
  plain.command = {"sh", "-c", "printf '%s|' \"$@\" > $FOLDER/words", "sh", "a b", "$HOME", "*;x"};
  EXPECT_EQ(words_of(end_of(plain)), "done");
  EXPECT_EQ(content("words"), "a b|$HOME|*;x|");
}

TEST_F(ExecRunner, a_job_whose_event_cannot_be_given_fails) {
  auto& runner = use("exit 0");
  auto malformed = task(1);
  malformed.malformed = "headers are no JSON";
  runner.start(malformed);
  EXPECT_EQ(words_of(next_report(runner).end), "fail undecodable");
  auto no_text = task(2);
  Event broken = *no_text.event;
  broken.type = "\xff";
  no_text.event = std::make_shared<const Event>(broken);
  runner.start(no_text);
  EXPECT_EQ(words_of(next_report(runner).end), "fail undecodable");
}

TEST_F(ExecRunner, a_command_that_never_reads_a_huge_event_holds_up_nobody) {
  auto& runner = use("if [ $POSTRIDER_DISPATCH_ID = " + dispatch(1).value().to_string() +
                     " ]; then sleep 600; fi; cat > /dev/null");
  runner.start(task(1, std::string(64U << 20U, 'x')));
  runner.start(task(2));
  const auto report = next_report(runner);
  EXPECT_EQ(report.dispatch_id, dispatch(2));
  EXPECT_EQ(words_of(report.end), "done");
  runner.kill(dispatch(1));
  EXPECT_EQ(words_of(next_report(runner).end), "interrupted");
}

TEST_F(ExecRunner, a_command_may_leave_its_input_unread) {
  auto& runner = use("exec < /dev/null; sleep 0.05");
  runner.start(task(1, std::string(8U << 20U, 'x')));
  EXPECT_EQ(words_of(next_report(runner).end), "done");
}

TEST_F(ExecRunner, a_large_event_arrives_whole) {
  auto& runner = use("wc -c > $FOLDER/size");
  runner.start(task(1, std::string(16U << 20U, 'x')));
  EXPECT_EQ(words_of(next_report(runner).end), "done");
  EXPECT_GT(std::stoul(content("size")), 16U << 20U);
}

TEST_F(ExecRunner, a_stop_request_is_a_SIGTERM_that_a_command_may_answer) {
  const auto end_after_stop = [&](const std::string& script) {
    auto& runner = use(script + "; echo ready > $FOLDER/ready; while :; do sleep 0.02; done");
    runner.start(task(1));
    EXPECT_TRUE(comes_true([&] { return content("ready") == "ready\n"; }));
    runner.request_stop(dispatch(1));
    const auto end = next_report(runner).end;
    std::filesystem::remove(path("ready"));
    return words_of(end);
  };
  EXPECT_EQ(end_after_stop(":"), "interrupted");  // SIGTERM ends it
  EXPECT_EQ(end_after_stop("trap 'exit 0' TERM"), "done");
  EXPECT_EQ(end_after_stop("trap 'exit 75' TERM"), "retry exit_75");
  EXPECT_EQ(end_after_stop("trap 'exit 143' TERM"), "interrupted");
  EXPECT_EQ(end_after_stop("trap 'kill -SEGV $$' TERM; ulimit -c 0"), "died of signal 11");
}

TEST_F(ExecRunner, an_attempt_that_has_ended_cannot_be_stopped_or_killed) {
  auto& runner = use("exit 0");
  runner.start(task(1));
  EXPECT_EQ(words_of(next_report(runner).end), "done");
  runner.request_stop(dispatch(1));
  runner.kill(dispatch(1));
  runner.kill(dispatch(7));
  runner.start(task(2));
  EXPECT_EQ(words_of(next_report(runner).end), "done");
}

TEST_F(ExecRunner, output_is_not_shown_unless_asked_for_and_then_its_end_alone) {
  const std::string script =
      "head -c 100000 /dev/zero | tr '\\0' x; echo; printf 'canary \\033[31m\\n' >&2; exit 1";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(words_of(end_of(script)), "fail exit_1");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");

  auto shown = options(script);
  shown.output = ExecOutput::tail;
  shown.tail_bytes = 100;
  ::testing::internal::CaptureStderr();
  const auto end = end_of(shown);
  const auto text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, AllOf(HasSubstr("job ship_order"), HasSubstr("100 of 100014 bytes"),
                          HasSubstr("canary  [31m\n"), Not(HasSubstr("\033"))));
  EXPECT_LT(text.size(), 300U);
  EXPECT_THAT(std::get<JobOutcome>(end).detail,
              AllOf(HasSubstr("100014 bytes of output"), Not(HasSubstr("canary"))));
}

TEST_F(ExecRunner, output_of_a_job_that_is_done_is_not_shown) {
  auto quiet = options("echo fine");
  quiet.output = ExecOutput::tail;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(words_of(end_of(quiet)), "done");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(ExecRunner, output_can_be_inherited) {
  auto open = options("echo to standard output; echo to standard error >&2");
  open.output = ExecOutput::inherit;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(words_of(end_of(open)), "done");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "to standard output\nto standard error\n");
}

TEST_F(ExecRunner, limits_hold_for_the_command) {
  auto limited = options("cat /proc/self/limits > $FOLDER/limits");
  limited.most_open_files = 64;
  limited.most_processes = 500;
  limited.most_memory_bytes = 1U << 30U;
  EXPECT_EQ(words_of(end_of(limited)), "done");
  const auto limits = content("limits");
  EXPECT_THAT(limits, ContainsRegex("Max open files +64 +64 "));
  EXPECT_THAT(limits, ContainsRegex("Max processes +500 +500 "));
  EXPECT_THAT(limits, ContainsRegex("Max address space +1073741824 +1073741824 "));
}

TEST_F(ExecRunner, a_command_over_its_memory_limit_is_an_ordinary_failure) {
  auto limited = options("");
  limited.command = {"/usr/bin/python3", "-c", "bytes(1 << 30)"};
  limited.most_memory_bytes = 256U << 20U;
  EXPECT_EQ(words_of(end_of(limited)), "fail exit_1");
}

TEST_F(ExecRunner, traits_say_what_it_can) {
  auto& runner = use("exit 0");
  EXPECT_EQ(runner.traits().name, "exec");
  EXPECT_EQ(runner.traits().slots, 10U);
  EXPECT_TRUE(runner.traits().can_kill);
  EXPECT_FALSE(runner.traits().crash_kills_worker);
  EXPECT_TRUE(runner.check_job("anything").ok());
}

TEST_F(ExecRunner, wake_ends_a_poll) {
  auto& runner = use("exit 0");
  runner.wake();
  EXPECT_THAT(runner.poll(Deadline::after(report_patience)), IsEmpty());
}

TEST_F(ExecRunner, close_kills_what_runs_and_reports_it) {
  auto& runner = use("trap '' TERM; echo $$ > $FOLDER/pid; while :; do sleep 0.02; done");
  runner.start(task(1));
  const auto pid = pid_in("pid");
  runner.close();
  runner.close();
  EXPECT_FALSE(runs(pid));
  EXPECT_EQ(words_of(next_report(runner).end), "interrupted");
  runner.start(task(2));  // too late, and not lost
  EXPECT_EQ(words_of(next_report(runner).end), "interrupted");
}

TEST(ExecOptions, words_of_output_are_read_back) {
  for (const auto output : {ExecOutput::discard, ExecOutput::tail, ExecOutput::inherit})
    EXPECT_EQ(parse_exec_output(to_string(output)), output);
  EXPECT_EQ(parse_exec_output("Tail"), std::nullopt);
}

TEST(ExecOptions, all_faults_are_told_at_once) {
  ExecOptions options;
  options.slots = 0;
  options.tail_bytes = 0;
  options.most_open_files = 3;
  options.environment = {{"A=B", "x"}};
  EXPECT_THAT(
      validate(options),
      ElementsAre(HasSubstr("command is empty"), HasSubstr("environment"), HasSubstr("slots is 0"),
                  HasSubstr("tail_bytes is 0"), HasSubstr("most_open_files is 3")));
}

}  // namespace
}  // namespace postrider::testing
