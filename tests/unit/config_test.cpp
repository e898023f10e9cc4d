// postrider.toml, the environment and flags: what is taken, and what is refused with which words.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "config/duration.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/suggestion.hpp"

namespace postrider::config {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    auto pattern = (std::filesystem::temp_directory_path() / "postrider-config-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ConfigTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) const {
    const auto path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  Loaded load_text(std::string_view text) {
    request_.path = write("postrider.toml", text);
    request_.environment = [this](std::string_view name) -> std::optional<std::string> {
      const auto found = variables_.find(std::string(name));
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    };
    return load(request_);
  }

  // "LINE: message" of each problem.
  std::vector<std::string> problems(std::string_view text) {
    std::vector<std::string> lines;
    for (const auto& problem : load_text(text).problems) {
      auto origin = problem.origin;
      if (origin.starts_with(*request_.path)) origin.erase(0, request_.path->size());
      if (origin.starts_with(":")) origin.erase(0, 1);
      lines.push_back(origin + ": " + problem.message);
    }
    return lines;
  }

  std::filesystem::path folder_;
  std::map<std::string, std::string> variables_;
  LoadRequest request_;
};

TEST(Duration, reads_units_and_whole_seconds) {
  const std::vector<std::pair<std::string, std::int64_t>> rows = {
      {"500ms", 500},      {"5s", 5000}, {"2m", 120'000}, {"1h", 3'600'000},
      {"7d", 604'800'000}, {"0s", 0},    {"15", 15'000},  {"0", 0}};
  for (const auto& [text, expected] : rows) {
    ASSERT_TRUE(parse_duration(text)) << text;
    EXPECT_EQ(parse_duration(text)->count(), expected) << text;
  }
  for (const auto* text : {"", "s", "-1s", "+1s", "-0", "1.5s", "1 s", " 1s", "1w", "1S", "1ss",
                           "99999999999999999999s", "9223372036854775807d", "0x1"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Duration, writes_what_it_reads) {
  for (const auto* text : {"0s", "1ms", "1500ms", "59s", "1m", "90m", "23h", "7d"}) {
    EXPECT_EQ(duration_text(parse_duration(text).value()), text);
  }
}

TEST(Suggestion, finds_the_word_that_was_meant_and_nothing_far_away) {
  const std::vector<std::string> known = {"batch", "sleep", "lease_time", "lease_renewal"};
  EXPECT_EQ(nearest("bacth", known), "batch");
  EXPECT_EQ(nearest("slep", known), "sleep");
  EXPECT_EQ(nearest("lease_tiem", known), "lease_time");
  EXPECT_EQ(nearest("colour", known), std::nullopt);
  EXPECT_EQ(nearest("", known), std::nullopt);
  EXPECT_EQ(nearest("x", {"to"}), std::nullopt);
}

constexpr std::string_view full = R"(
store = "sqlite:app.db"
prefix = "shop_"

[relay]
name = "north"
batch = 10
sleep = "5s"
lease_time = 30
unrouted = "discard"
max_passes = 7

[[routes]]
name = "orders"
events = ["order.*", "cart.placed"]
to = "amqp://mq/"
order = "global"
retry_delays = ["30s", 60, "5m"]
timeout = "10s"
on_failed = "skip"
record = "all"
window = 5
outage_counts = true
[routes.amqp]
exchange = "shop"

[[routes]]
name = "audit"
to = "file:audit.jsonl"
retry_delays = []

[log]
format = "json"
level = "debug"
)";

TEST_F(ConfigTest, takes_every_kind_of_value) {
  const auto loaded = load_text(full);
  ASSERT_THAT(loaded.problems, IsEmpty());
  const auto& settings = loaded.settings;
  EXPECT_EQ(settings.store, "sqlite:app.db");
  EXPECT_EQ(settings.names.prefix, "shop_");
  EXPECT_EQ(settings.relay.name, "north");
  EXPECT_EQ(settings.relay.batch, 10U);
  EXPECT_EQ(settings.relay.sleep, seconds(5));
  EXPECT_EQ(settings.relay.lease_time, seconds(30));
  EXPECT_EQ(settings.relay.unrouted, Unrouted::discard);
  EXPECT_EQ(settings.max_passes, 7U);
  EXPECT_EQ(settings.log_format, LogFormat::json);
  EXPECT_EQ(settings.log_level, Severity::debug);

  ASSERT_EQ(settings.routes.size(), 2U);
  const auto& route = settings.routes[0].route;
  EXPECT_EQ(route.name, "orders");
  EXPECT_THAT(route.events, ElementsAre("order.*", "cart.placed"));
  EXPECT_EQ(route.destination, "amqp://mq/");
  EXPECT_EQ(route.order, Order::global);
  EXPECT_THAT(route.retry_delays, ElementsAre(seconds(30), minutes(1), minutes(5)));
  EXPECT_EQ(route.timeout, seconds(10));
  EXPECT_EQ(route.on_failed, OnFailed::skip);
  EXPECT_EQ(route.record, Record::all);
  EXPECT_EQ(route.window, 5U);
  EXPECT_TRUE(route.outage_counts);
  EXPECT_EQ(settings.routes[0].amqp.exchange, "shop");
  EXPECT_THAT(settings.routes[1].route.retry_delays, IsEmpty());
}

TEST_F(ConfigTest, a_retention_is_a_duration_or_off) {
  EXPECT_EQ(load_text("").settings.relay.retention.events, Retention().events);

  const auto loaded = load_text(
      "[retention]\nevents = \"30d\"\nkeys = 3600\nreceipts = \"off\"\nworkers = \"90d\"\n");
  ASSERT_THAT(loaded.problems, IsEmpty());
  const auto& retention = loaded.settings.relay.retention;
  EXPECT_EQ(retention.events, std::chrono::hours(24 * 30));
  EXPECT_EQ(retention.keys, std::chrono::hours(1));
  EXPECT_EQ(retention.receipts, milliseconds(0)) << "kept for ever";
  EXPECT_EQ(retention.workers, std::chrono::hours(24 * 90));

  variables_["POSTRIDER_RETENTION_EVENTS"] = "off";
  EXPECT_EQ(load_text("[retention]\nevents = \"30d\"\n").settings.relay.retention.events,
            milliseconds(0));
}

TEST_F(ConfigTest, what_is_left_out_has_the_default_of_the_engine) {
  const auto loaded = load_text("[[routes]]\nname = \"all\"\nto = \"stdout:\"\n");
  ASSERT_THAT(loaded.problems, IsEmpty());
  auto route = Route{};
  route.name = "all";
  route.destination = "stdout:";
  EXPECT_EQ(loaded.settings.routes[0].route, route);
  EXPECT_EQ(loaded.settings.relay.batch, RelayOptions{}.batch);
}

std::string job_route_with(const std::string& lines) {
  return "[[routes]]\nname = \"ship\"\nevents = [\"order.*\"]\njob = \"Reserve\"\n"
         "queue = \"shipping\"\n" +
         lines;
}

TEST_F(ConfigTest, a_route_with_a_job_and_a_queue_needs_nothing_more) {
  const auto loaded = load_text(job_route_with(""));
  ASSERT_THAT(loaded.problems, IsEmpty());
  JobPolicy policy;
  policy.job = "Reserve";
  policy.queue = "shipping";
  EXPECT_EQ(loaded.settings.routes[0].route, job_route("ship", {"order.*"}, policy));
  EXPECT_FALSE(
      load_text("[[routes]]\nname = \"a\"\nto = \"stdout:\"\n").settings.routes[0].route.job);
}

TEST_F(ConfigTest, a_job_route_takes_every_key_of_jobs) {
  const auto loaded = load_text(job_route_with(
      "to = \"amqp://mq/\"\nretry_delays = [60, 120]\ntimeout = \"2d\"\noutage_counts = true\n"
      "on_worker_death = \"retry\"\nmax_deaths = 5\npriority = -7\nserial_key = "
      "\"{aggregate_id}\"\nserial_limit = 3\nunique_key = \"{type}/{header:tenant}\"\n"
      "timeout_limit = \"3d\"\ncompleted_event = \"ship.done\"\nretry_event = \"ship.again\"\n"
      "failed_event = \"ship.failed\"\ndeath_event = \"ship.died\"\n"));
  ASSERT_THAT(loaded.problems, IsEmpty());
  const auto& route = loaded.settings.routes[0].route;
  EXPECT_EQ(route.destination, "amqp://mq/");
  EXPECT_THAT(route.retry_delays, ElementsAre(minutes(1), minutes(2)));
  EXPECT_EQ(route.timeout, std::chrono::hours(48));
  EXPECT_TRUE(route.outage_counts);
  ASSERT_TRUE(route.job);
  EXPECT_EQ(route.job->on_worker_death, OnWorkerDeath::retry);
  EXPECT_EQ(route.job->max_deaths, 5);
  EXPECT_EQ(route.job->priority, -7);
  EXPECT_EQ(route.job->serial_key, "{aggregate_id}");
  EXPECT_EQ(route.job->serial_limit, 3);
  EXPECT_EQ(route.job->unique_key, "{type}/{header:tenant}");
  EXPECT_EQ(route.job->timeout_limit, std::chrono::hours(72));
  EXPECT_EQ(route.job->hooks, (JobHooks{"ship.done", "ship.again", "ship.failed", "ship.died"}));
}

TEST_F(ConfigTest, a_long_timeout_of_a_job_moves_its_limit_unless_that_is_given) {
  const auto loaded = load_text(job_route_with("timeout = \"7d\"\n"));
  ASSERT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(loaded.settings.routes[0].route.job->timeout_limit, std::chrono::hours(24 * 7));
  EXPECT_THAT(problems(job_route_with("timeout = \"2h\"\ntimeout_limit = \"1h\"\n")),
              ElementsAre(HasSubstr("Give a timeout_limit of at least the timeout.")));
}

TEST_F(ConfigTest, a_route_publishes_or_makes_jobs_and_the_keys_of_the_other_are_refused) {
  const std::string publish = "[[routes]]\nname = \"a\"\nto = \"stdout:\"\n";
  for (const auto* line :
       {"order = \"none\"", "on_failed = \"skip\"", "record = \"all\"", "window = 5"}) {
    EXPECT_THAT(problems(job_route_with(std::string(line) + "\n")),
                ElementsAre(AllOf(HasSubstr("6: "),
                                  HasSubstr("cannot be given on a route with a job. Remove it"))))
        << line;
    EXPECT_THAT(problems(publish + line + "\n"), IsEmpty()) << line;
  }
  EXPECT_THAT(problems(job_route_with("order = \"aggregate\"\n")),
              ElementsAre(HasSubstr("a serial_key keeps jobs in order")));
  for (const auto* line :
       {"queue = \"q\"", "on_worker_death = \"fail\"", "max_deaths = 1", "priority = 0",
        "serial_key = \"x\"", "serial_limit = 1", "unique_key = \"x\"", "timeout_limit = \"1h\"",
        "completed_event = \"x\"", "retry_event = \"x\"", "failed_event = \"x\"",
        "death_event = \"x\""}) {
    EXPECT_THAT(problems(publish + line + "\n"),
                ElementsAre(AllOf(HasSubstr("4: "), HasSubstr("needs job. Add job"))))
        << line;
  }
}

TEST_F(ConfigTest, what_a_route_lacks_is_told) {
  EXPECT_THAT(
      problems("[[routes]]\nname = \"a\"\n"),
      ElementsAre(AllOf(HasSubstr("1: this route has no to. Give a text of 1 to 4096 bytes"),
                        HasSubstr("or a job and a queue"))));
  EXPECT_THAT(problems("[[routes]]\nname = \"a\"\njob = \"Reserve\"\n"),
              ElementsAre(HasSubstr("1: this route has a job and no queue. Give the queue")));
  EXPECT_THAT(problems(job_route_with("max_deaths = 1\n")),
              ElementsAre(HasSubstr("6: routes.max_deaths needs on_worker_death = \"retry\"")));
}

TEST_F(ConfigTest, names_and_templates_of_jobs_are_checked) {
  EXPECT_THAT(problems("[[routes]]\nname = \"a\"\njob = \"a b\"\nqueue = \"Q\"\n"),
              ElementsAre(HasSubstr("the job 'a b'"), HasSubstr("the queue 'Q'")));
  EXPECT_THAT(problems(job_route_with("serial_key = \"{id}\"\n")),
              ElementsAre(HasSubstr("serial_key has an unknown placeholder at character 1")));
  EXPECT_THAT(problems(job_route_with("serial_limit = 2\n")),
              ElementsAre(HasSubstr("Give a serial_key")));
  EXPECT_THAT(problems(job_route_with("failed_event = \"ship.*\"\n")),
              ElementsAre(HasSubstr("Give the one type of the event to write")));
  EXPECT_THAT(problems(job_route_with("failed_event = \"\"\n")),
              ElementsAre(AllOf(HasSubstr("6: "), HasSubstr("routes.failed_event"))));
}

TEST_F(ConfigTest, two_routes_that_would_make_one_job_twice_are_refused) {
  const std::string other = "[[routes]]\nname = \"other\"\nevents = [\"order.placed\"]\n";
  EXPECT_THAT(problems(job_route_with(other + "job = \"Reserve\"\nqueue = \"shipping\"\n")),
              ElementsAre(AllOf(HasSubstr("6: the routes ship and other both make the job Reserve"),
                                HasSubstr("or remove one."))));
  EXPECT_THAT(problems(job_route_with(other + "job = \"Reserve\"\nqueue = \"slow\"\n")), IsEmpty());
}

std::string schedule_with(const std::string& lines) {
  return "[[schedules]]\nname = \"nightly\"\ncron = \"30 2 * * *\"\ntype = \"report.wanted\"\n" +
         lines;
}

TEST_F(ConfigTest, a_schedule_with_a_name_a_time_and_a_type_needs_nothing_more) {
  const auto loaded = load_text(schedule_with(""));
  ASSERT_THAT(loaded.problems, IsEmpty());
  ASSERT_EQ(loaded.settings.schedules.size(), 1U);
  Schedule schedule;
  schedule.name = "nightly";
  schedule.cron = "30 2 * * *";
  schedule.type = "report.wanted";
  EXPECT_EQ(loaded.settings.schedules[0].schedule, schedule);
}

TEST_F(ConfigTest, a_schedule_takes_every_key_of_schedules) {
  const auto loaded =
      load_text(schedule_with("time_zone = \"Europe/Berlin\"\naggregate = \"report/a/b\"\n"
                              "payload = '{\"kind\":1}'\nmissed = \"all\"\nmost_missed = 5\n") +
                "[[schedules]]\nname = \"hourly\"\ncron = \"@hourly\"\ntype = \"tick\"\n"
                "missed = \"skip\"\n[[routes]]\nname = \"a\"\nto = \"stdout:\"\n");
  ASSERT_THAT(loaded.problems, IsEmpty());
  ASSERT_EQ(loaded.settings.schedules.size(), 2U);
  const auto& schedule = loaded.settings.schedules[0].schedule;
  EXPECT_EQ(schedule.time_zone, "Europe/Berlin");
  EXPECT_EQ(schedule.aggregate, (Aggregate{"report", "a/b"}));
  EXPECT_EQ(schedule.payload, R"({"kind":1})");
  EXPECT_EQ(schedule.missed, Missed::all);
  EXPECT_EQ(schedule.most_missed, 5);
  EXPECT_EQ(loaded.settings.schedules[1].schedule.missed, Missed::skip);
  EXPECT_EQ(loaded.settings.routes.size(), 1U);
}

TEST_F(ConfigTest, what_is_wrong_with_a_schedule_is_told_with_its_line_and_what_to_do) {
  EXPECT_THAT(problems("[[schedules]]\nname = \"a\"\n"),
              ElementsAre(HasSubstr("1: this schedule has no cron. Give a text of 1 to 256 bytes"),
                          HasSubstr("1: this schedule has no type. Give")));
  EXPECT_THAT(problems("[[schedules]]\nname = \"a\"\ncron = \"0 25 * * *\"\ntype = \"t\"\n"),
              ElementsAre(HasSubstr("3: schedule a: cron: the hour '25' cannot be used. Give 0")));
  EXPECT_THAT(problems(schedule_with("time_zone = \"Europe/Berln\"\n")),
              ElementsAre(AllOf(HasSubstr("5: schedule nightly: time_zone: "),
                                HasSubstr("'Europe/Berln' is unknown on this machine. Give"))));
  EXPECT_THAT(problems(schedule_with("aggregate = \"report\"\n")),
              ElementsAre(HasSubstr("5: schedule nightly: aggregate: it has no slash. Write")));
  EXPECT_THAT(problems(schedule_with("missed = \"twice\"\n")),
              ElementsAre(HasSubstr("5: schedules.missed is \"twice\", which cannot be used. Give "
                                    "one of skip, one, all.")));
  EXPECT_THAT(problems(schedule_with("most_missed = 5\n")),
              ElementsAre(HasSubstr("5: schedule nightly: most_missed: it needs missed")));
  EXPECT_THAT(problems(schedule_with("timezone = \"UTC\"\n")),
              ElementsAre(HasSubstr("5: schedules.timezone is unknown. Did you mean time_zone?")));
  EXPECT_THAT(problems(schedule_with("") + schedule_with("")),
              ElementsAre(HasSubstr("5: a second schedule is called nightly. Give each a name")));
  EXPECT_THAT(problems("[[schedules]]\nname = \"A b\"\ncron = \"@daily\"\ntype = \"t\"\n"),
              ElementsAre(HasSubstr("the name 'A b' cannot be used. Give 1 to 64")));
  EXPECT_THAT(problems("[schedules]\nname = \"a\"\n"),
              ElementsAre(HasSubstr("schedules are given one by one. Write [[schedules]]")));
}

// A file in which `line` stands in the section of `key`, and the number of that line.
std::pair<std::string, int> file_with(const Key& key, const std::string& line) {
  const std::string route = "[[routes]]\n";
  const std::string name = key.name == "name" ? "" : "name = \"r\"\n";
  const std::string to = key.name == "to" ? "" : "to = \"stdout:\"\n";
  if (key.section.empty()) return {line + "\n", 1};
  if (key.section == "routes") {
    const auto before = route + name + to;
    return {before + line + "\n",
            1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'))};
  }
  if (key.section == "schedules") {
    std::string before = "[[schedules]]\n";
    for (const auto* other : {"name = \"r\"\n", "cron = \"@daily\"\n", "type = \"t\"\n"}) {
      if (!std::string_view(other).starts_with(key.name + " ")) before += other;
    }
    return {before + line + "\n",
            1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'))};
  }
  if (key.section.starts_with("routes.")) {
    return {route + "name = \"r\"\nto = \"stdout:\"\n[" + key.section + "]\n" + line + "\n", 5};
  }
  return {"[" + key.section + "]\n" + line + "\n", 2};
}

// TOML values that `key` must refuse, each with the reason that has to be in the message.
std::vector<std::pair<std::string, std::string>> refused_values(const Key& key) {
  const auto ms = [](std::int64_t count) { return "\"" + std::to_string(count) + "ms\""; };
  switch (key.type) {
    case KeyType::text:
      return {
          {"5", "cannot be used"},
          {"\"\"", "empty"},
          {"[\"a\"]", "cannot be used"},
          {"\"" + std::string(static_cast<std::size_t>(key.most) + 1, 'x') + "\"", "bytes long"}};
    case KeyType::integer:
      return {{"\"5\"", "cannot be used"},
              {"1.5", "cannot be used"},
              {"\"\"", "cannot be used"},
              {"true", "cannot be used"},
              {std::to_string(key.least - 1), "out of range"},
              {std::to_string(key.most + 1), "out of range"}};
    case KeyType::duration: {
      std::vector<std::pair<std::string, std::string>> rows = {
          {"true", "cannot be used"}, {"\"soon\"", "cannot be used"},
          {"\"\"", "cannot be used"}, {"-1", "cannot be used"},
          {"1.5", "cannot be used"},  {ms(key.most + 1), "out of range"}};
      if (key.least > 0) rows.emplace_back(ms(key.least - 1), "out of range");
      return rows;
    }
    case KeyType::retention: {
      std::vector<std::pair<std::string, std::string>> rows;
      for (const auto* value : {"true", "\"soon\"", "\"\"", "-1", "1.5", "\"Off\"", "\"never\"",
                                "[\"7d\"]", "\"7 d\""}) {
        rows.emplace_back(value, "cannot be used");
      }
      for (const auto* value : {"0", "\"0s\"", "\"0\""}) {
        rows.emplace_back(value, "out of range");  // keep nothing, or keep for ever?
      }
      rows.emplace_back(ms(key.least - 1), "out of range");
      rows.emplace_back(ms(key.most + 1), "out of range");
      return rows;
    }
    case KeyType::boolean:
      return {{"\"true\"", "cannot be used"}, {"1", "cannot be used"}, {"\"\"", "cannot be used"}};
    case KeyType::choice:
      return {{"\"" + key.choices.front() + "x\"", "Did you mean " + key.choices.front() + "?"},
              {"\"\"", "cannot be used"},
              {"5", "cannot be used"}};
    case KeyType::texts:
      return {{"\"*\"", "cannot be used"},
              {"[]", "empty"},
              {"[5]", key.expands ? "holds a whole number" : "holds 5"},
              {"[\"\"]", key.expands ? "holds a text" : "holds \"\""}};
    case KeyType::durations: {
      std::string many = "[1";
      for (auto i = key.most; i > 0; --i)
        many += ", 1";
      return {{"5", "cannot be used"},
              {"[\"soon\"]", "holds \"soon\""},
              {"[0]", "holds 0"},
              {"[-1]", "holds -1"},
              {"[\"31d\"]", "holds \"31d\""},
              {"[\"\"]", "holds \"\""},
              {many + "]", "a list of " + std::to_string(key.most + 1)}};
    }
  }
  return {};
}

TEST_F(ConfigTest, every_key_refuses_what_it_cannot_use_with_line_reason_and_fix) {
  for (const auto& key : all_keys()) {
    for (const auto& [value, reason] : refused_values(key)) {
      const auto [text, line] = file_with(key, key.name + " = " + value);
      const auto found = problems(text);
      ASSERT_EQ(found.size(), 1U) << full_name(key) << " = " << value;
      EXPECT_THAT(found[0], AllOf(::testing::StartsWith(std::to_string(line) + ": "),
                                  HasSubstr(full_name(key)), HasSubstr(reason),
                                  HasSubstr("Give " + range_text(key))))
          << value;
    }
  }
}

TEST_F(ConfigTest, every_key_has_siblings_that_are_unknown_and_suggests_the_right_one) {
  for (const auto& key : all_keys()) {
    const auto [text, line] = file_with(key, key.name + "x = 1");
    const auto found = problems(text);
    ASSERT_FALSE(found.empty());
    EXPECT_THAT(found, ::testing::Contains(AllOf(
                           ::testing::StartsWith(std::to_string(line) + ": "),
                           HasSubstr(full_name(key) + "x is unknown. Did you mean " + key.name))))
        << full_name(key);
  }
}

TEST_F(ConfigTest, every_key_takes_both_ends_of_its_range) {
  for (const auto& key : all_keys()) {
    if (key.type != KeyType::integer && key.type != KeyType::duration &&
        key.type != KeyType::retention) {
      continue;
    }
    for (const auto bound : {key.least, key.most}) {
      const auto value = key.type == KeyType::integer ? std::to_string(bound)
                                                      : "\"" + std::to_string(bound) + "ms\"";
      for (const auto& problem : problems(file_with(key, key.name + " = " + value).first)) {
        EXPECT_THAT(problem, Not(HasSubstr("out of range")));
        EXPECT_THAT(problem, Not(HasSubstr("cannot be used")));
      }
    }
  }
}

TEST_F(ConfigTest, says_everything_that_is_wrong_at_once) {
  EXPECT_THAT(
      problems("store = 1\nbatch = 5\n[relay]\nbatch = 0\n[rely]\nx = 1\n[[routes]]\n"
               "name = \"A\"\nto = \"stdout:\"\n[[routes]]\nto = \"stdout:\"\n"),
      ::testing::UnorderedElementsAre(
          HasSubstr("1: store is a whole number"), HasSubstr("2: batch is unknown"),
          HasSubstr("4: relay.batch is 0"), HasSubstr("5: rely is unknown. Did you mean relay?"),
          HasSubstr("10: this route has no name"), HasSubstr("7: route A: the name 'A'")));
}

TEST_F(ConfigTest, knows_the_usual_mistakes) {
  EXPECT_THAT(problems("batch = 5\n"), ElementsAre("1: batch is unknown. Move it below [relay]."));
  EXPECT_THAT(problems("on_failed = 5\n"),
              ElementsAre("1: on_failed is unknown. Move it below [[routes]]."));
  EXPECT_THAT(problems("relay = 5\n"),
              ElementsAre("1: relay is a table. Write [relay] above its keys."));
  EXPECT_THAT(problems("[routes]\nname = \"a\"\n"),
              ElementsAre("1: routes are given one by one. Write [[routes]] above each."));
  EXPECT_THAT(problems("[nonsense.deep]\nx = 1\n"), ElementsAre(HasSubstr("nonsense is unknown.")));
  EXPECT_THAT(problems("store = \n"), ElementsAre(HasSubstr("1: ")));
  EXPECT_THAT(problems("store = \"a\"\nstore = \"b\"\n"), ElementsAre(HasSubstr("2: ")));
}

TEST_F(ConfigTest, what_becomes_part_of_an_sql_name_holds_nothing_else) {
  for (const auto* name : {"a b", "A", "a;b", "\\\"", "ä"}) {
    EXPECT_THAT(problems(std::string("prefix = \"") + name + "\"\n"),
                ElementsAre(HasSubstr("of a-z, 0-9 and _")));
  }
}

TEST_F(ConfigTest, two_routes_of_one_name_are_refused) {
  const std::string route = "[[routes]]\nname = \"a\"\nto = \"stdout:\"\n";
  EXPECT_THAT(problems(route + route), ElementsAre(HasSubstr("4: a second route is called a.")));
}

TEST_F(ConfigTest, what_no_single_key_can_tell_is_checked_too) {
  EXPECT_THAT(problems("[relay]\nlease_time = \"3s\"\nlease_renewal = \"2s\"\n"),
              ElementsAre(HasSubstr("lease_renewal")));
}

TEST_F(ConfigTest, a_missing_and_an_enormous_file_are_problems) {
  request_.environment = [](std::string_view) { return std::nullopt; };
  request_.path = (folder_ / "none.toml").string();
  EXPECT_THAT(load(request_).problems[0].message, HasSubstr("postrider init"));
  EXPECT_THAT(problems(std::string((1U << 20U) + 1, '#')), ElementsAre(HasSubstr("larger than")));
}

TEST_F(ConfigTest, flags_go_before_the_environment_and_that_before_the_file) {
  variables_["POSTRIDER_RELAY_BATCH"] = "20";
  variables_["POSTRIDER_RELAY_SLEEP"] = "20s";
  request_.overrides = {{"relay.sleep", "30", "--sleep"}};
  const auto loaded = load_text("[relay]\nbatch = 10\nsleep = 10\nname = \"file\"\n");
  ASSERT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(loaded.settings.relay.name, "file");
  EXPECT_EQ(loaded.settings.relay.batch, 20U);
  EXPECT_EQ(loaded.settings.relay.sleep, seconds(30));
}

TEST_F(ConfigTest, every_key_refuses_an_empty_variable_of_the_environment) {
  for (const auto& key : all_keys()) {
    const auto name = environment_name(key);
    if (name.empty()) continue;
    variables_ = {{name, ""}};
    const auto found = problems("");
    ASSERT_EQ(found.size(), 1U) << name;
    EXPECT_THAT(found[0], AllOf(::testing::StartsWith(name + ": "), HasSubstr(full_name(key)),
                                HasSubstr("Give " + range_text(key))));
  }
}

TEST_F(ConfigTest, what_was_set_is_kept_as_written_with_the_highest_that_set_it) {
  variables_["POSTRIDER_RELAY_SLEEP"] = "3";
  variables_["PW"] = "secret";
  const auto loaded = load_text(
      "store = \"postgresql://a:${PW}@h/d\"\n[relay]\nsleep = 2\nbatch = 7\n[[routes]]\nname = "
      "\"r\"\nto = \"stdout:\"\nretry_delays = [1, \"2m\"]\noutage_counts = true\n[retention]\n"
      "events = \"off\"\nkeys = \"48h\"\n");
  ASSERT_THAT(loaded.problems, IsEmpty());
  const auto value = [&](std::string_view section, std::string_view name, int route = -1) {
    const auto* set = find_value(loaded, *find_key(section, name), route);
    return set == nullptr ? std::string("-") : set->text + " " + set->origin;
  };
  const auto at = [&](int line) { return *request_.path + ":" + std::to_string(line); };
  EXPECT_EQ(value("", "store"), "\"postgresql://a:${PW}@h/d\" " + at(1));
  EXPECT_EQ(value("relay", "sleep"), "\"3s\" POSTRIDER_RELAY_SLEEP");
  EXPECT_EQ(value("relay", "batch"), "7 " + at(4));
  EXPECT_EQ(value("relay", "lease_time"), "-");
  EXPECT_EQ(value("routes", "retry_delays", 0), "[\"1s\", \"2m\"] " + at(8));
  EXPECT_EQ(value("routes", "outage_counts", 0), "true " + at(9));
  EXPECT_EQ(value("routes", "window", 0), "-");
  EXPECT_EQ(value("retention", "events"), "\"off\" " + at(11));
  EXPECT_EQ(value("retention", "keys"), "\"2d\" " + at(12));
}

TEST_F(ConfigTest, a_bad_value_is_reported_with_its_own_origin) {
  variables_["POSTRIDER_RELAY_BATCH"] = "many";
  request_.overrides = {{"relay.sleep", "2h", "--sleep"}};
  EXPECT_THAT(problems(""), ElementsAre(HasSubstr("POSTRIDER_RELAY_BATCH: relay.batch is \"many\""),
                                        HasSubstr("--sleep: relay.sleep is \"2h\"")));
}

TEST_F(ConfigTest, secrets_come_from_the_environment_and_from_files) {
  variables_["PASSWORD"] = "p@ss/w rd";
  variables_["WHOLE"] = "postgresql://u:p@h/d";
  variables_["DIR"] = "/var/lib";
  const auto secret = write("secret", "from file\n");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"postgresql://u:${PASSWORD}@h/d", "postgresql://u:p%40ss%2Fw%20rd@h/d"},
      {"${WHOLE}", "postgresql://u:p@h/d"},
      {"sqlite:${DIR}/app.db", "sqlite:/var/lib/app.db"},
      {"postgresql://u:${file:" + secret + "}@h/d", "postgresql://u:from%20file@h/d"},
      {"sqlite:$${DIR}", "sqlite:${DIR}"},
      {"sqlite:$DIR}", "sqlite:$DIR}"},
  };
  for (const auto& [written, expected] : rows) {
    const auto loaded = load_text("store = \"" + written + "\"\n");
    ASSERT_THAT(loaded.problems, IsEmpty()) << written;
    EXPECT_EQ(loaded.settings.store, expected);
  }
}

TEST_F(ConfigTest, a_secret_that_is_missing_is_an_error_with_its_line) {
  variables_["EMPTY"] = "";
  const auto empty = write("empty", "\n");
  const auto large = write("large", std::string(70'000, 'x'));
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"${NONE}", "1: store: the environment variable NONE is not set"},
      {"${EMPTY}", "1: store: the environment variable EMPTY is empty"},
      {"${NONE", "is not closed"},
      {"${}", "followed by no name"},
      {"${a-b}", "followed by no name"},
      {"${file:/nonexistent/x}", "'/nonexistent/x' cannot be read"},
      {"${file:" + empty + "}", "is empty"},
      {"${file:" + large + "}", "is too large"},
  };
  for (const auto& [written, expected] : rows) {
    EXPECT_THAT(problems("store = \"" + written + "\"\n"), ElementsAre(HasSubstr(expected)));
  }
}

TEST_F(ConfigTest, who_needs_no_destination_needs_no_broker_password) {
  const std::string text = "[[routes]]\nname = \"a\"\nto = \"amqp://u:${NONE}@h/\"\n";
  EXPECT_THAT(problems(text), ElementsAre(HasSubstr("3: routes.to: the environment variable")));
  request_.destinations = false;
  EXPECT_THAT(problems(text), IsEmpty());
}

TEST_F(ConfigTest, only_a_worker_needs_the_password_of_its_broker) {
  const std::string text = "[worker]\nfrom = \"amqp://u:${NONE}@h/\"\nfrom_queue = \"mail\"\n";
  EXPECT_THAT(problems(text), IsEmpty());
  request_.worker = true;
  EXPECT_THAT(problems(text), ElementsAre(HasSubstr("2: worker.from: the environment variable")));
  variables_["NONE"] = "secret";
  const auto loaded = load_text(text);
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(loaded.settings.worker_source.url, "amqp://u:secret@h/");
  EXPECT_EQ(loaded.settings.worker_source.queue, "mail");
}

TEST_F(ConfigTest, each_text_of_a_list_of_secrets_may_be_a_reference) {
  variables_["NEW"] = "whsec_canary";
  const auto file = write("old", "whsec_filed\n");
  const auto loaded = load_text(
      "[[routes]]\nname = \"a\"\nto = \"https://h/\"\n[routes.http]\nsecrets = [\"${NEW}\", "
      "\"${file:" +
      file + "}\", \"whsec_plain\"]\nheaders = [\"X-Key: ${NEW}\", \"X-Id: plain\"]\n");
  EXPECT_THAT(loaded.problems, IsEmpty());
  const auto& http = loaded.settings.routes.at(0).http;
  EXPECT_THAT(http.secrets, ElementsAre("whsec_canary", "whsec_filed", "whsec_plain"));
  EXPECT_THAT(http.headers, ElementsAre("X-Key: whsec_canary", "X-Id: plain"));
  EXPECT_EQ(find_value(loaded, *find_key("routes.http", "secrets"), 0)->text,
            "[\"${NEW}\", \"${file:" + file + "}\", \"***\"]");
  EXPECT_EQ(find_value(loaded, *find_key("routes.http", "headers"), 0)->text,
            "[\"X-Key: ${NEW}\", \"X-Id: ***\"]");

  EXPECT_THAT(problems("[[routes]]\nname = \"a\"\nto = \"https://h/\"\n[routes.http]\nsecrets = "
                       "[\"${MISSING}\"]\n"),
              ElementsAre(HasSubstr("5: routes.http.secrets: the environment variable")));
}

TEST_F(ConfigTest, a_value_that_may_be_secret_is_in_no_message) {
  variables_["POSTRIDER_STORE"] = std::string(5000, 'c') + "canary";
  const auto found =
      problems("store = [\"canary\"]\n[[routes]]\nname = \"a\"\nto = [\"canary\"]\n");
  EXPECT_EQ(found.size(), 3U);
  for (const auto& problem : found)
    EXPECT_THAT(problem, Not(HasSubstr("canary")));
}

TEST_F(ConfigTest, a_worker_has_queues_with_weights_and_its_own_patience) {
  const auto loaded = load_text(
      "[worker]\nname = \"packer\"\nqueues = [\"mail:3\", \"shipping\"]\nconcurrency = 4\n"
      "heartbeat = \"1s\"\ndead_after = \"8s\"\ngrace = \"1m\"\nageing = \"10s\"\n");
  const auto& worker = loaded.settings.worker;
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(worker.name, "packer");
  ASSERT_EQ(worker.queues.size(), 2U);
  EXPECT_EQ(worker.queues[0].queue, "mail");
  EXPECT_EQ(worker.queues[0].weight, 3);
  EXPECT_EQ(worker.queues[1].queue, "shipping");
  EXPECT_EQ(worker.queues[1].weight, 1);
  EXPECT_EQ(worker.concurrency, 4U);
  EXPECT_EQ(worker.heartbeat, std::chrono::seconds(1));
  EXPECT_EQ(worker.dead_after, std::chrono::seconds(8));
  EXPECT_EQ(worker.grace, std::chrono::minutes(1));
  EXPECT_EQ(worker.ageing, std::chrono::seconds(10));
}

TEST_F(ConfigTest, queues_and_beats_of_a_worker_that_cannot_be_are_refused) {
  EXPECT_THAT(problems("[worker]\nqueues = [\"mail:0\"]\n"),
              ElementsAre(HasSubstr("the weight of queue 'mail'")));
  EXPECT_THAT(problems("[worker]\nqueues = [\"mail:x\"]\n"),
              ElementsAre(HasSubstr("Write mail or mail:3")));
  EXPECT_THAT(problems("[worker]\nqueues = [\"Mail\"]\n"),
              ElementsAre(HasSubstr("the queue 'Mail'")));
  EXPECT_THAT(problems("[worker]\nqueues = [\"a\", \"a\"]\n"),
              ElementsAre(HasSubstr("named twice")));
  EXPECT_THAT(problems("[worker]\nqueues = []\n"), ElementsAre(HasSubstr("empty")));
  EXPECT_THAT(problems("[worker]\nconcurrency = 0\n"), ElementsAre(HasSubstr("concurrency")));
  EXPECT_THAT(problems("[worker]\nheartbeat = \"3s\"\ndead_after = \"8s\"\n"),
              ElementsAre(HasSubstr("a quarter of dead_after")));
}

// The table in the manual, one row per key, is what `all_keys` says.
TEST(ConfigDocument, lists_every_key_with_type_default_and_purpose) {
  std::ifstream file(POSTRIDER_TEST_SOURCE_DIR "/docs/operate/configuration.md");
  const std::string manual((std::istreambuf_iterator<char>(file)), {});
  std::size_t rows = 0;
  for (const auto& key : all_keys()) {
    const auto value = key.default_value.empty() ? "" : "`" + key.default_value + "`";
    const auto row = "| `" + key.name + "` | " + range_text(key) + " | " + value + " | " +
                     key.purpose + (key.required ? " Required." : "") + " |";
    EXPECT_THAT(manual, HasSubstr(row));
    ++rows;
  }
  std::size_t found = 0;
  for (auto at = manual.find("\n| `"); at != std::string::npos; at = manual.find("\n| `", at + 1)) {
    if (manual.compare(at, 5, "\n| `$") != 0) ++found;  // the table of references to secrets
  }
  EXPECT_EQ(found, rows) << "the manual has rows for keys that do not exist";
}

}  // namespace
}  // namespace postrider::config
