#include "runner/exec/result_line.hpp"

#include <gmock/gmock.h>

#include "runner/common/text_ring.hpp"
#include "runner/exec/exec_verdict.hpp"
#include "runners/runner_kit.hpp"

namespace postrider::testing {
namespace {

using runner::parse_result_line;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(ResultLine, each_outcome_can_be_said) {
  const auto read = [](std::string_view line) { return parse_result_line(line).value(); };
  EXPECT_EQ(read(R"({"outcome":"done"})"), JobOutcome::done());
  EXPECT_EQ(read("{\"outcome\":\"done\"}\n"), JobOutcome::done());
  EXPECT_EQ(read(R"({"outcome":"cancelled"})"), JobOutcome::cancelled());
  EXPECT_EQ(read(R"({"outcome":"retry","code":"busy"})"), JobOutcome::retry("busy"));
  EXPECT_EQ(read(R"({"delay":"30s","code":"busy","outcome":"retry"})"),
            JobOutcome::retry_in(seconds(30), "busy"));
  EXPECT_EQ(read(R"({"outcome":"fail","code":"bad_address","detail":"no such street"})"),
            JobOutcome::fail("bad_address", "no such street"));
  EXPECT_EQ(read(R"({"outcome":"fail"})"), JobOutcome::fail("handler_error"));
  EXPECT_EQ(read(R"({"outcome":"snooze","delay":"2h"})"), JobOutcome::snooze(hours(2)));
}

TEST(ResultLine, a_delay_has_a_unit_and_ends_at_30_days) {
  const auto delay = [](const std::string& text) {
    const auto read = parse_result_line(R"({"outcome":"snooze","delay":")" + text + "\"}");
    return read ? read->delay : std::nullopt;
  };
  EXPECT_EQ(delay("1ms"), milliseconds(1));
  EXPECT_EQ(delay("5m"), minutes(5));
  EXPECT_EQ(delay("30d"), hours(24 * 30));
  for (const auto* const text : {"", "5", "0s", "-1s", "1.5s", "5 s", "s", "31d", "5w", "1e3s",
                                 "99999999999999999999s", "9223372036854775807d"}) {
    EXPECT_EQ(delay(text), std::nullopt) << text;
  }
}

TEST(ResultLine, everything_else_is_refused_with_a_reason) {
  const std::map<std::string, std::string> rows = {
      {"", "no JSON"},
      {"done", "no JSON"},
      {"[]", "no object"},
      {"\"done\"", "no object"},
      {"{}", "outcome is unknown"},
      {R"({"outcome":"maybe"})", "outcome is unknown"},
      {R"({"outcome":1})", "outcome is no text"},
      {R"({"outcome":null})", "outcome is no text"},
      {R"({"outcome":{"a":"b"}})", "outcome is no text"},
      {R"({"outcome":"done","outcome":"fail"})", "given twice"},
      {R"({"outcome":"done","secret_canary":"x"})", "A member is unknown"},
      {R"({"outcome":"done","code":"x"})", "no other members"},
      {R"({"outcome":"cancelled","delay":"1s"})", "no other members"},
      {R"({"outcome":"fail","code":"Not A Word"})", "code is no word"},
      {R"({"outcome":"fail","code":""})", "code is no word"},
      {R"({"outcome":"fail","delay":"1s"})", "fail has no delay"},
      {R"({"outcome":"retry","delay":"soon"})", "delay is no time"},
      {R"({"outcome":"snooze"})", "snooze needs a delay"},
      {R"({"outcome":"snooze","delay":"1s","code":"x"})", "snooze needs a delay"},
      {"{\"outcome\":\"done\"}\n{\"outcome\":\"done\"}", "several lines"},
      {R"({"outcome":"done"} x)", "no JSON"},
      {std::string(20'000, ' '), "too long"},
      {std::string(10'000, '['), "no object"},
  };
  for (const auto& [line, reason] : rows) {
    const auto read = parse_result_line(line);
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_THAT(read.error().message, HasSubstr(reason)) << line;
    EXPECT_THAT(read.error().message, Not(HasSubstr("canary")));
  }
}

TEST(ResultLine, texts_are_cleaned_and_cut) {
  const auto detail = [](const std::string& text) {
    return parse_result_line(R"({"outcome":"fail","code":"x","detail":")" + text + "\"}")
        .value()
        .detail;
  };
  EXPECT_EQ(detail("a\\u0000b"), "a b");
  EXPECT_EQ(detail(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(detail("half \xc3"), "half ?");
  EXPECT_EQ(detail("a\\nb\\u001b[31m"), "a b [31m");
  const auto long_text = detail(std::string(8'000, 'x') + "ä");
  EXPECT_EQ(long_text.size(), JobOutcome::detail_bytes);
}

TEST(ResultLine, half_a_surrogate_is_refused_and_nothing_breaks) {
  EXPECT_FALSE(parse_result_line(R"({"outcome":"fail","code":"x","detail":"\ud800"})").ok());
}

TEST(ExecVerdict, a_kill_of_ours_is_no_death_and_one_of_others_is) {
  runner::ProcessEnd end;
  end.status = {SIGKILL, -1};
  EXPECT_EQ(words_of(runner::judge_exec(end)), "died of signal 9");
  end.stop_requested = true;  // we sent SIGTERM, and somebody else the kill
  EXPECT_EQ(words_of(runner::judge_exec(end)), "died of signal 9");
  end.killed = true;
  EXPECT_EQ(words_of(runner::judge_exec(end)), "interrupted");
  end.status = {0, 0};  // it ended by itself just before
  EXPECT_EQ(words_of(runner::judge_exec(end)), "done");
  end.killed = false;
  end.status = {0, -1};  // somebody else has waited for it
  EXPECT_EQ(words_of(runner::judge_exec(end)), "died of signal 0");
}

TEST(TextRing, keeps_the_last_bytes_in_their_order) {
  runner::TextRing ring(5);
  EXPECT_EQ(ring.last(), "");
  ring.add("abc");
  EXPECT_EQ(ring.last(), "abc");
  ring.add("defg");
  EXPECT_EQ(ring.last(), "cdefg");
  ring.add("hi");
  EXPECT_EQ(ring.last(), "efghi");
  ring.add("0123456789");
  EXPECT_EQ(ring.last(), "56789");
  EXPECT_EQ(ring.bytes(), 19U);
  runner::TextRing none(0);
  none.add("abc");
  EXPECT_EQ(none.last(), "");
  EXPECT_EQ(none.bytes(), 3U);
}

}  // namespace
}  // namespace postrider::testing
