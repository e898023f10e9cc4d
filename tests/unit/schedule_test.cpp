// A schedule as a value: what is refused, its event, and its fingerprint.
#include <postrider/schedule.hpp>

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp_text.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Schedule nightly() {
  Schedule schedule;
  schedule.name = "nightly-report";
  schedule.cron = "30 2 * * *";
  schedule.time_zone = "Europe/Berlin";
  schedule.type = "report.wanted";
  schedule.aggregate = Aggregate{"report", "daily"};
  schedule.payload = R"({"kind":"daily"})";
  return schedule;
}

TEST(ScheduleValue, a_whole_one_has_no_faults) {
  EXPECT_THAT(validate(nightly()), IsEmpty());
}

TEST(ScheduleValue, all_faults_are_found_at_once) {
  auto schedule = nightly();
  schedule.name = "Nightly Report";
  schedule.cron = "61 2 * * *";
  schedule.time_zone = "Europe/Berln";
  schedule.type.clear();
  schedule.most_missed = 0;
  const auto faults = validate(schedule);
  ASSERT_THAT(faults, SizeIs(5));
  EXPECT_THAT(faults[0], HasSubstr("the name 'Nightly Report' cannot be used"));
  EXPECT_THAT(faults[1], HasSubstr("cron: the minute '61'"));
  EXPECT_THAT(faults[2], HasSubstr("time_zone: the time zone 'Europe/Berln' is unknown"));
  EXPECT_THAT(faults[3], HasSubstr("its event: "));
  EXPECT_THAT(faults[4], HasSubstr("most_missed"));
}

TEST(ScheduleValue, its_event_carries_its_name_and_the_slot) {
  const auto slot = parse_timestamp("2026-03-29T01:00:00.000000Z").value();
  const auto event = event_of(nightly(), slot);
  EXPECT_EQ(event.type, "report.wanted");
  EXPECT_EQ(event.aggregate, (Aggregate{"report", "daily"}));
  EXPECT_EQ(event.payload, R"({"kind":"daily"})");
  EXPECT_EQ(event.content_type, "application/json");
  EXPECT_FALSE(event.id);
  EXPECT_THAT(event.headers, ElementsAre(std::pair<const std::string, std::string>(
                                             "postrider-schedule", "nightly-report"),
                                         std::pair<const std::string, std::string>(
                                             "postrider-slot", "2026-03-29T01:00:00.000000Z")));
}

TEST(ScheduleValue, every_word_of_a_definition_is_in_its_fingerprint) {
  const std::vector<std::function<void(Schedule&)>> changes = {
      [](Schedule& schedule) { schedule.cron = "31 2 * * *"; },
      [](Schedule& schedule) { schedule.time_zone = "UTC"; },
      [](Schedule& schedule) { schedule.type = "report.other"; },
      [](Schedule& schedule) { schedule.aggregate.reset(); },
      [](Schedule& schedule) { schedule.payload = "{}"; },
      [](Schedule& schedule) { schedule.missed = Missed::all; },
      [](Schedule& schedule) { schedule.most_missed = 11; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto changed = nightly();
    changes[i](changed);
    EXPECT_NE(definition_hash(changed), definition_hash(nightly())) << "change " << i;
  }
  EXPECT_THAT(definition_hash(nightly()), SizeIs(64));
}

TEST(ScheduleValue, the_words_of_missed_are_read_as_they_are_written) {
  for (const auto missed : {Missed::skip, Missed::one, Missed::all})
    EXPECT_EQ(parse_missed(to_string(missed)), missed);
  EXPECT_FALSE(parse_missed("none"));
}

}  // namespace
}  // namespace postrider
