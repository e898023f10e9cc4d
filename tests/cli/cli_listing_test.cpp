// `events`, `deliveries`, `doctor` and `config` as people run them.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <filesystem>

#include "cli/program.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr auto unknown_id = "01890a5d-ac96-774b-bcce-b302099a8057";

class CliLooks : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(shop_.run({"init"}).code, 0);
    ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  }
  // Returns the event's id.
  std::string emit(const std::string& type, const std::string& aggregate,
                   const std::string& payload = "{}", const std::string& header = "k=v") {
    const auto emitted = shop_.run({"emit", "--type", type, "--aggregate", aggregate, "--payload",
                                    payload, "--header", header});
    EXPECT_EQ(emitted.code, 0) << emitted.err;
    return emitted.out.substr(0, emitted.out.find('\n'));
  }
  Json json(std::vector<std::string> words) {
    words.insert(words.end(), {"--format", "json"});
    const auto result = shop_.run(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out);
  }
  void replace(const std::string& before, const std::string& after) {
    auto text = shop_.read("postrider.toml");
    ASSERT_NE(text.find(before), std::string::npos) << before;
    text.replace(text.find(before), before.size(), after);
    shop_.write("postrider.toml", text);
  }
  // A dead letter: the destination's folder does not take it.
  std::string make_dead_letter() {
    const auto id = emit("bad.kind", "order/9");
    replace("to = \"file:events.jsonl\"", "to = \"file:events.jsonl\"\nretry_delays = []");
    shop_.run_program({"sqlite3", "app.db",
                       "INSERT INTO outbox_deliveries (id, event_seq, event_id, route, "
                       "ordering_key, status, attempts, available_at, finished_at, failure_code) "
                       "SELECT '00000000-0000-7000-8000-000000000001', seq, id, 'all', 'order/9', "
                       "'failed', 1, '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z', "
                       "'refused' FROM outbox_events; UPDATE outbox_events SET routed_at = "
                       "'2026-01-01T00:00:00.000000Z'"});
    return id;
  }

  Workshop shop_;
};

TEST_F(CliLooks, an_empty_outbox_lists_nothing) {
  EXPECT_EQ(shop_.run({"events"}).out, "No event fits.\n");
  EXPECT_EQ(shop_.run({"deliveries"}).out, "No delivery fits.\n");
  EXPECT_EQ(json({"events"}), Json::parse(R"({"events":[],"next":null})"));
  EXPECT_EQ(json({"deliveries"}), Json::parse(R"({"deliveries":[],"next":null})"));
}

TEST_F(CliLooks, events_are_listed_and_filtered_without_payload) {
  const auto first = emit("order.placed", "order/1", "c4n4ry");
  const auto second = emit("order.paid", "order/2", "c4n4ry");
  const auto table = shop_.run({"events"});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("unrouted"),
                               Not(HasSubstr("c4n4ry"))));
  const auto listed = json({"events", "--type", "order.paid"});
  ASSERT_EQ(listed["events"].size(), 1U);
  EXPECT_EQ(listed["events"][0]["id"], second);
  EXPECT_EQ(listed["events"][0]["seq"], "2");
  EXPECT_EQ(listed["events"][0]["payload_bytes"], 6);
  EXPECT_EQ(json({"events", "--aggregate", "order/1"})["events"][0]["id"], first);
  EXPECT_EQ(json({"events", "--id", first})["events"][0]["id"], first);
  EXPECT_THAT(json({"events", "--id", unknown_id})["events"], IsEmpty());
  EXPECT_THAT(json({"events", "--state", "routed"})["events"], IsEmpty());
  EXPECT_EQ(json({"events", "--since", "1h"})["events"].size(), 2U);
  EXPECT_THAT(json({"events", "--until", "1h"})["events"], IsEmpty());
}

