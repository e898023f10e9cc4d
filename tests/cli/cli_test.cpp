// The program as people run it: words, exit codes, files.

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "golden/golden.hpp"

namespace postrider::testing {
namespace {

/// A missing shell is a failure in CI and a skip with its reason elsewhere. True: leave the test.
bool lacks_sqlite_shell(const Finished& run) {
  if (run.code != 127) return false;
  [] {
    if (std::getenv("CI") != nullptr) FAIL() << "the sqlite3 shell is missing";
    GTEST_SKIP() << "the sqlite3 shell is missing: install sqlite3";
  }();
  return true;
}

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr std::string_view canary = "c4n4ry";

class CliTest : public ::testing::Test {
 protected:
  // A migrated database and one route into a file.
  void prepare() {
    ASSERT_EQ(shop_.run({"init"}).code, 0);
    ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  }
  void emit(const std::string& payload = "{}") {
    ASSERT_EQ(
        shop_
            .run({"emit", "--type", "order.placed", "--aggregate", "order/1", "--payload", payload})
            .code,
        0);
  }
  Json lines(const std::string& name) {
    auto all = Json::array();
    std::istringstream text(shop_.read(name));
    for (std::string line; std::getline(text, line);)
      all.push_back(Json::parse(line));
    return all;
  }
  Json status() { return Json::parse(shop_.run({"status", "--format", "json"}).out); }
  // Replaces the destination of the route that `init` has written.
  void lead_to(const std::string& url) {
    auto text = shop_.read("postrider.toml");
    const std::string before = "to = \"file:events.jsonl\"";
    text.replace(text.find(before), before.size(), "to = \"" + url + "\"");
    shop_.write("postrider.toml", text);
  }

