#include <string>

#include <gtest/gtest.h>

#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>

#include "base/utf8.hpp"

namespace postrider {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

template <class Enum, class Parse>
void expect_words(std::initializer_list<std::pair<Enum, std::string_view>> rows, Parse parse) {
  for (const auto& [value, word] : rows) {
    EXPECT_EQ(to_string(value), word);
    EXPECT_EQ(parse(word), value) << word;
  }
  EXPECT_EQ(parse(""), std::nullopt);
  EXPECT_EQ(parse("Fail"), std::nullopt);
  EXPECT_EQ(parse("other"), std::nullopt);
}

TEST(JobWords, Are_the_same_in_both_directions) {
  expect_words<OnWorkerDeath>({{OnWorkerDeath::fail, "fail"}, {OnWorkerDeath::retry, "retry"}},
                              parse_on_worker_death);
  expect_words<JobTransport>(
      {{JobTransport::database, "database"}, {JobTransport::broker, "broker"}},
      parse_job_transport);
  expect_words<WorkerState>({{WorkerState::running, "running"},
                             {WorkerState::quiet, "quiet"},
                             {WorkerState::stopping, "stopping"},
                             {WorkerState::stopped, "stopped"},
                             {WorkerState::dead, "dead"}},
                            parse_worker_state);
}

TEST(JobOutcome, Says_what_the_handler_said) {
  EXPECT_EQ(JobOutcome::done().kind, JobOutcome::Kind::done);
  EXPECT_EQ(JobOutcome::done().code, "");
  EXPECT_EQ(JobOutcome::retry("busy", "try later"),
            (JobOutcome{JobOutcome::Kind::retry, "busy", "try later", std::nullopt}));
  EXPECT_EQ(JobOutcome::retry_in(seconds(7), "busy"),
            (JobOutcome{JobOutcome::Kind::retry, "busy", "", seconds(7)}));
  EXPECT_EQ(JobOutcome::fail("no_such_order"),
            (JobOutcome{JobOutcome::Kind::fail, "no_such_order", "", std::nullopt}));
  EXPECT_EQ(JobOutcome::snooze(seconds(9)),
            (JobOutcome{JobOutcome::Kind::snooze, "", "", seconds(9)}));
  EXPECT_EQ(JobOutcome::cancelled().code, job_code::cancelled);
}

TEST(JobOutcome, Without_a_code_it_is_an_error_of_the_handler) {
  EXPECT_EQ(JobOutcome::retry("").code, job_code::handler_error);
  EXPECT_EQ(JobOutcome::fail("").code, job_code::handler_error);
}

TEST(JobOutcome, Delays_stay_within_their_bounds) {
  EXPECT_EQ(JobOutcome::snooze(milliseconds(0)).delay, milliseconds(1));
  EXPECT_EQ(JobOutcome::snooze(milliseconds(-5)).delay, milliseconds(1));
  EXPECT_EQ(JobOutcome::snooze(milliseconds::max()).delay, hours(24 * 30));
  EXPECT_EQ(JobOutcome::retry_in(milliseconds::min(), "x").delay, milliseconds(1));
}

TEST(JobOutcome, Any_text_of_a_handler_can_be_stored_and_shown) {
  const std::string half = "a\xd1";
  const std::string nul("a\0b\nc\x7f", 6);
  const std::string characters(400, 'x');

  EXPECT_EQ(JobOutcome::fail("x", half).detail, "a?");
  EXPECT_EQ(JobOutcome::fail("x", nul).detail, "a b c ");
  EXPECT_EQ(JobOutcome::fail("x", characters).detail.size(), JobOutcome::detail_bytes);
  EXPECT_EQ(JobOutcome::fail(characters, "").code.size(), JobOutcome::code_bytes);
  EXPECT_EQ(JobOutcome::fail("a\tb", "").code, "a b");
}

TEST(JobOutcome, A_long_detail_is_cut_between_two_characters) {
  std::string text(199, 'a');
  text += "\xd1\x91 and a megabyte more";
  text.append(1U << 20U, 'b');

  EXPECT_EQ(JobOutcome::fail("x", text).detail, std::string(199, 'a'));
}

TEST(JobLastAttempt, It_is_the_one_after_which_no_delay_is_left) {
  Job job;
  EXPECT_TRUE(job.last_attempt());
  job.retry_delays = {seconds(60), seconds(120)};
  EXPECT_FALSE(job.last_attempt());
  job.attempts = 1;
  EXPECT_FALSE(job.last_attempt());
  job.attempts = 2;
  EXPECT_TRUE(job.last_attempt());
}

}  // namespace
}  // namespace postrider
