// When schedules run, through nights in which clocks are moved. Compared with a walk over every
// minute by the C library, which reads the same zones and knows nothing of our rules.
#include "schedule/slots.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp_text.hpp"

namespace postrider::schedule {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Timestamp at(const std::string& text) {
  return parse_timestamp(text + ":00.000000Z").value();
}

std::vector<std::string> slots_between(const std::string& cron, const std::string& zone,
                                       Timestamp after, Timestamp until) {
  std::vector<std::string> found;
  const auto slots = Slots::make(cron, zone);
  EXPECT_TRUE(slots) << (slots ? "" : slots.error().message);
  if (!slots) return found;
  for (auto slot = slots->next(after); slot && *slot <= until; slot = slots->next(*slot))
    found.push_back(timestamp_text(*slot).substr(0, 16));
  return found;
}

struct Night {
  std::string name;
  std::string zone;
  std::string cron;
  std::string after;
  std::string until;
  std::vector<std::string> slots;
};

class ClockChange : public ::testing::TestWithParam<Night> {};

TEST_P(ClockChange, JT_14_a_daily_slot_comes_once_and_an_hourly_one_by_real_time) {
  const auto& night = GetParam();
  EXPECT_EQ(slots_between(night.cron, night.zone, at(night.after), at(night.until)), night.slots);
}

INSTANTIATE_TEST_SUITE_P(
    Nights, ClockChange,
    ::testing::Values(
        Night{"berlin_spring_daily",
              "Europe/Berlin",
              "30 2 * * *",
              "2026-03-28T00:00",
              "2026-03-31T00:00",
              {"2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"}},
        Night{"berlin_spring_hourly",
              "Europe/Berlin",
              "15 * * * *",
              "2026-03-28T23:00",
              "2026-03-29T03:00",
              {"2026-03-28T23:15", "2026-03-29T00:15", "2026-03-29T01:15", "2026-03-29T02:15"}},
        Night{"berlin_autumn_daily",
              "Europe/Berlin",
              "30 2 * * *",
              "2026-10-24T00:00",
              "2026-10-27T00:00",
              {"2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"}},
        Night{"berlin_autumn_hourly",
              "Europe/Berlin",
              "15 * * * *",
              "2026-10-24T23:00",
              "2026-10-25T03:00",
              {"2026-10-24T23:15", "2026-10-25T00:15", "2026-10-25T01:15", "2026-10-25T02:15"}},
        Night{"new_york_spring_daily",
              "America/New_York",
              "30 2 * * *",
              "2026-03-07T00:00",
              "2026-03-10T00:00",
              {"2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30"}},
        Night{"new_york_spring_quarters",
              "America/New_York",
              "*/15 2 * * *",
              "2026-03-08T00:00",
              "2026-03-09T00:00",
              {"2026-03-08T07:00"}},
        Night{"new_york_spring_hourly",
              "America/New_York",
              "0 * * * *",
              "2026-03-08T05:30",
              "2026-03-08T08:30",
              {"2026-03-08T06:00", "2026-03-08T07:00", "2026-03-08T08:00"}},
        Night{"new_york_autumn_daily",
              "America/New_York",
              "30 1 * * *",
              "2026-10-31T00:00",
              "2026-11-03T00:00",
              {"2026-10-31T05:30", "2026-11-01T05:30", "2026-11-02T06:30"}},
        Night{"new_york_autumn_hourly",
              "America/New_York",
              "30 * * * *",
              "2026-11-01T04:00",
              "2026-11-01T07:00",
              {"2026-11-01T04:30", "2026-11-01T05:30", "2026-11-01T06:30"}},
        // Half an hour is skipped, and half an hour is repeated.
        Night{"lord_howe_spring_daily",
              "Australia/Lord_Howe",
              "15 2 * * *",
              "2026-10-02T00:00",
              "2026-10-05T00:00",
              {"2026-10-02T15:45", "2026-10-03T15:30", "2026-10-04T15:15"}},
        Night{"lord_howe_spring_hourly",
              "Australia/Lord_Howe",
              "45 * * * *",
              "2026-10-03T14:00",
              "2026-10-03T17:30",
              {"2026-10-03T14:15", "2026-10-03T15:15", "2026-10-03T15:45", "2026-10-03T16:45"}},
        Night{"lord_howe_autumn_daily",
              "Australia/Lord_Howe",
              "45 1 * * *",
              "2026-04-03T00:00",
              "2026-04-06T00:00",
              {"2026-04-03T14:45", "2026-04-04T14:45", "2026-04-05T15:15"}},
        Night{"lord_howe_autumn_hourly",
              "Australia/Lord_Howe",
              "45 * * * *",
              "2026-04-04T13:00",
              "2026-04-04T17:00",
              {"2026-04-04T13:45", "2026-04-04T14:45", "2026-04-04T15:15", "2026-04-04T16:15"}},
        // Apia left out the 30th of December 2011.
        Night{"apia_without_a_day",
              "Pacific/Apia",
              "0 12 * * *",
              "2011-12-29T00:00",
              "2012-01-01T00:00",
              {"2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00", "2011-12-31T22:00"}}),
    [](const ::testing::TestParamInfo<Night>& night) { return night.param.name; });

TEST(Slots, a_slot_is_after_the_time_that_is_given_and_never_at_it) {
  const auto slots = Slots::make("30 2 * * *", "Europe/Berlin");
  ASSERT_TRUE(slots);
  const auto slot = slots->next(at("2026-06-01T00:00"));
  ASSERT_TRUE(slot);
  EXPECT_EQ(*slot, at("2026-06-01T00:30"));
  EXPECT_EQ(slots->next(*slot - std::chrono::microseconds(1)), *slot);
  EXPECT_EQ(slots->next(*slot), at("2026-06-02T00:30"));
  // In the second pass of a repeated hour nothing comes again.
  EXPECT_EQ(slots->next(at("2026-10-25T01:10")), at("2026-10-26T01:30"));
}

TEST(Slots, a_zone_that_nobody_knows_is_refused_with_what_to_do) {
  for (const auto* name : {"Europe/Berln", "", "../../etc/passwd", "/etc/localtime", "Mars",
                           "zone.tab", "tzdata.zi", "Europe"}) {
    const auto slots = Slots::make("0 0 * * *", name);
    ASSERT_FALSE(slots) << name;
    EXPECT_THAT(slots.error().message, ::testing::HasSubstr("is unknown on this machine. Give"));
  }
}

/// One field as a text, and the values that the text holds.
struct RandomField {
  std::string text;
  std::set<int> values;
  bool star = false;
};

class Oracle {
 public:
  explicit Oracle(std::uint32_t seed) : random_(seed) {
    for (const auto& [least, most] : {std::pair{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}})
      fields_.push_back(field(least, most));
  }