  Workshop shop_;
};

TEST_F(CliTest, the_four_commands_of_the_readme_carry_an_event_into_a_file) {
  const auto init = shop_.run({"init", "--store", "sqlite:app.db", "--to", "file:events.jsonl"});
  EXPECT_EQ(init.code, 0);
  EXPECT_EQ(init.out, "Wrote postrider.toml. Next: postrider migrate\n");

  const auto migrate = shop_.run({"migrate"});
  EXPECT_EQ(migrate.code, 0);
  EXPECT_THAT(migrate.out, HasSubstr("The tables are ready."));

  const auto insert = shop_.run_program(
      {"sqlite3", "app.db",
       "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES ('order', "
       "'1', 'order.placed', '{\"id\":1}')"});
  if (lacks_sqlite_shell(insert)) return;
  ASSERT_EQ(insert.code, 0) << insert.err;

  const auto relay = shop_.run({"relay"});
  EXPECT_EQ(relay.code, 0);
  EXPECT_EQ(relay.out,
            "1 event read, 0 stored deliveries taken up.\n"
            "  all -> file:events.jsonl: 1 delivered\n");
  EXPECT_THAT(relay.err, IsEmpty());

  const auto events = lines("events.jsonl");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["type"], "order.placed");
  EXPECT_EQ(events[0]["aggregate_type"], "order");
  EXPECT_EQ(events[0]["aggregate_id"], "1");
  EXPECT_EQ(events[0]["payload"], "{\"id\":1}");
  EXPECT_EQ(events[0]["seq"], "1");
}

TEST_F(CliTest, R_216_without_parameters_the_relay_makes_one_pass) {
  prepare();
  EXPECT_EQ(shop_.run({"relay"}).code, 0);
}

TEST_F(CliTest, R_215_relay_before_migrate_names_the_command_to_run) {
  shop_.run({"init"});
  const auto missing = shop_.run({"relay"});
  EXPECT_NE(missing.code, 0);
  EXPECT_THAT(missing.err, HasSubstr("postrider migrate"));

  shop_.run_program({"sqlite3", "app.db", "CREATE TABLE x(y)"});
  const auto empty = shop_.run({"relay"});
  EXPECT_EQ(empty.code, 78);
  EXPECT_THAT(empty.err, HasSubstr("postrider migrate"));
}

TEST_F(CliTest, init_never_overwrites_without_force) {
  shop_.write("postrider.toml", "mine");
  const auto refused = shop_.run({"init"});
  EXPECT_EQ(refused.code, 74);
  EXPECT_EQ(refused.err,
            "postrider: init: postrider.toml is there already. Give --force to replace it.\n");
  EXPECT_EQ(shop_.read("postrider.toml"), "mine");
  EXPECT_EQ(shop_.run({"init", "--force"}).code, 0);
  EXPECT_THAT(shop_.read("postrider.toml"), HasSubstr("[[routes]]"));
}

TEST_F(CliTest, init_writes_a_file_that_is_accepted_whatever_the_urls_hold) {
  EXPECT_EQ(shop_.run({"init", "--store", "sqlite:a \"b\\c.db", "--to", "file:d \"e.jsonl"}).code,
            0);
  EXPECT_EQ(shop_.run({"migrate"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(shop_.path("a \"b\\c.db")));
  EXPECT_EQ(shop_.run({"init", "--store", "nonsense:x"}).code, 64);
  EXPECT_EQ(shop_.run({"init", "--to", "nonsense:x"}).code, 64);
  EXPECT_EQ(shop_.run({"init", "--config", "missing/p.toml"}).code, 74);
}

TEST_F(CliTest, what_cannot_be_understood_ends_with_64_and_one_line) {
  const std::vector<std::vector<std::string>> rows = {
      {},
      {"frobnicate"},
      {"status", "--nope"},
      {"status", "--format", "xml"},
      {"dead"},
      {"dead", "show"},
      {"emit"},
      {"emit", "--type", "x", "--jsonl"},
      {"emit", "--payload", "x"},
      {"relay", "--loop", "--drain"},
      {"relay", "--max-passes", "3"},
      {"migrate", "--print", "--status"},
      {"migrate", "--even-with-rows"},
  };
  for (const auto& words : rows) {
    const auto result = shop_.run(words);
    EXPECT_EQ(result.code, 64) << ::testing::PrintToString(words);
    EXPECT_THAT(result.err, MatchesRegex("postrider: usage: [^\n]*--help`\\.\n"));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(CliTest, R_219_sleep_takes_a_whole_number_from_1_to_3600) {
  prepare();
  for (const auto* text : {"0", "3601", "-1", "1.5", "soon", "", "1s"}) {
    EXPECT_EQ(shop_.run({"relay", "--drain", "--sleep", text}).code, 64) << text;
  }
  for (const auto* text : {"1", "3600"}) {
    EXPECT_EQ(shop_.run({"relay", "--drain", "--sleep", text}).code, 0) << text;
  }
}

TEST_F(CliTest, G_03_sleep_without_loop_or_drain_is_a_usage_error) {
  prepare();
  const auto result = shop_.run({"relay", "--sleep", "5"});
  EXPECT_EQ(result.code, 64);
  EXPECT_THAT(result.err, HasSubstr("--sleep requires --loop or --drain"));
}

TEST_F(CliTest, a_bad_configuration_ends_with_78_file_and_line) {
  shop_.write("postrider.toml", "store = \"sqlite:app.db\"\n[relay]\nbacth = 5\nsleep = 0\n");
  const auto result = shop_.run({"status"});
  EXPECT_EQ(result.code, 78);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("postrider: postrider.toml:3: relay.bacth is unknown. Did you mean "
                              "batch?\n"),
                    HasSubstr("postrider: postrider.toml:4: relay.sleep is 0")));
}

TEST_F(CliTest, without_any_configuration_it_says_what_to_do) {
  const auto result = shop_.run({"status"});
  EXPECT_EQ(result.code, 78);
  EXPECT_THAT(result.err, HasSubstr("postrider init"));
}

TEST_F(CliTest, a_configuration_without_route_is_no_use_to_a_relay) {
  shop_.write("postrider.toml", "store = \"sqlite:app.db\"\n");
  ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  const auto result = shop_.run({"relay"});
  EXPECT_EQ(result.code, 78);
  EXPECT_THAT(result.err, HasSubstr("[[routes]]"));
}

TEST_F(CliTest, flags_go_before_the_environment_and_that_before_the_file) {
  prepare();
  const auto store_of = [&](const std::vector<std::string>& words) {
    auto all = words;
    all.insert(all.begin(), "migrate");
    return shop_.run(all).code;
  };
  shop_.variables["POSTRIDER_STORE"] = "sqlite:environment.db";
  EXPECT_EQ(store_of({}), 0);
  EXPECT_TRUE(std::filesystem::exists(shop_.path("environment.db")));
  EXPECT_EQ(store_of({"--store", "sqlite:flag.db"}), 0);
  EXPECT_TRUE(std::filesystem::exists(shop_.path("flag.db")));
}

TEST_F(CliTest, a_configuration_can_be_named_by_flag_and_environment) {
  shop_.write("other.toml", "store = \"sqlite:other.db\"\n");
  EXPECT_EQ(shop_.run({"migrate", "--config", "other.toml"}).code, 0);
  shop_.variables["POSTRIDER_CONFIG"] = "other.toml";
  EXPECT_EQ(shop_.run({"status"}).code, 0);
  shop_.variables["POSTRIDER_CONFIG"] = "none.toml";
  EXPECT_EQ(shop_.run({"status"}).code, 78);
}

TEST_F(CliTest, R_224_an_empty_schema_has_a_status_of_zeros) {
  prepare();
  const auto table = shop_.run({"status"});
  EXPECT_EQ(table.code, 0);
  expect_golden("status_empty.txt", table.out);
  const auto json = shop_.run({"status", "--format", "json"});
  EXPECT_EQ(json.code, 0);
  expect_golden("status_empty.json", json.out);
}

TEST_F(CliTest, R_225_status_and_logs_hold_neither_payloads_nor_secrets) {
  shop_.variables["SECRET"] = canary;
  shop_.run({"init", "--to", "file:/nonexistent/x"});
  ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  emit(std::string(canary));
  std::string seen;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"status"},
           {"status", "--format", "json"},
           {"relay", "--log-level", "debug"},
           {"relay", "--format", "json"},
           {"dead", "list"},
           {"route", "list"},
           {"migrate", "--store", "postgresql://u:${SECRET}@127.0.0.1:1/x"},
           {"status", "--store", "postgresql://u:c4n4ry@127.0.0.1:1/x"},
           {"status", "--store", "oracle://u:c4n4ry@host"}}) {
    const auto result = shop_.run(words);
    seen += result.out + result.err;
  }
  EXPECT_THAT(seen, Not(HasSubstr(std::string(canary))));
}

TEST_F(CliTest, R_226_status_asks_no_destination) {
  prepare();
  lead_to("file:/nonexistent/${NOT_SET}");
  EXPECT_EQ(shop_.run({"status"}).code, 0);
  EXPECT_EQ(shop_.run({"relay"}).code, 78);
}

TEST_F(CliTest, status_counts_what_waits) {
  prepare();
  emit();
  emit();
  auto json = status();
  EXPECT_EQ(json["events"]["total"], 2);
  EXPECT_EQ(json["events"]["unrouted"], 2);
  EXPECT_GE(json["events"]["oldest_unrouted_age_ms"], 0);
  shop_.run({"relay"});
  json = status();
  EXPECT_EQ(json["events"]["unrouted"], 0);
  EXPECT_EQ(json["events"]["oldest_unrouted_age_ms"], nullptr);
}

