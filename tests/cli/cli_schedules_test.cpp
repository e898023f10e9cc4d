// Schedules as people configure, see and run them.

#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr std::string_view store_and_route =
    "store = \"sqlite:app.db\"\n[[routes]]\nname = \"all\"\nto = \"file:out.jsonl\"\n"
    "events = [\"report.*\"]\n";
constexpr std::string_view yearly =
    "[[schedules]]\nname = \"yearly\"\ncron = \"@yearly\"\ntype = \"report.wanted\"\n"
    "payload = \"c4n4ry\"\n";

class CliSchedules : public ::testing::Test {
 protected:
  void SetUp() override {
    configure(yearly);
    const auto migrated = shop_.run({"migrate"});
    ASSERT_EQ(migrated.code, 0) << migrated.err;
  }
  void configure(std::string_view schedules) {
    shop_.write("postrider.toml", std::string(store_and_route) + std::string(schedules));
  }
  void pass() {
    const auto passed = shop_.run({"relay"});
    EXPECT_EQ(passed.code, 0) << passed.err;
  }
  void sql(const std::string& statement) {
    const auto ran = shop_.run_program({"sqlite3", "app.db", statement});
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  /// The slot of this year and those before become due.
  void come_back_after_years() {
    sql("UPDATE outbox_schedules SET decided_until = '2020-06-01T00:00:00.000000Z'");
  }
  Json list() {
    const auto listed = shop_.run({"schedule", "list", "--format", "json"});
    EXPECT_EQ(listed.code, 0) << listed.err;
    return Json::parse(listed.out, nullptr, false);
  }
  std::string state() { return list()[0]["state"].get<std::string>(); }
  /// Events that have left.
  std::vector<Json> sent() {
    std::vector<Json> events;
    std::istringstream lines(
        std::filesystem::exists(shop_.path("out.jsonl")) ? shop_.read("out.jsonl") : "");
    for (std::string line; std::getline(lines, line);)
      events.push_back(Json::parse(line));
    return events;
  }

  Workshop shop_;
};

TEST_F(CliSchedules, a_pass_runs_what_is_due_and_the_list_names_its_event) {
  EXPECT_EQ(state(), "not seen by a relay");
  pass();
  EXPECT_EQ(state(), "active");
  EXPECT_THAT(sent(), IsEmpty()) << "slots before it was seen are not run";
  come_back_after_years();
  pass();
  ASSERT_THAT(sent(), SizeIs(1)) << "the latest, by missed = one";
  const auto event = sent()[0];
  EXPECT_EQ(event["type"], "report.wanted");
  EXPECT_EQ(event["payload"], "c4n4ry");
  EXPECT_EQ(event["headers"]["postrider-schedule"], "yearly");
  const auto shown = list()[0];
  EXPECT_EQ(shown["schedule"], "yearly");
  EXPECT_EQ(shown["last_event_id"], event["id"]);
  EXPECT_EQ(shown["last_slot_at"], event["headers"]["postrider-slot"]);
  EXPECT_THAT(shown["next_slot_at"].get<std::string>(), HasSubstr("-01-01T00:00:00.000000Z"));
  pass();
  EXPECT_THAT(sent(), SizeIs(1));
}

TEST_F(CliSchedules, a_paused_one_runs_nothing_until_it_is_resumed) {
  const auto early = shop_.run({"schedule", "pause", "yearly"});
  EXPECT_EQ(early.code, 65);
  EXPECT_THAT(early.err, HasSubstr("there is no schedule 'yearly' that a relay has seen"));
  pass();
  const auto paused = shop_.run({"schedule", "pause", "yearly", "--reason", "stocktaking"});
  EXPECT_EQ(paused.code, 0) << paused.err;
  EXPECT_EQ(paused.out, "yearly is paused. Its slots pass without an event.\n");
  EXPECT_THAT(shop_.run({"schedule", "pause", "yearly"}).out, HasSubstr("was paused already"));
  EXPECT_EQ(list()[0]["reason"], "stocktaking");
  EXPECT_EQ(state(), "paused");
  EXPECT_THAT(shop_.run({"status"}).out, HasSubstr("paused schedules: yearly."));
  EXPECT_EQ(shop_.run({"check"}).code, 1);
  EXPECT_EQ(shop_.run({"check", "--allow-paused"}).code, 0);
  come_back_after_years();
  pass();
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_THAT(shop_.run({"schedule", "resume", "yearly"}).out, HasSubstr("goes on with its next"));
  pass();
  EXPECT_THAT(sent(), IsEmpty()) << "what passed meanwhile is left out";
  EXPECT_EQ(state(), "active");
}

TEST_F(CliSchedules, a_run_by_hand_is_an_event_and_a_line_of_the_audit) {
  const auto ran =
      shop_.run({"schedule", "run", "yearly", "--reason", "after the repair", "--format", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto id = Json::parse(ran.out)["event_id"].get<std::string>();
  pass();
  ASSERT_THAT(sent(), SizeIs(1));
  EXPECT_EQ(sent()[0]["id"], id);
  EXPECT_THAT(shop_.run({"schedule", "run", "yearly"}).out,
              HasSubstr("yearly runs now, as event "));
  const auto audit = shop_.run_program(
      {"sqlite3", "app.db", "SELECT action, object, reason FROM postrider_audit"});
  EXPECT_THAT(audit.out, HasSubstr("schedule_run|yearly|after the repair"));
  const auto unknown = shop_.run({"schedule", "run", "yearyl"});
  EXPECT_EQ(unknown.code, 65);
  EXPECT_THAT(unknown.err, HasSubstr("in the configuration. Did you mean yearly?"));
}

TEST_F(CliSchedules, one_that_is_late_is_told_by_status_and_check) {
  pass();
  EXPECT_EQ(shop_.run({"check"}).code, 0);
  come_back_after_years();
  EXPECT_EQ(state(), "late");
  EXPECT_THAT(shop_.run({"status"}).out,
              HasSubstr("late schedules: yearly. Is a relay with this configuration running?"));
  EXPECT_EQ(Json::parse(shop_.run({"status", "--format", "json"}).out)["schedules"][0]["state"],
            "late");
  const auto check = shop_.run({"check"});
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.out, HasSubstr("late_schedules"));
}

TEST_F(CliSchedules, one_that_left_the_configuration_is_shown_so_and_can_be_forgotten) {
  pass();
  const auto refused = shop_.run({"schedule", "forget", "yearly"});
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.err, HasSubstr("is in the configuration. Remove it there first"));
  configure("");
  EXPECT_EQ(state(), "not in the configuration");
  come_back_after_years();
  pass();
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_THAT(shop_.run({"schedule", "forget", "yearly"}).out, HasSubstr("is forgotten"));
  EXPECT_THAT(list(), IsEmpty());
  EXPECT_THAT(shop_.run({"schedule", "list"}).out, HasSubstr("There is no schedule."));
}

TEST_F(CliSchedules, a_definition_that_differs_from_that_of_relays_is_shown_so) {
  pass();
  configure("[[schedules]]\nname = \"yearly\"\ncron = \"@daily\"\ntype = \"report.wanted\"\n");
  EXPECT_EQ(state(), "changed");
  pass();
  EXPECT_EQ(state(), "active");
}

TEST_F(CliSchedules, no_payload_is_shown_and_faults_are_told_at_once) {
  pass();
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"schedule", "list"}, {"schedule", "list", "--format", "json"}, {"status"}}) {
    EXPECT_THAT(shop_.run(words).out, Not(HasSubstr("c4n4ry")));
  }
  EXPECT_THAT(shop_.run({"config", "show"}).out, HasSubstr("schedules.yearly.cron"));
  configure(
      "[[schedules]]\nname = \"a\"\ncron = \"every day\"\ntype = \"t\"\n"
      "time_zone = \"Mars\"\n");
  const auto refused = shop_.run({"relay"});
  EXPECT_EQ(refused.code, 78);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("postrider.toml:8: schedule a: cron: the expression 'every day' has "
                              "2 fields and not five."),
                    HasSubstr("postrider.toml:10: schedule a: time_zone: ")));
}

TEST_F(CliSchedules, an_event_type_that_no_route_takes_is_found_by_config_check) {
  EXPECT_EQ(shop_.run({"config", "check"}).code, 0);
  configure("[[schedules]]\nname = \"a\"\ncron = \"@daily\"\ntype = \"other\"\n");
  EXPECT_THAT(shop_.run({"config", "check"}).out,
              AllOf(HasSubstr("schedule_unrouted"), HasSubstr("no route matches its event type")));
}

}  // namespace
}  // namespace postrider::testing