TEST_F(CliLooks, pages_of_events_say_how_to_go_on) {
  for (const auto* order : {"order/1", "order/2", "order/3"})
    emit("order.placed", order);
  const auto first = shop_.run({"events", "--limit", "2"});
  EXPECT_EQ(first.err, "Go on with --after 2.\n");
  EXPECT_EQ(json({"events", "--limit", "2", "--after", "2"})["events"].size(), 1U);
  EXPECT_EQ(json({"events", "--limit", "2"})["next"], "2");
}

TEST_F(CliLooks, one_event_is_shown_with_names_of_headers_and_the_payload_only_when_asked_for) {
  const auto id = emit("order.placed", "order/1", "c4n4ry\x1b[2Jé", "tenant=c4n4ry");
  const auto without = shop_.run({"events", "show", id});
  EXPECT_EQ(without.code, 0);
  EXPECT_THAT(without.out, AllOf(HasSubstr("tenant"), HasSubstr("No delivery is stored yet."),
                                 Not(HasSubstr("c4n4ry"))));
  const auto with = shop_.run({"events", "show", id, "--payload"});
  EXPECT_THAT(with.out, AllOf(HasSubstr(R"(c4n4ry\u001b[2J)"), Not(HasSubstr("\x1b"))));
  EXPECT_FALSE(json({"events", "show", id}).contains("payload"));
  EXPECT_EQ(json({"events", "show", id, "--payload"})["payload"], "c4n4ry\x1b[2Jé");
}

TEST_F(CliLooks, a_payload_that_is_no_text_is_shown_as_base64) {
  shop_.write("payload.bin", std::string("a\0\xff", 3));
  const auto emitted = shop_.run({"emit", "--type", "a.b", "--payload", "@payload.bin"});
  const auto id = emitted.out.substr(0, emitted.out.find('\n'));
  EXPECT_THAT(shop_.run({"events", "show", id, "--payload"}).out, HasSubstr("YQD/"));
  EXPECT_EQ(json({"events", "show", id, "--payload"})["payload_base64"], "YQD/");
}

TEST_F(CliLooks, deliveries_are_listed_shown_and_keep_their_history) {
  const auto event = make_dead_letter();
  const auto listed = json({"deliveries", "--status", "failed"});
  ASSERT_EQ(listed["deliveries"].size(), 1U);
  const auto id = listed["deliveries"][0]["id"].get<std::string>();
  EXPECT_EQ(listed["deliveries"][0]["event_id"], event);
  EXPECT_TRUE(listed["deliveries"][0]["event_seq"].is_string());
  ASSERT_EQ(shop_.run({"dead", "retry", id, "--yes"}).code, 0);

  EXPECT_EQ(json({"deliveries", "--due"})["deliveries"].size(), 1U);
  EXPECT_THAT(json({"deliveries", "--status", "failed"})["deliveries"], IsEmpty());
  EXPECT_EQ(json({"deliveries", "--event", event, "--history"})["deliveries"].size(), 2U);
  EXPECT_EQ(json({"deliveries", "--aggregate", "order/9"})["deliveries"].size(), 1U);
  EXPECT_THAT(json({"deliveries", "--route", "other"})["deliveries"], IsEmpty());
  const auto shown = shop_.run({"deliveries", "show", id});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, AllOf(HasSubstr(id), HasSubstr("failed (history)")));
  EXPECT_THAT(shop_.run({"events", "show", event}).out,
              AllOf(HasSubstr("failed (history)"), HasSubstr("pending")));
  EXPECT_EQ(json({"events", "show", event})["deliveries"].size(), 2U);
}