TEST_F(CliTest, check_compares_with_thresholds) {
  prepare();
  EXPECT_EQ(shop_.run({"check"}).code, 0);
  emit();
  const auto exceeded = shop_.run({"check", "--max-unrouted-age", "0s", "--format", "json"});
  // The event may be less than a millisecond old, and 0 ms are not more than 0 s.
  EXPECT_THAT(exceeded.code, ::testing::AnyOf(0, 1));
  ASSERT_EQ(shop_.run({"route", "pause", "all"}).code, 0);
  EXPECT_EQ(shop_.run({"check"}).code, 1);
  EXPECT_EQ(shop_.run({"check", "--allow-paused"}).code, 0);
  EXPECT_EQ(shop_.run({"check", "--max-due-age", "soon"}).code, 64);
}

TEST_F(CliTest, an_unavailable_destination_ends_with_75_and_says_what_waits) {
  prepare();
  lead_to("file:/nonexistent/x");
  emit();
  const auto result = shop_.run({"relay"});
  EXPECT_EQ(result.code, 75);
  EXPECT_THAT(result.out, AllOf(HasSubstr("0 delivered"),
                                HasSubstr("1 event left in the table until a paused route is back"),
                                HasSubstr("its folder does not exist. Create the folder.")));
  EXPECT_EQ(status()["events"]["unrouted"], 1);
}

TEST_F(CliTest, a_database_that_cannot_be_reached_ends_with_69) {
  shop_.run({"init"});
  const auto result = shop_.run({"status", "--store", "sqlite:missing/app.db"});
  EXPECT_EQ(result.code, 69);
  EXPECT_THAT(result.err, StartsWith("postrider: status: "));
}

TEST_F(CliTest, another_relay_at_work_ends_with_75_and_its_name) {
  prepare();
  shop_.variables["POSTRIDER_RELAY_LEASE_TIME"] = "600ms";
  shop_.variables["POSTRIDER_RELAY_LEASE_RENEWAL"] = "100ms";
  shop_.variables["POSTRIDER_RELAY_NAME"] = "north";
  const auto daemon = shop_.start({"relay", "--loop"});
  ASSERT_TRUE(daemon->says("lease_gained")) << daemon->err();
  const auto second = shop_.run({"relay"});
  EXPECT_EQ(second.code, 75);
  EXPECT_THAT(second.out, HasSubstr("1 partition owned by another relay: north"));
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->finish().code, 0);
  EXPECT_EQ(shop_.run({"relay"}).code, 0);
}

TEST_F(CliTest, R_220_sigterm_and_sigint_end_the_loop_cleanly) {
  prepare();
  emit();
  for (const int number : {SIGTERM, SIGINT}) {
    const auto daemon = shop_.start({"relay", "--loop", "--log-format", "json"});
    ASSERT_TRUE(daemon->says("lease_gained")) << daemon->err();
    daemon->signal(number);
    daemon->signal(number);  // as timeout(1) does: process and group
    const auto result = daemon->finish();
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.err, HasSubstr("\"kind\":\"relay_stopped\",\"clean\":\"yes\""));
  }
  EXPECT_EQ(shop_.run({"relay"}).code, 0) << "the leases were given back";
  EXPECT_EQ(lines("events.jsonl").size(), 1U);
}

TEST_F(CliTest, the_loop_logs_valid_json_where_there_is_no_terminal) {
  prepare();
  const auto daemon = shop_.start({"relay", "--loop", "--log-level", "debug"});
  ASSERT_TRUE(daemon->says("lease_gained")) << daemon->err();
  emit();
  ASSERT_TRUE(shop_.will_hold("events.jsonl", "\n"));
  daemon->signal(SIGTERM);
  const auto result = daemon->finish();
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 3);
  std::istringstream log(result.err);
  for (std::string line; std::getline(log, line);)
    EXPECT_TRUE(Json::accept(line)) << line;
}