  [[nodiscard]] std::string expression() const {
    std::string text;
    for (const auto& field : fields_)
      text += (text.empty() ? "" : " ") + field.text;
    return text;
  }

  /// Minute by minute, in the zone that TZ names.
  [[nodiscard]] std::vector<std::string> slots(std::time_t after, std::time_t until) const {
    constexpr std::time_t minute = 60;
    constexpr std::time_t before = 3 * 24 * 60 * minute;  // for what was read already
    const bool every_hour = fields_[1].values.size() == 24;
    std::vector<std::string> found;
    std::optional<std::time_t> furthest;  // local reading as if it were UTC
    for (auto now = after - before; now <= until; now += minute) {
      const auto reading = local_reading(now);
      bool slot = false;
      if (every_hour) {
        slot = matches(reading);
      } else if (!furthest || reading > *furthest) {
        const auto first = furthest ? *furthest + minute : reading;
        for (auto skipped = first; skipped <= reading && !slot; skipped += minute)
          slot = matches(skipped);
      }
      furthest = std::max(furthest.value_or(reading), reading);
      if (slot && now > after) {
        found.push_back(timestamp_text(Timestamp(seconds(now))).substr(0, 16));
      }
    }
    return found;
  }

 private:
  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  RandomField field(int least, int most) {
    RandomField made;
    const auto kind = number(0, 5);
    if (kind <= 2) {
      const int step = kind == 2 ? number(2, std::max(2, (most - least) / 2)) : 1;
      made.text = step == 1 ? "*" : "*/" + std::to_string(step);
      made.star = true;
      add(made, least, most, step);
      return made;
    }
    for (int part = 0; part < (kind == 3 ? 1 : 2); ++part) {
      const int first = number(least, most);
      const int last = kind == 5 ? number(first, most) : first;
      made.text += (part > 0 ? "," : "") + std::to_string(first);
      if (kind == 5) made.text += "-" + std::to_string(last);
      add(made, first, last, 1);
    }
    return made;
  }

  static void add(RandomField& field, int first, int last, int step) {
    for (int value = first; value <= last; value += step)
      field.values.insert(value);
  }

  static std::time_t local_reading(std::time_t now) {
    std::tm local{};
    localtime_r(&now, &local);
    return now + local.tm_gmtoff;
  }

  [[nodiscard]] bool matches(std::time_t reading) const {
    std::tm read{};
    gmtime_r(&reading, &read);
    const bool day = fields_[2].values.contains(read.tm_mday);
    const bool weekday = fields_[4].values.contains(read.tm_wday);
    const bool either = !fields_[2].star && !fields_[4].star;
    return fields_[0].values.contains(read.tm_min) && fields_[1].values.contains(read.tm_hour) &&
           fields_[3].values.contains(read.tm_mon + 1) &&
           (either ? day || weekday : day && weekday);
  }

  std::mt19937 random_;
  std::vector<RandomField> fields_;
};

class ZoneProperty : public ::testing::TestWithParam<const char*> {};

TEST_P(ZoneProperty, slots_are_those_that_a_walk_over_every_minute_finds) {
  const std::string zone = GetParam();
  ASSERT_EQ(::setenv("TZ", zone.c_str(), 1), 0);
  ::tzset();
  // Around the changes of 2026 in these zones, and a month without one.
  const std::vector<std::string> starts = {
      "2026-03-06T11:07", "2026-03-27T11:07", "2026-04-02T11:07", "2026-06-28T11:07",
      "2026-10-01T11:07", "2026-10-23T11:07", "2026-10-30T11:07"};
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const Oracle oracle(seed);
    if (!Cron::parse(oracle.expression())) continue;  // the 30th of February
    const auto after = at(starts[seed % starts.size()]);
    const auto until = after + std::chrono::hours(24 * 5);
    const auto seconds_of = [](Timestamp time) {
      return static_cast<std::time_t>(
          std::chrono::duration_cast<seconds>(time.time_since_epoch()).count());
    };
    EXPECT_EQ(slots_between(oracle.expression(), zone, after, until),
              oracle.slots(seconds_of(after), seconds_of(until)))
        << "seed " << seed << ": " << oracle.expression();
  }
  ::unsetenv("TZ");
  ::tzset();
}

INSTANTIATE_TEST_SUITE_P(Zones, ZoneProperty,
                         ::testing::Values("UTC", "Europe/Berlin", "America/New_York",
                                           "Australia/Lord_Howe", "Asia/Kathmandu",
                                           "America/Santiago", "Pacific/Chatham"));

}  // namespace
}  // namespace postrider::schedule