TEST_F(CliLooks, what_is_not_there_or_no_id_ends_with_65) {
  const std::vector<std::vector<std::string>> rows = {{"events", "show", unknown_id},
                                                      {"events", "show", "x"},
                                                      {"events", "--id", "x"},
                                                      {"events", "--since", "soon"},
                                                      {"events", "--aggregate", "order"},
                                                      {"deliveries", "show", unknown_id},
                                                      {"deliveries", "show", "x"},
                                                      {"deliveries", "--event", "x"},
                                                      {"deliveries", "--after", "x"},
                                                      {"deliveries", "--aggregate", "order"}};
  for (const auto& words : rows) {
    const auto result = shop_.run(words);
    EXPECT_EQ(result.code, 65) << ::testing::PrintToString(words) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
  }
  for (const auto& words : std::vector<std::vector<std::string>>{{"events", "--state", "x"},
                                                                 {"events", "--limit", "0"},
                                                                 {"events", "--limit", "10001"},
                                                                 {"deliveries", "--status", "x"},
                                                                 {"deliveries", "--limit", "0"},
                                                                 {"events", "show"},
                                                                 {"doctor", "--as", "x"},
                                                                 {"config"}}) {
    EXPECT_EQ(shop_.run(words).code, 64) << ::testing::PrintToString(words);
  }
}

// Codes of the findings, and the exit code.
class CliDoctor : public CliLooks {
 protected:
  std::vector<std::string> codes(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"doctor", "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = shop_.run(words);
    exit_code_ = result.code;
    std::vector<std::string> codes;
    const auto document = Json::parse(result.out);
    for (const auto& finding : document["findings"]) {
      // Both depend on where the test runs.
      const auto code = finding["code"].get<std::string>();
      if (code != "wal_reset_bug" && code != "file_system_volatile") codes.push_back(code);
    }
    return codes;
  }

  int exit_code_ = -1;
};

TEST_F(CliDoctor, a_healthy_outbox_has_no_finding) {
  EXPECT_THAT(codes({"--deep", "--strict"}), IsEmpty());
  EXPECT_EQ(exit_code_, 0);
  emit("order.placed", "order/1");
  ASSERT_EQ(shop_.run({"relay"}).code, 0);
  EXPECT_THAT(codes({"--deep", "--strict"}), IsEmpty());
  EXPECT_EQ(exit_code_, 0);
  const auto text = shop_.run({"doctor"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("journal_mode"), HasSubstr("0 errors, 0 warnings")));
}

TEST_F(CliDoctor, an_error_ends_with_1_and_says_what_why_and_what_to_do) {
  shop_.run_program({"sqlite3", "app.db", "DROP TRIGGER outbox_events_are_immutable"});
  const auto result = shop_.run({"doctor"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("error: trigger_missing (outbox_events_are_immutable)"),
                                HasSubstr("  what: "), HasSubstr("  why:  "), HasSubstr("  do:   "),
                                HasSubstr("1 error, ")));
}