TEST_F(CliTest, events_on_standard_output_are_not_mixed_with_the_summary) {
  prepare();
  lead_to("stdout:");
  emit();
  const auto result = shop_.run({"relay"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(Json::accept(result.out)) << result.out;
  EXPECT_THAT(result.err, HasSubstr("1 delivered"));
}

TEST_F(CliTest, drain_repeats_and_counts_its_passes) {
  prepare();
  shop_.variables["POSTRIDER_RELAY_BATCH"] = "1";
  for (int i = 0; i < 3; ++i)
    emit();
  const auto one = shop_.run({"relay"});
  EXPECT_THAT(one.out, AllOf(HasSubstr("1 delivered"), HasSubstr("More is waiting")));
  EXPECT_EQ(shop_.run({"relay", "--drain", "--max-passes", "1"}).code, 0);
  EXPECT_EQ(lines("events.jsonl").size(), 2U);
  EXPECT_EQ(shop_.run({"relay", "--drain"}).code, 0);
  EXPECT_EQ(lines("events.jsonl").size(), 3U);
}

TEST_F(CliTest, a_paused_route_waits_for_its_resume) {
  prepare();
  const auto misspelt = shop_.run({"route", "pause", "al"});
  EXPECT_EQ(misspelt.code, 65);
  EXPECT_THAT(misspelt.err, HasSubstr("Did you mean all?"));
  EXPECT_EQ(shop_.run({"route", "pause", "all", "--reason", "test"}).out,
            "all is paused. Its events wait.\n");
  EXPECT_EQ(shop_.run({"route", "pause", "all"}).out, "all was paused already.\n");
  emit();
  EXPECT_THAT(shop_.run({"relay"}).out, HasSubstr("`postrider route resume all`"));
  EXPECT_EQ(status()["paused_routes"], Json::array({"all"}));
  EXPECT_THAT(shop_.run({"route", "list"}).out, HasSubstr("paused"));
  EXPECT_EQ(shop_.run({"route", "resume", "all"}).out, "all goes on.\n");
  EXPECT_EQ(shop_.run({"route", "resume", "all"}).out, "all was not paused.\n");
  EXPECT_THAT(shop_.run({"relay"}).out, HasSubstr("1 delivered"));
  EXPECT_EQ(Json::parse(shop_.run({"route", "list", "--format", "json"}).out)[0]["paused"], false);
}

TEST_F(CliTest, a_route_with_a_job_makes_rows_for_workers_and_needs_no_destination) {
  shop_.write("postrider.toml",
              "store = \"sqlite:app.db\"\n[[routes]]\nname = \"ship\"\nevents = [\"order.*\"]\n"
              "job = \"Reserve\"\nqueue = \"shipping\"\n");
  ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  const auto checked = shop_.run({"config", "check"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  emit();
  emit();

  const auto relay = shop_.run({"relay"});

  EXPECT_EQ(relay.code, 0) << relay.err;
  EXPECT_THAT(relay.out, HasSubstr("2 jobs made for workers."));
  const auto routes = status()["routes"];
  ASSERT_EQ(routes.size(), 1U);
  EXPECT_EQ(routes[0]["route"], "ship");
  EXPECT_EQ(routes[0]["due"], 2);
  EXPECT_THAT(shop_.run({"relay", "--drain"}).out, HasSubstr("0 events read"));
}

TEST_F(CliTest, R_168_with_one_invalid_route_no_event_is_routed_on_the_others) {
  const std::string job = "job = \"Reserve\"\nqueue = \"shipping\"\n";
  const std::string sound = "store = \"sqlite:app.db\"\n[[routes]]\nname = \"ship\"\n" + job +
                            "[[routes]]\nname = \"out\"\nto = \"file:events.jsonl\"\n";
  shop_.write("postrider.toml", sound);
  ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  emit();
  shop_.write("postrider.toml", sound + "[[routes]]\nname = \"again\"\n" + job);

  const auto relay = shop_.run({"relay"});

  EXPECT_EQ(relay.code, 78);
  EXPECT_THAT(relay.err, HasSubstr("both make the job Reserve in the queue shipping"));
  shop_.write("postrider.toml", sound);
  EXPECT_EQ(status()["events"]["unrouted"], 1);
  EXPECT_EQ(shop_.run({"relay"}).code, 0);
  EXPECT_EQ(status()["events"]["unrouted"], 0);
}

TEST_F(CliTest, a_route_with_a_job_is_shown_as_one_and_its_queue_is_what_can_be_paused) {
  shop_.write("postrider.toml",
              "store = \"sqlite:app.db\"\n[[routes]]\nname = \"ship\"\njob = \"Reserve\"\n"
              "queue = \"shipping\"\n[[routes]]\nname = \"out\"\nto = \"stdout:\"\n");
  ASSERT_EQ(shop_.run({"migrate"}).code, 0);

  const auto pause = shop_.run({"route", "pause", "ship"});
  EXPECT_EQ(pause.code, 65);
  EXPECT_THAT(pause.err, HasSubstr("`postrider queue pause shipping`"));
  EXPECT_THAT(shop_.run({"route", "list"}).out, HasSubstr("queue shipping"));

  const auto shown = shop_.run({"config", "show"}).out;
  EXPECT_THAT(shown, HasSubstr("routes.ship.serial_limit"));
  EXPECT_THAT(shown, Not(HasSubstr("routes.ship.order")));
  EXPECT_THAT(shown, HasSubstr("routes.out.order"));
  EXPECT_THAT(shown, Not(HasSubstr("routes.out.serial_limit")));
  for (const auto& value : Json::parse(shop_.run({"config", "show", "--format", "json"}).out)) {
    if (value["key"] == "routes.ship.timeout") {
      EXPECT_EQ(value["value"], "\"10m\"");
    } else if (value["key"] == "routes.out.timeout") {
      EXPECT_EQ(value["value"], "\"30s\"");
    }
  }
}

// A type that is no UTF-8 can only come from raw SQL; the file destination rejects it for good.
class DeadTest : public CliTest {
 protected:
  void make_dead_letters(int count) {
    prepare();
    for (int i = 0; i < count; ++i) {
      const auto inserted =
          shop_.run_program({"sqlite3", "app.db",
                             "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, "
                             "payload) VALUES ('o', '" +
                                 std::to_string(i) + "', 'bad' || CAST(x'ff' AS TEXT), 'c4n4ry')"});
      if (lacks_sqlite_shell(inserted)) return;
      ASSERT_EQ(inserted.code, 0) << inserted.err;
    }
    EXPECT_EQ(shop_.run({"relay"}).code, 0);  // R-222: a refused delivery stays its own error
    ASSERT_EQ(status()["total"]["failed"], count);
  }
  Json list() { return Json::parse(shop_.run({"dead", "list", "--format", "json"}).out); }
};

TEST_F(DeadTest, dead_letters_are_listed_and_shown_without_payload) {
  make_dead_letters(2);
  const auto listed = list();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0]["route"], "all");
  EXPECT_TRUE(listed[0]["event_seq"].is_string());
  const auto id = listed[0]["id"].get<std::string>();
  const auto shown = shop_.run({"dead", "show", id});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, AllOf(HasSubstr(id), Not(HasSubstr("c4n4ry"))));
  EXPECT_THAT(shop_.run({"dead", "list"}).out, AllOf(HasSubstr(id), Not(HasSubstr("c4n4ry"))));
  EXPECT_EQ(shop_.run({"dead", "show", "01890a5d-ac96-774b-bcce-b302099a8057"}).code, 65);
  EXPECT_EQ(shop_.run({"dead", "show", "x"}).code, 65);
  EXPECT_EQ(Json::parse(shop_.run({"dead", "list", "--route", "other", "--format", "json"}).out),
            Json::array());
}

TEST_F(DeadTest, a_change_needs_a_choice_and_a_yes) {
  make_dead_letters(2);
  EXPECT_EQ(shop_.run({"dead", "retry"}).code, 64);
  EXPECT_EQ(shop_.run({"dead", "retry", "--all"}).code, 64);  // no terminal to ask on
  const auto dry = shop_.run({"dead", "discard", "--all", "--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_EQ(list().size(), 2U);
}

TEST_F(DeadTest, retry_gives_a_new_life_and_discard_gives_up) {
  make_dead_letters(2);
  const auto id = list()[0]["id"].get<std::string>();
  EXPECT_EQ(shop_.run({"dead", "discard", id, "--yes"}).out, "1 dead letter given up.\n");
  EXPECT_EQ(shop_.run({"dead", "retry", "--all", "--yes", "--reason", "mended"}).out,
            "1 dead letter given a new life.\n");
  EXPECT_EQ(list().size(), 0U);
  EXPECT_EQ(status()["total"]["discarded"], 1);
  shop_.run({"relay"});
  EXPECT_EQ(list().size(), 1U);  // nothing was mended
  EXPECT_EQ(list()[0]["generation"], 2);
  EXPECT_EQ(shop_.run({"dead", "retry", "--route", "none", "--yes"}).out, "No dead letter fits.\n");
}

TEST_F(DeadTest, a_bulk_change_takes_more_than_one_transaction_and_is_audited) {
  prepare();
  const auto inserted = shop_.run_program(
      {"sqlite3", "app.db",
       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2300) "
       "INSERT INTO outbox_events (type, created_at, routed_at) SELECT 'a.b', "
       "'2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z' FROM n;"
       "INSERT INTO outbox_deliveries (id, event_seq, event_id, route, status, attempts, "
       "available_at, finished_at, failure_code) SELECT printf('00000000-0000-7000-8000-%012d', "
       "seq), seq, id, 'all', 'failed', 1, created_at, created_at, "
       "iif(seq % 2 = 0, 'timeout', 'nacked') FROM outbox_events"});
  if (lacks_sqlite_shell(inserted)) return;
  ASSERT_EQ(inserted.code, 0) << inserted.err;

  const auto dry = shop_.run({"dead", "retry", "--code", "timeout", "--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.out, HasSubstr("and 1130 more: 1150 dead letters in all."));
  EXPECT_EQ(status()["total"]["failed"], 2300);

  EXPECT_EQ(shop_
                .run({"dead", "retry", "--code", "timeout", "--yes", "--limit", "1100",
                      "--operator", "ann", "--reason", "mended"})
                .out,
            "1100 dead letters given a new life.\n");
  EXPECT_EQ(shop_.run({"dead", "discard", "--all", "--yes", "--operator", "bob"}).out,
            "1200 dead letters given up.\n");
  EXPECT_EQ(status()["total"]["failed"], 0);
  EXPECT_EQ(status()["total"]["discarded"], 1200);
  const auto audit = shop_.run_program(
      {"sqlite3", "app.db",
       "SELECT who, action, object, reason, detail FROM postrider_audit WHERE detail LIKE "
       "'% dead letters' ORDER BY id"});
  EXPECT_EQ(audit.out,
            "ann|dead_retry|code=timeout limit=1100|mended|1000 dead letters\n"
            "ann|dead_retry|code=timeout limit=1100|mended|100 dead letters\n"
            "bob|dead_discard|all||1000 dead letters\n"
            "bob|dead_discard|all||200 dead letters\n");
  EXPECT_EQ(shop_.run_program({"sqlite3", "app.db", "SELECT count(*) FROM postrider_audit"}).out,
            "2304\n")
      << "one line for each letter beside these";
}

TEST_F(DeadTest, an_empty_filter_fits_nothing_rather_than_everything) {
  make_dead_letters(1);
  for (const auto* filter : {"--route", "--type", "--code"}) {
    EXPECT_EQ(shop_.run({"dead", "discard", filter, "", "--yes"}).out, "No dead letter fits.\n");
  }
  EXPECT_EQ(list().size(), 1U);
}

TEST_F(DeadTest, a_limit_out_of_range_is_refused) {
  for (const auto* limit : {"0", "-1", "x", "", "1.5", "9999999999999"}) {
    EXPECT_EQ(shop_.run({"dead", "retry", "--all", "--yes", "--limit", limit}).code, 64) << limit;
  }
  EXPECT_EQ(shop_.run({"dead", "list", "--limit", "100001"}).code, 64);
}

TEST_F(CliTest, emit_takes_a_payload_from_word_file_and_input) {
  prepare();
  shop_.write("payload.bin", std::string("a\0\xff", 3));
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--payload", "word", "--header", "x=1=2"}).code, 0);
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--payload", "@payload.bin"}).code, 0);
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--payload", "-"}, "from input").code, 0);
  const std::string id = "01890a5d-ac96-774b-bcce-b302099a8057";
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--id", id}).out, id + "\n");
  shop_.run({"relay"});
  const auto events = lines("events.jsonl");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["payload"], "word");
  EXPECT_EQ(events[0]["headers"]["x"], "1=2");
  EXPECT_EQ(events[1]["payload_base64"], "YQD/");
  EXPECT_EQ(events[2]["payload"], "from input");
  EXPECT_EQ(events[3]["payload"], "");
  EXPECT_EQ(events[3]["id"], id);
}

TEST_F(CliTest, emit_refuses_what_is_no_event) {
  prepare();
  const std::string large(2U << 20U, 'x');
  const std::vector<std::pair<std::vector<std::string>, int>> rows = {
      {{"emit", "--type", "a.b", "--aggregate", "order"}, 65},
      {{"emit", "--type", "a.b", "--aggregate", "/1"}, 65},
      {{"emit", "--type", "a.b", "--header", "x"}, 65},
      {{"emit", "--type", "a.b", "--header", "x=1", "--header", "x=2"}, 65},
      {{"emit", "--type", "a.b", "--id", "x"}, 65},
      {{"emit", "--type", "a\nb"}, 65},
      {{"emit", "--type", "a.b", "--payload", "@missing"}, 74},
  };
  for (const auto& [words, code] : rows) {
    const auto result = shop_.run(words);
    EXPECT_EQ(result.code, code) << ::testing::PrintToString(words);
    EXPECT_THAT(result.err, StartsWith("postrider: emit: "));
  }
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--payload", "-"}, large).code, 65);
  EXPECT_EQ(status()["events"]["total"], 0);
}

TEST_F(CliTest, emit_reads_what_the_file_destination_has_written) {
  prepare();
  emit("one");
  shop_.write("payload.bin", "\xff");
  shop_.run({"emit", "--type", "a.b", "--payload", "@payload.bin", "--header", "k=v"});
  shop_.run({"relay"});
  const auto written = shop_.read("events.jsonl");

  ASSERT_EQ(shop_.run({"migrate", "--store", "sqlite:copy.db"}).code, 0);
  const auto emitted = shop_.run({"emit", "--jsonl", "--store", "sqlite:copy.db"}, written);
  EXPECT_EQ(emitted.out, "2 events written.\n");
  lead_to("file:copy.jsonl");
  EXPECT_EQ(shop_.run({"relay", "--store", "sqlite:copy.db"}).code, 0);
  auto original = lines("events.jsonl");
  auto copy = lines("copy.jsonl");
  for (auto* all : {&original, &copy}) {
    for (auto& event : *all)
      event.erase("created_at");
  }
  EXPECT_EQ(copy, original);
}

TEST_F(CliTest, emit_names_the_line_at_fault_and_how_to_go_on) {
  prepare();
  const std::string good = R"({"type":"a.b","payload":"1"})";
  const auto result =
      shop_.run({"emit", "--jsonl"}, good + "\n\n" + good + "\n{\"c4n4ry\":1}\n" + good + "\n");
  EXPECT_EQ(result.code, 65);
  EXPECT_THAT(result.err, AllOf(HasSubstr("line 4: a member is unknown"),
                                HasSubstr("2 events written before it; go on with --from-line 4"),
                                Not(HasSubstr("c4n4ry"))));
  EXPECT_EQ(status()["events"]["total"], 2);
  EXPECT_EQ(shop_.run({"emit", "--jsonl", "--from-line", "2"}, "broken\n" + good).code, 0);
}

TEST_F(CliTest, emit_bounds_the_size_of_a_line) {
  prepare();
  const auto result = shop_.run({"emit", "--jsonl"}, std::string(9U << 20U, ' '));
  EXPECT_EQ(result.code, 65);
  EXPECT_THAT(result.err, HasSubstr("line 1: it is longer than 8388608 bytes"));
}

TEST_F(CliTest, purge_deletes_each_by_its_retention_or_what_is_named_by_an_age) {
  prepare();
  emit();
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--key", "api/1"}).code, 0);
  shop_.run({"relay"});
  EXPECT_EQ(shop_.run({"purge"}).out,
            "0 events deleted, older than 7d.\n"
            "0 keys deleted, older than 7d.\n"
            "0 receipts deleted, older than 30d.\n"
            "0 workers deleted, older than 30d.\n");
  EXPECT_EQ(shop_.run({"purge", "--events", "--older-than", "0s", "--dry-run"}).out,
            "2 events would be deleted, older than 0s.\n");
  EXPECT_EQ(shop_.run({"purge", "--events", "--keys", "--older-than", "0s"}).out,
            "2 events deleted, older than 0s.\n"
            "1 key deleted, older than 0s.\n");
  EXPECT_EQ(status()["events"]["total"], 0);
}

TEST_F(CliTest, purge_follows_the_configuration_and_its_words_are_checked) {
  prepare();
  shop_.variables["POSTRIDER_RETENTION_EVENTS"] = "off";
  shop_.variables["POSTRIDER_RETENTION_RECEIPTS"] = "1h";
  EXPECT_EQ(shop_.run({"purge"}).out,
            "events are kept for ever.\n"
            "0 keys deleted, older than 7d.\n"
            "0 receipts deleted, older than 1h.\n"
            "0 workers deleted, older than 30d.\n");
  EXPECT_EQ(shop_.run({"purge", "--events", "--older-than", "9d"}).out,
            "0 events deleted, older than 9d.\n");
  shop_.variables["POSTRIDER_RETENTION_EVENTS"] = "0";
  const auto zero = shop_.run({"purge"});
  EXPECT_EQ(zero.code, 78);
  EXPECT_THAT(zero.err, HasSubstr("a duration from 1s to 3650d, or off"));
  shop_.variables.clear();
  for (const auto* age : {"long", "", "-1s", "1w"}) {
    EXPECT_EQ(shop_.run({"purge", "--keys", "--older-than", age}).code, 64) << age;
  }
  const auto unnamed = shop_.run({"purge", "--older-than", "1h"});
  EXPECT_EQ(unnamed.code, 64);
  EXPECT_THAT(unnamed.err, HasSubstr("--events, --keys, --receipts or --workers"));
}

TEST_F(CliTest, purge_by_a_person_is_in_the_audit) {
  prepare();
  emit();
  shop_.run({"relay"});
  shop_.run({"purge", "--events", "--older-than", "0s", "--operator", "ann", "--reason", "disk"});
  const auto audit = shop_.run_program(
      {"sqlite3", "app.db", "SELECT who, action, object, reason, detail FROM postrider_audit"});
  if (lacks_sqlite_shell(audit)) return;
  EXPECT_EQ(audit.out, "ann|purge|events|disk|1 events\n");
}

TEST_F(CliTest, the_loop_deletes_what_is_older_than_its_retention_and_says_so) {
  prepare();
  const auto inserted = shop_.run_program(
      {"sqlite3", "app.db",
       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) "
       "INSERT INTO outbox_events (type, created_at, routed_at) SELECT 'old.one', "
       "'2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z' FROM n;"
       "INSERT INTO outbox_events (type) VALUES ('new.one')"});
  if (lacks_sqlite_shell(inserted)) return;
  ASSERT_EQ(inserted.code, 0) << inserted.err;
  const auto relay = shop_.start({"relay", "--loop", "--log-format", "json"});
  EXPECT_TRUE(relay->says("rows_purged"));
  relay->signal(SIGTERM);
  const auto ended = relay->finish();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr(R"("rows":1200,"code":"events")"));
  EXPECT_EQ(status()["events"]["total"], 1) << "the new one stays";
}

TEST_F(CliTest, the_loop_deletes_nothing_when_retention_is_off) {
  prepare();
  const auto inserted = shop_.run_program(
      {"sqlite3", "app.db",
       "INSERT INTO outbox_events (type, created_at, routed_at) VALUES ('old.one', "
       "'2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z');"
       "INSERT INTO outbox_keys (scope, key, event_id, content_hash, created_at) VALUES ('s', 'k', "
       "'00000000-0000-7000-8000-000000000001', zeroblob(32), '2026-01-01T00:00:00.000000Z')"});
  if (lacks_sqlite_shell(inserted)) return;
  shop_.variables["POSTRIDER_RETENTION_EVENTS"] = "off";
  const auto relay = shop_.start({"relay", "--loop", "--log-format", "json"});
  EXPECT_TRUE(relay->says(R"("rows":1,"code":"keys")")) << "which come behind the events";
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->finish().code, 0);
  EXPECT_EQ(status()["events"]["total"], 1);
}

