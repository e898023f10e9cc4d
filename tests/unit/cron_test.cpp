// What a cron expression is, what is refused and with which words, and which minutes it matches.
#include "schedule/cron.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::schedule {
namespace {

using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::minutes;
using std::chrono::year;
using ::testing::HasSubstr;

LocalMinute at(int of_year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  return local_days(year{of_year} / static_cast<int>(month) / static_cast<int>(day)) + hours(hour) +
         minutes(minute);
}

std::string text_of(LocalMinute time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto two = [](auto number) {
    const auto text = std::to_string(number);
    return text.size() < 2 ? "0" + text : text;
  };
  return std::to_string(static_cast<int>(date.year())) + "-" +
         two(static_cast<unsigned>(date.month())) + "-" + two(static_cast<unsigned>(date.day())) +
         " " + two(clock.hours().count()) + ":" + two(clock.minutes().count());
}

struct Match {
  std::string expression;
  std::string first;   ///< at or after 2026-01-01 00:00, a Thursday
  std::string second;  ///< the next one
};

class CronMatches : public ::testing::TestWithParam<Match> {};

TEST_P(CronMatches, the_minutes_that_it_names) {
  const auto& row = GetParam();
  const auto cron = Cron::parse(row.expression);
  ASSERT_TRUE(cron) << cron.error().message;
  const auto first = cron->first_from(at(2026, 1, 1));
  ASSERT_TRUE(first);
  EXPECT_EQ(text_of(*first), row.first);
  EXPECT_TRUE(cron->matches(*first));
  const auto second = cron->first_from(*first + minutes(1));
  ASSERT_TRUE(second);
  EXPECT_EQ(text_of(*second), row.second);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CronMatches,
    ::testing::Values(Match{"* * * * *", "2026-01-01 00:00", "2026-01-01 00:01"},
                      Match{"30 2 * * *", "2026-01-01 02:30", "2026-01-02 02:30"},
                      Match{"  30\t2  * * *  ", "2026-01-01 02:30", "2026-01-02 02:30"},
                      Match{"*/20 * * * *", "2026-01-01 00:00", "2026-01-01 00:20"},
                      Match{"5-59/20 * * * *", "2026-01-01 00:05", "2026-01-01 00:25"},
                      Match{"0 9-17/4 * * *", "2026-01-01 09:00", "2026-01-01 13:00"},
                      Match{"58,59,3 23 * * *", "2026-01-01 23:03", "2026-01-01 23:58"},
                      Match{"0 0 31 * *", "2026-01-31 00:00", "2026-03-31 00:00"},
                      Match{"0 0 29 2 *", "2028-02-29 00:00", "2032-02-29 00:00"},
                      Match{"0 0 * FEB *", "2026-02-01 00:00", "2026-02-02 00:00"},
                      Match{"0 0 1 jan,Jul *", "2026-01-01 00:00", "2026-07-01 00:00"},
                      Match{"0 0 * * MON-FRI", "2026-01-01 00:00", "2026-01-02 00:00"},
                      Match{"0 0 * * 1", "2026-01-05 00:00", "2026-01-12 00:00"},
                      Match{"0 0 * * 0", "2026-01-04 00:00", "2026-01-11 00:00"},
                      Match{"0 0 * * 7", "2026-01-04 00:00", "2026-01-11 00:00"},
                      Match{"0 0 * * sun", "2026-01-04 00:00", "2026-01-11 00:00"},
                      Match{"0 0 * * SAT-SUN", "2026-01-03 00:00", "2026-01-04 00:00"},
                      Match{"0 0 * * 5-7", "2026-01-02 00:00", "2026-01-03 00:00"},
                      // Both fields of days are restricted: either is enough.
                      Match{"0 0 13 * FRI", "2026-01-02 00:00", "2026-01-09 00:00"},
                      Match{"0 0 2-3 * MON", "2026-01-02 00:00", "2026-01-03 00:00"},
                      // One begins with *: both have to fit.
                      Match{"0 0 */2 * MON", "2026-01-05 00:00", "2026-01-19 00:00"},
                      Match{"@hourly", "2026-01-01 00:00", "2026-01-01 01:00"},
                      Match{"@daily", "2026-01-01 00:00", "2026-01-02 00:00"},
                      Match{"@weekly", "2026-01-04 00:00", "2026-01-11 00:00"},
                      Match{"@Monthly ", "2026-01-01 00:00", "2026-02-01 00:00"},
                      Match{"@yearly", "2026-01-01 00:00", "2027-01-01 00:00"},
                      // Thursdays among leap days, over the year 2100, which has none.
                      Match{"0 0 29 2 */4", "2032-02-29 00:00", "2052-02-29 00:00"}));

struct Refusal {
  std::string expression;
  std::string says;
};

class CronRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(CronRefuses, what_cannot_be_meant) {
  const auto cron = Cron::parse(GetParam().expression);
  ASSERT_FALSE(cron) << GetParam().expression;
  EXPECT_EQ(cron.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(cron.error().message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Table, CronRefuses,
    ::testing::Values(
        Refusal{"", "there is no expression. Write one such as"},
        Refusal{" \t ", "there is no expression"}, Refusal{"* * * *", "has 4 fields and not five"},
        Refusal{"0 * * * * *", "has 6 fields and not five"},
        Refusal{"60 * * * *", "the minute '60' cannot be used. Give 0 to 59."},
        Refusal{"-1 * * * *", "the minute '' cannot be used"},
        Refusal{"+5 * * * *", "the minute '+5' cannot be used"},
        Refusal{"0 24 * * *", "the hour '24' cannot be used. Give 0 to 23."},
        Refusal{"0 0 0 * *", "the day of the month '0' cannot be used. Give 1 to 31."},
        Refusal{"0 0 32 * *", "the day of the month '32'"},
        Refusal{"0 0 1 13 *", "the month '13' cannot be used. Give 1 to 12 or JAN to DEC."},
        Refusal{"0 0 1 janu *", "the month 'janu'"}, Refusal{"0 0 1 MON *", "the month 'MON'"},
        Refusal{"0 0 * * 8", "the day of the week '8' cannot be used. Give 0 to 7 or SUN to SAT."},
        Refusal{"0 jan * * *", "the hour 'jan' cannot be used"},
        Refusal{"30-10 * * * *", "the minute '30-10' goes backwards. Write two ranges"},
        Refusal{"0 0 * * FRI-MON", "goes backwards"},
        Refusal{"5/15 * * * *", "has a step and no range. Write 5-59/15."},
        Refusal{"*/0 * * * *", "has a step that is not 1 to 59"},
        Refusal{"*/60 * * * *", "has a step that is not 1 to 59"},
        Refusal{"*/x * * * *", "has a step that is not"}, Refusal{"*/ * * * *", "has a step"},
        Refusal{"1,,2 * * * *", "the minute '' cannot be used"},
        Refusal{", * * * *", "the minute '' cannot be used"},
        Refusal{"1-2-3 * * * *", "the minute '2-3' cannot be used"},
        Refusal{"99999999999999999999 * * * *", "cannot be used"},
        Refusal{"? * * * *", "the minute '?'"}, Refusal{"0 0 L * *", "the day of the month 'L'"},
        Refusal{"0 0 * * 5#2", "the day of the week '5#2'"},
        Refusal{"0 0 30 2 *", "no date ever matches"},
        Refusal{"0 0 31 4,6,9,11 *", "no date ever matches"},
        Refusal{"@reboot", "'@reboot' is unknown. Write @hourly"}, Refusal{"@", "is unknown"},
        Refusal{"@daily @daily", "is unknown"},
        Refusal{std::string(300, '*'), "has 300 bytes. Write at most 256."}));

TEST(Cron, an_expression_counts_hours_when_it_names_all_of_them) {
  for (const auto* text : {"0 * * * *", "*/5 * * * *", "0 0-23 * * *", "0 */1 * * MON"})
    EXPECT_TRUE(Cron::parse(text)->holds_every_hour()) << text;
  for (const auto* text : {"0 0 * * *", "* 3 * * *", "0 */2 * * *", "0 1-23 * * *"})
    EXPECT_FALSE(Cron::parse(text)->holds_every_hour()) << text;
}

}  // namespace
}  // namespace postrider::schedule