TEST_F(CliDoctor, a_warning_ends_with_1_only_when_it_is_strict) {
  ASSERT_EQ(shop_.run({"route", "pause", "all"}).code, 0);
  EXPECT_THAT(codes(), ElementsAre("route_paused"));
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(codes({"--strict"}), ElementsAre("route_paused"));
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(CliDoctor, dead_letters_and_patterns_that_match_nothing_are_found) {
  make_dead_letter();
  replace("events = [\"*\"]", "events = [\"ordre.*\"]");
  EXPECT_THAT(codes(), ElementsAre("aggregates_halted", "pattern_matches_nothing"));
}

TEST_F(CliDoctor, without_tables_the_schema_is_the_finding) {
  ASSERT_EQ(shop_.run({"migrate", "--down-to", "0"}).code, 0);
  EXPECT_THAT(codes(), ElementsAre("schema_missing"));
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(CliDoctor, what_is_wrong_with_the_routes_is_found_for_a_relay_only) {
  replace("to = \"file:events.jsonl\"", "to = \"nonsense:x\"");
  EXPECT_THAT(codes(), ElementsAre("destination_unusable"));
  EXPECT_THAT(codes({"--as", "reader"}), IsEmpty());
}

TEST_F(CliDoctor, a_database_that_cannot_be_reached_ends_as_for_every_command) {
  EXPECT_EQ(shop_.run({"doctor", "--store", "sqlite:missing/app.db"}).code, 69);
}

TEST_F(CliDoctor, files_with_secrets_that_others_may_read_are_found) {
  shop_.write("secret", "c4n4ry\n");
  std::filesystem::permissions(shop_.path("secret"), std::filesystem::perms(0644));
  replace("to = \"file:events.jsonl\"", "to = \"amqp://app:${file:secret}@localhost/\"");
  const auto open = shop_.run({"doctor"});
  EXPECT_THAT(open.out, AllOf(HasSubstr("secret_file_open (secret)"), HasSubstr("0644"),
                              Not(HasSubstr("c4n4ry"))));
  std::filesystem::permissions(shop_.path("secret"), std::filesystem::perms(0640));
  EXPECT_THAT(codes(), IsEmpty());

  replace("${file:secret}", "c4n4ry");
  std::filesystem::permissions(shop_.path("postrider.toml"), std::filesystem::perms(0604));
  const auto literal = shop_.run({"doctor"});
  EXPECT_THAT(literal.out,
              AllOf(HasSubstr("secret_file_open (postrider.toml)"), Not(HasSubstr("c4n4ry"))));
  std::filesystem::permissions(shop_.path("postrider.toml"), std::filesystem::perms(0600));
  EXPECT_THAT(codes(), IsEmpty());
}

class CliConfig : public CliLooks {
 protected:
  // Value and origin of a key.
  using Shown = std::pair<std::string, std::string>;
  Shown shown(const std::string& key, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"config", "show"};
    words.insert(words.end(), more.begin(), more.end());
    for (const auto& value : json(words)) {
      if (value["key"] == key) return {value["value"], value["origin"]};
    }
    return {"", "not shown"};
  }
};

TEST_F(CliConfig, show_tells_where_each_value_comes_from) {
  shop_.write("postrider.toml",
              "store = \"sqlite:app.db\"\n[relay]\nbatch = 10\nsleep = 2\n[[routes]]\nname = "
              "\"orders\"\nto = \"stdout:\"\nretry_delays = []\n");
  shop_.variables["POSTRIDER_RELAY_SLEEP"] = "3s";
  shop_.variables["POSTRIDER_PREFIX"] = "shop_";
  EXPECT_EQ(shown("store"), Shown("\"sqlite:app.db\"", "postrider.toml:1"));
  EXPECT_EQ(shown("relay.batch"), Shown("10", "postrider.toml:3"));
  EXPECT_EQ(shown("relay.sleep"), Shown("\"3s\"", "POSTRIDER_RELAY_SLEEP"));
  EXPECT_EQ(shown("prefix"), Shown("\"shop_\"", "POSTRIDER_PREFIX"));
  EXPECT_EQ(shown("prefix", {"--prefix", "other_"}), Shown("\"other_\"", "--prefix"));
  EXPECT_EQ(shown("relay.lease_time"), Shown("\"5s\"", "default"));
  EXPECT_EQ(shown("relay.max_passes"), Shown("", "default"));
  EXPECT_EQ(shown("routes.orders.to"), Shown("\"stdout:\"", "postrider.toml:7"));
  EXPECT_EQ(shown("routes.orders.retry_delays"), Shown("[]", "postrider.toml:8"));
  EXPECT_EQ(shown("routes.orders.events"), Shown("[\"*\"]", "default"));
  EXPECT_EQ(shown("routes.orders.amqp.exchange").second, "not shown");
  EXPECT_THAT(shop_.run({"config", "show"}).out, HasSubstr("relay.batch"));
}

TEST_F(CliConfig, show_masks_secrets_and_asks_no_database) {
  shop_.write("postrider.toml",
              "store = \"postgresql://app:c4n4ry@nowhere.invalid/app\"\n[[routes]]\nname = "
              "\"a\"\nto = \"amqp://app:${MISSING}@nowhere.invalid/\"\n[routes.amqp]\nexchange = "
              "\"shop\"\n");
  const auto text = shop_.run({"config", "show"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("postgresql://app:***@nowhere.invalid/app"),
                              Not(HasSubstr("c4n4ry"))));
  EXPECT_EQ(shown("routes.a.amqp.exchange"), Shown("\"shop\"", "postrider.toml:6"));
}

TEST_F(CliConfig, check_says_what_is_wrong_with_line_reason_and_fix) {
  EXPECT_EQ(shop_.run({"config", "check"}).out, "postrider.toml can be used: 1 route.\n");
  shop_.write("postrider.toml", "store = \"sqlite:app.db\"\n[relay]\nbacth = 5\n");
  const auto wrong = shop_.run({"config", "check"});
  EXPECT_EQ(wrong.code, 78);
  EXPECT_THAT(wrong.err,
              HasSubstr("postrider.toml:3: relay.bacth is unknown. Did you mean batch?"));
}

TEST_F(CliConfig, check_finds_what_cannot_be_opened_without_opening_it) {
  shop_.write("postrider.toml",
              "store = \"postgresql://nowhere.invalid/app\"\n[[routes]]\nname = \"a\"\nto = "
              "\"amqp://nowhere.invalid/\"\n");
  EXPECT_EQ(shop_.run({"config", "check"}).code, 0);
  shop_.write("postrider.toml", "store = \"oracle:x\"\n[[routes]]\nname = \"a\"\nto = \"ftp:x\"\n");
  const auto wrong = shop_.run({"config", "check"});
  EXPECT_EQ(wrong.code, 78);
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("store_unusable"), HasSubstr("destination_unusable")));
  shop_.write("postrider.toml", "");
  const auto empty = shop_.run({"config", "check"});
  EXPECT_EQ(empty.code, 78);
  EXPECT_THAT(empty.out, AllOf(HasSubstr("no_store"), HasSubstr("no_route")));
}