TEST_F(CliTest, emit_with_a_key_writes_once) {
  prepare();
  const std::vector<std::string> words = {
      "emit", "--type", "a.b", "--key", "orders-api/request-17/b", "--payload", "{}"};
  const auto first = shop_.run(words);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(shop_.run(words).out, first.out) << "the id of the first";
  EXPECT_EQ(status()["events"]["total"], 1);
  const auto other = shop_.run(
      {"emit", "--type", "a.b", "--key", "orders-api/request-17/b", "--payload", "c4n4ry"});
  EXPECT_EQ(other.code, 65);
  EXPECT_THAT(other.err, AllOf(HasSubstr("key was used before"), Not(HasSubstr("c4n4ry"))));
  EXPECT_EQ(status()["events"]["total"], 1);
  for (const auto* key : {"", "noslash", "/k", "s/", "s/\n"}) {
    EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--key", key}).code, 65) << key;
  }
  EXPECT_EQ(shop_.run({"emit", "--jsonl", "--key", "a/b"}).code, 64);
}

TEST_F(CliTest, emit_can_write_for_later) {
  prepare();
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--delay", "1h"}).code, 0);
  EXPECT_EQ(
      shop_.run({"emit", "--type", "a.b", "--available-at", "2099-01-01T02:00:00.5+02:00"}).code,
      0);
  EXPECT_EQ(shop_.run({"emit", "--type", "a.b", "--available-at", "2020-01-01T00:00:00Z"}).code, 0);
  EXPECT_EQ(shop_.run({"relay"}).code, 0);
  EXPECT_EQ(lines("events.jsonl").size(), 1U);
  const auto times = shop_.run_program(
      {"sqlite3", "app.db", "SELECT available_at FROM outbox_events WHERE seq = 2"});
  if (lacks_sqlite_shell(times)) return;
  EXPECT_EQ(times.out, "2099-01-01T00:00:00.500000Z\n");
  const std::vector<std::vector<std::string>> rows = {{"--delay", ""},
                                                      {"--available-at", ""},
                                                      {"--delay", "soon"},
                                                      {"--delay", "-1s"},
                                                      {"--delay", "3651d"},
                                                      {"--available-at", "tomorrow"},
                                                      {"--available-at", "2099-02-30T00:00:00Z"},
                                                      {"--available-at", "2099-01-01"},
                                                      {"--available-at", "2099-01-01T00:00:00"},
                                                      {"--available-at", "2099-01-01 00:00:00Z"}};
  for (const auto& row : rows) {
    std::vector<std::string> words = {"emit", "--type", "a.b"};
    words.insert(words.end(), row.begin(), row.end());
    EXPECT_EQ(shop_.run(words).code, 65) << row[1];
  }
  EXPECT_EQ(
      shop_
          .run({"emit", "--type", "a.b", "--delay", "1s", "--available-at", "2099-01-01T00:00:00Z"})
          .code,
      64);
  EXPECT_EQ(status()["events"]["total"], 3);
}

TEST_F(CliTest, emit_names_the_line_that_the_database_refuses_and_writes_those_before_it) {
  prepare();
  const auto record = [](int version) {
    return R"({"type":"a.b","aggregate_type":"o","aggregate_id":"1","aggregate_version":)" +
           std::to_string(version) + R"(,"payload":"{}"})" + "\n";
  };
  const auto result =
      shop_.run({"emit", "--jsonl"}, record(1) + record(2) + "\n" + record(1) + record(3));
  EXPECT_EQ(result.code, 65);
  EXPECT_THAT(result.err, AllOf(HasSubstr("emit: line 4: "),
                                HasSubstr("2 events written before it; go on with --from-line 4")));
  EXPECT_EQ(status()["events"]["total"], 2);
  EXPECT_EQ(shop_
                .run({"emit", "--jsonl", "--from-line", "5"},
                     record(1) + record(2) + "\n" + record(1) + record(3))
                .out,
            "1 event written.\n");
}

TEST_F(CliTest, migrate_prints_applies_and_takes_back) {
  shop_.run({"init"});
  const auto printed = shop_.run({"migrate", "--print"});
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.out, AllOf(StartsWith("-- 001 "), HasSubstr("CREATE TABLE")));
  EXPECT_THAT(shop_.run({"migrate", "--status"}).out, HasSubstr("no"));
  EXPECT_THAT(shop_.run({"migrate"}).out, StartsWith("applied 001 "));
  EXPECT_EQ(shop_.run({"migrate"}).out, "The tables are up to date.\n");
  EXPECT_THAT(shop_.run({"migrate", "--status"}).out, HasSubstr("yes"));
  EXPECT_THAT(shop_.run({"migrate", "--down-to", "0"}).out, HasSubstr("took back 001 "));
  EXPECT_EQ(shop_.run({"migrate", "--down-to", "0"}).out, "Nothing to take back.\n");
}