TEST_F(CliConfig, queues_that_only_workers_or_only_routes_know_are_named) {
  const std::string route =
      "store = \"sqlite:app.db\"\n[[routes]]\nname = \"a\"\njob = \"send\"\nqueue = \"mail\"\n";
  shop_.write("postrider.toml", route + "[worker]\nqueues = [\"mial:3\"]\n");
  const auto misspelt = shop_.run({"config", "check"});
  EXPECT_EQ(misspelt.code, 0) << misspelt.err;
  EXPECT_THAT(misspelt.out, AllOf(HasSubstr("worker_queue_unfed (queue mial)"),
                                  HasSubstr("route_queue_unserved (queue mail)")));
  shop_.write("postrider.toml", route + "[worker]\nqueues = [\"mail:3\"]\n");
  EXPECT_EQ(shop_.run({"config", "check"}).out, "postrider.toml can be used: 1 route.\n");
  shop_.write("postrider.toml", route);
  EXPECT_EQ(shop_.run({"config", "check"}).out, "postrider.toml can be used: 1 route.\n")
      << "workers are told their queues by --queue";
}

TEST_F(CliConfig, check_looks_the_secrets_up_that_a_relay_needs) {
  replace("to = \"file:events.jsonl\"", "to = \"amqp://app:${MISSING}@localhost/\"");
  const auto missing = shop_.run({"config", "check"});
  EXPECT_EQ(missing.code, 78);
  EXPECT_THAT(missing.err, HasSubstr("MISSING is not set"));
}

TEST_F(CliConfig, a_pattern_that_another_one_covers_is_a_note) {
  replace("events = [\"*\"]", "events = [\"order.*\", \"order.placed\"]");
  const auto result = shop_.run({"config", "check"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("note: pattern_redundant"), HasSubstr("order.placed")));
}

}  // namespace
}  // namespace postrider::testing