TEST_F(CliTest, migrate_down_does_not_lose_rows_unless_told_to) {
  prepare();
  emit();
  EXPECT_NE(shop_.run({"migrate", "--down-to", "0"}).code, 0);
  EXPECT_EQ(status()["events"]["total"], 1);
  EXPECT_EQ(shop_.run({"migrate", "--down-to", "0", "--even-with-rows"}).code, 0);
}

TEST_F(CliTest, R_229_the_prefix_is_honoured_by_every_command) {
  shop_.run({"init"});
  shop_.variables["POSTRIDER_PREFIX"] = "shop_";
  ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  emit();
  EXPECT_EQ(shop_.run({"relay"}).code, 0);
  EXPECT_EQ(lines("events.jsonl").size(), 1U);
  EXPECT_EQ(status()["events"]["total"], 1);
}

TEST_F(CliTest, help_shows_every_command_with_examples) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> rows = {
      {"help.txt", {"--help"}},
      {"help_init.txt", {"init", "--help"}},
      {"help_migrate.txt", {"migrate", "--help"}},
      {"help_emit.txt", {"emit", "--help"}},
      {"help_relay.txt", {"relay", "--help"}},
      {"help_status.txt", {"status", "--help"}},
      {"help_check.txt", {"check", "--help"}},
      {"help_events.txt", {"events", "--help"}},
      {"help_events_show.txt", {"events", "show", "--help"}},
      {"help_deliveries.txt", {"deliveries", "--help"}},
      {"help_deliveries_show.txt", {"deliveries", "show", "--help"}},
      {"help_doctor.txt", {"doctor", "--help"}},
      {"help_config.txt", {"config", "--help"}},
      {"help_config_check.txt", {"config", "check", "--help"}},
      {"help_config_show.txt", {"config", "show", "--help"}},
      {"help_dead.txt", {"dead", "--help"}},
      {"help_dead_list.txt", {"dead", "list", "--help"}},
      {"help_dead_retry.txt", {"dead", "retry", "--help"}},
      {"help_route.txt", {"route", "--help"}},
      {"help_job.txt", {"job", "--help"}},
      {"help_job_enqueue.txt", {"job", "enqueue", "--help"}},
      {"help_job_list.txt", {"job", "list", "--help"}},
      {"help_job_show.txt", {"job", "show", "--help"}},
      {"help_job_cancel.txt", {"job", "cancel", "--help"}},
      {"help_job_reschedule.txt", {"job", "reschedule", "--help"}},
      {"help_queue.txt", {"queue", "--help"}},
      {"help_queue_list.txt", {"queue", "list", "--help"}},
      {"help_queue_limit.txt", {"queue", "limit", "--help"}},
      {"help_schedule.txt", {"schedule", "--help"}},
      {"help_schedule_list.txt", {"schedule", "list", "--help"}},
      {"help_schedule_run.txt", {"schedule", "run", "--help"}},
      {"help_worker.txt", {"worker", "--help"}},
      {"help_worker_list.txt", {"worker", "list", "--help"}},
      {"help_attempt.txt", {"attempt", "--help"}},
      {"help_attempt_progress.txt", {"attempt", "progress", "--help"}},
      {"help_purge.txt", {"purge", "--help"}},
  };
  for (const auto& [name, words] : rows) {
    const auto result = shop_.run(words);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("  postrider "));
    expect_golden(name, result.out);
  }
}

TEST_F(CliTest, version_names_the_client_libraries) {
  EXPECT_THAT(shop_.run({"version"}).out, AllOf(StartsWith("postrider "), HasSubstr("SQLite 3.")));
  EXPECT_EQ(shop_.run({"--version"}).out, shop_.run({"version"}).out);
  EXPECT_TRUE(Json::parse(shop_.run({"version", "--format", "json"}).out).contains("SQLite"));
}

TEST_F(CliTest, nothing_is_coloured_where_there_is_no_terminal) {
  prepare();
  shop_.variables["TERM"] = "xterm";
  EXPECT_THAT(shop_.run({"status"}).out, Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, completion_offers_commands_and_options) {
  shop_.write("completion.bash", shop_.run({"completion", "bash"}).out);
  shop_.write(
      "ask.bash",
      "source completion.bash\n"
      "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _postrider; "
      "echo \"${COMPREPLY[*]}\"; }\n"
      "ask postrider sta; ask postrider dead re; ask postrider relay --lo; ask postrider job ca\n");
  const auto result = shop_.run_program({"bash", "ask.bash"});
  EXPECT_EQ(result.out, "status\nretry\n--loop --log-level --log-format\ncancel\n") << result.err;
}

}  // namespace
}  // namespace postrider::testing
