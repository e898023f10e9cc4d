// What the tables themselves hold to, whoever writes, and how they come and go.

#include <thread>

#include "backends/mariadb_database.hpp"
#include "conformance/store_builders.hpp"
#include "golden/golden.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

std::vector<ClaimedEvent> claim_everything(const MariadbDatabase& database) {
  ClaimRequest request;
  for (int partition = 0; partition < database.options().partitions; ++partition)
    request.partitions.emplace_back(partition);
  request.limit = 1000;
  request.bytes = 1U << 20U;
  return value_of(database.open_store()->claim(request, soon())).events;
}

/// Tables, rules, keys and triggers as the server has them.
std::string schema_text(MariadbSession& session) {
  std::string text;
  const auto add = [&](const std::string& title, const std::string& sql) {
    text += title + "\n";
    for (const auto& row : session.rows(sql))
      text += "  " + row + "\n";
  };
  add("columns",
      "SELECT concat(table_name, '.', column_name), column_type, coalesce(collation_name, ''), "
      "IF(is_nullable = 'NO', 'not null', ''), coalesce(column_default, ''), "
      "coalesce(generation_expression, '') FROM information_schema.columns "
      "WHERE table_schema = database() ORDER BY table_name, ordinal_position");
  add("rules",
      "SELECT table_name, constraint_name, check_clause FROM information_schema.check_constraints "
      "WHERE constraint_schema = database() ORDER BY table_name, constraint_name");
  add("keys",
      "SELECT table_name, index_name, IF(non_unique, '', 'unique'), "
      "group_concat(column_name ORDER BY seq_in_index) FROM information_schema.statistics "
      "WHERE table_schema = database() GROUP BY table_name, index_name, non_unique "
      "ORDER BY table_name, index_name");
  add("triggers",
      "SELECT event_object_table, trigger_name, action_timing, event_manipulation "
      "FROM information_schema.triggers WHERE trigger_schema = database() ORDER BY trigger_name");
  return text;
}

TEST(MariadbSchema, The_migrations_make_exactly_this) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  expect_golden("mariadb_schema.txt", schema_text(*database.open_session()));
}

TEST(MariadbSchema, Taken_back_they_leave_nothing) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  value_of(make_mariadb_migrator(database.options())->down(0, true, soon()));
  EXPECT_THAT(database.open_session()->rows("SHOW TABLES"), IsEmpty());
}

TEST(MariadbShell, A_raw_insert_of_four_columns_is_a_complete_event) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto run = database.server().run_shell(database.name(), R"(
INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)
VALUES ('order', '1', 'order.placed', '{"id":1}');
)");
  ASSERT_EQ(run.exit_code, 0) << run.output;

  const auto events = claim_everything(database);

  ASSERT_THAT(events, SizeIs(1));
  const auto& event = *events[0].event;
  EXPECT_EQ(events[0].malformed, "");
  EXPECT_EQ(event.seq, Seq(1));
  EXPECT_EQ(event.aggregate, (Aggregate{"order", "1"}));
  EXPECT_EQ(event.type, "order.placed");
  EXPECT_EQ(event.payload, R"({"id":1})");
  EXPECT_EQ(event.content_type, "application/json");
  EXPECT_THAT(event.headers, IsEmpty());
  EXPECT_EQ(event.available_at, std::nullopt);
  EXPECT_LT(std::chrono::abs(event.created_at - system_clock().wall()), hours(1));
}

TEST(MariadbShell, Its_default_id_is_a_uuid_of_version_7_with_the_time_in_front) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  for (int i = 0; i < 200; ++i)
    session->run("INSERT INTO outbox_events (type) VALUES ('t')");

  const auto events = claim_everything(database);

  ASSERT_THAT(events, SizeIs(200));
  for (const auto& claimed : events) {
    EXPECT_THAT(claimed.event->id.value().to_string(),
                MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                             "[0-9a-f]{12}"));
    std::int64_t ms = 0;
    for (int i = 0; i < 6; ++i)
      ms = ms << 8 | claimed.event->id.value().bytes()[static_cast<std::size_t>(i)];
    EXPECT_LT(std::chrono::abs(Timestamp(milliseconds(ms)) - claimed.event->created_at),
              std::chrono::minutes(1));
  }
}

TEST(MariadbShell, Payloads_arrive_as_the_bytes_that_were_written) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto run = database.server().run_shell(database.name(), R"(
INSERT INTO outbox_events (type, payload) VALUES ('text', 'a\\n''b" ü');
INSERT INTO outbox_events (type, payload) VALUES ('blob', x'00ff0a');
INSERT INTO outbox_events (type, payload_bytes) VALUES ('bytes', x'fe00');
INSERT INTO outbox_events (type) VALUES ('nothing');
INSERT INTO outbox_events (type, payload) VALUES ('spaces', '{ "b":1,  "a":1e2 }  ');
)");
  ASSERT_EQ(run.exit_code, 0) << run.output;

  std::vector<std::string> payloads;
  for (const auto& claimed : claim_everything(database))
    payloads.push_back(claimed.event->payload);

  EXPECT_THAT(payloads, ElementsAre("a\\n'b\" ü", std::string("\0\xff\n", 3),
                                    std::string("\xfe\0", 2), "", R"({ "b":1,  "a":1e2 }  )"));
}

TEST(MariadbShell, The_compact_view_shows_and_takes_events) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto run = database.server().run_shell(database.name(), R"(
INSERT INTO outbox (event_type, payload) VALUES ('order.created', '{}');
SELECT id, event_type, payload, sent_at IS NULL FROM outbox;
UPDATE outbox_events SET routed_at = '2026-01-01 00:00:00';
SELECT sent_at FROM outbox;
)");

  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "1\torder.created\t{}\t1\n2026-01-01 00:00:00.000000\n");
}

TEST(MariadbSchema, F53_aggregates_and_types_are_told_apart_byte_by_byte) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  for (const auto* id : {"abc", "ABC", "abc ", "äbc"}) {
    session->run(
        "INSERT INTO outbox_events (aggregate_type, aggregate_id, aggregate_version, type) VALUES "
        "('order', '" +
        std::string(id) + "', 1, 't')");
  }
  EXPECT_EQ(session->refusal("INSERT INTO outbox_events (aggregate_type, aggregate_id, "
                             "aggregate_version, type) VALUES ('order', 'abc', 1, 't')"),
            1062U);
  EXPECT_EQ(session->run("SELECT count(*) FROM outbox_aggregates"), "4");
  EXPECT_EQ(session->run("SELECT count(*) FROM outbox_events WHERE aggregate_id = 'abc'"), "1");
}

TEST(MariadbSchema, F50_a_session_that_is_not_strict_cannot_cut_an_event) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  session->run("SET sql_mode = ''");
  session->run("INSERT INTO outbox_events (type, payload) VALUES ('t', repeat('a', 70000))");
  EXPECT_EQ(session->run("SELECT octet_length(payload) FROM outbox_events"), "70000");
  EXPECT_EQ(session->refusal("INSERT INTO outbox_events (type) VALUES (repeat('a', 300))"), 4025U);
  EXPECT_EQ(
      session->refusal("INSERT INTO outbox_events (type, aggregate_type, aggregate_id) VALUES "
                       "('t', 'order', repeat('a', 300))"),
      4025U);
  EXPECT_NE(session->refusal("INSERT INTO outbox_events (type) VALUES ('a\tb')"), 0U);
  EXPECT_NE(session->refusal("INSERT INTO outbox_events (aggregate_type, type) VALUES ('o', 't')"),
            0U);
  EXPECT_NE(session->refusal("INSERT INTO outbox_events (type, headers) VALUES ('t', '[1]')"), 0U);
}

/// The server keeps expressions of a table by the character set of whoever opened it first.
TEST(MariadbSchema, Sessions_of_any_character_sets_may_write_one_after_the_other) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  const std::vector<std::string> sets = {"latin1", "gbk", "utf8mb3", "utf8mb4", "sjis"};
  for (const auto& first : sets) {
    for (const auto& second : sets) {
      session->run("FLUSH TABLES outbox_events");
      for (const auto& set : {first, second}) {
        session->run("SET NAMES " + set);
        EXPECT_EQ(session->refusal("INSERT INTO outbox_events (type, headers) VALUES ('t', '{}')"),
                  0U)
            << first << ", then " << second;
        EXPECT_EQ(session->refusal("INSERT INTO outbox_events (type) VALUES ('a\tb')"), 4025U);
      }
    }
  }
}

TEST(MariadbSchema, F55_times_are_utc_whatever_the_session_says) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  session->run("SET time_zone = '-11:00'");
  session->run("INSERT INTO outbox_events (type) VALUES ('t')");

  const auto events = claim_everything(database);

  ASSERT_THAT(events, SizeIs(1));
  EXPECT_LT(std::chrono::abs(events[0].event->created_at - system_clock().wall()), hours(1));
  EXPECT_FALSE(events[0].delay);
}

TEST(MariadbSchema, Events_and_the_audit_do_not_change) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  session->run("INSERT INTO outbox_events (type, payload) VALUES ('t', 'a')");
  EXPECT_EQ(session->refusal("UPDATE outbox_events SET payload = 'b'"), 1644U);
  EXPECT_EQ(session->refusal("UPDATE outbox_events SET payload = 'b', routed_at = now()"), 1644U);
  session->run("UPDATE outbox_events SET routed_at = '2026-01-01'");
  EXPECT_EQ(session->refusal("UPDATE outbox_events SET routed_at = '2027-01-01'"), 1644U);
  session->run(
      "INSERT INTO postrider_audit (at, who, action, object, reason) VALUES (now(), 'a', 'b', 'c', "
      "'d')");
  EXPECT_EQ(session->refusal("UPDATE postrider_audit SET who = 'eve'"), 1644U);
}

TEST(MariadbSchema, A_number_is_the_triggers_to_give) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  session->run("INSERT INTO outbox_events (seq, type) VALUES (77, 't')");
  EXPECT_EQ(session->run("SELECT seq FROM outbox_events"), "1");
  session->run("SET @postrider_import = 'on'");
  session->run("INSERT INTO outbox_events (seq, type) VALUES (50, 't')");
  EXPECT_EQ(session->run("SELECT max(seq) FROM outbox_events"), "50");
  EXPECT_EQ(session->refusal("INSERT INTO outbox_events (seq, type) VALUES (500000, 't')"), 1644U)
      << "it would be drawn later";
}

TEST(MariadbSchema, Writers_of_one_aggregate_wait_for_each_other_and_others_do_not) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto first = database.open_session();
  const auto second = database.open_session();
  const auto insert = [](const char* id) {
    return std::string(
               "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES "
               "('order', '") +
           id + "', 't')";
  };
  second->run("SET innodb_lock_wait_timeout = 1");
  first->run("START TRANSACTION");
  first->run(insert("1"));

  EXPECT_EQ(second->refusal(insert("1")), 1205U);
  EXPECT_EQ(second->refusal(insert("2")), 0U);
  second->run("SET @postrider_ordering = 'off'");
  EXPECT_EQ(second->refusal(insert("1")), 0U);
  first->run("COMMIT");
}

TEST(MariadbSchema, F45_a_writer_with_an_old_snapshot_is_not_refused_by_the_aggregates_row) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto first = database.open_session();
  const auto second = database.open_session();
  if (second->refusal("SET innodb_snapshot_isolation = ON") != 0) {
    GTEST_SKIP() << "this server has no innodb_snapshot_isolation";
  }
  const std::string insert =
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ('order', '1', 't')";
  first->run(insert);
  second->run("SET tx_isolation = 'REPEATABLE-READ'");
  second->run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  first->run(insert);

  EXPECT_EQ(second->refusal(insert), 0U);
  second->run("COMMIT");
}

TEST(MariadbMigration, One_that_was_killed_midway_is_simply_run_again) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto session = database.open_session();
  const auto migrator = make_mariadb_migrator(database.options());
  // As if it had died behind its last statement, and as if behind its first.
  session->run("DELETE FROM postrider_schema WHERE number = 4");
  EXPECT_THAT(value_of(migrator->up(std::nullopt, soon())), ElementsAre(4));
  session->run("DROP TABLE outbox_queues");
  session->run("ALTER TABLE outbox_deliveries DROP COLUMN note");
  session->run("DELETE FROM postrider_schema WHERE number = 4");
  EXPECT_THAT(value_of(migrator->up(std::nullopt, soon())), ElementsAre(4));
  EXPECT_EQ(session->run("SELECT count(*) FROM outbox_queues"), "0");
  EXPECT_EQ(session->run("SELECT count(note) FROM outbox_deliveries"), "0");
}

TEST(MariadbMigration, Two_at_once_take_turns) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  value_of(make_mariadb_migrator(database.options())->down(0, true, soon()));
  std::vector<std::thread> threads;
  std::vector<Result<std::vector<int>>> done(3, std::vector<int>());
  for (auto& result : done) {
    threads.emplace_back([&] {
      result = make_mariadb_migrator(database.options())
                   ->up(std::nullopt, Deadline::after(std::chrono::seconds(60)));
    });
  }
  for (auto& thread : threads)
    thread.join();

  std::size_t applied = 0;
  for (const auto& result : done)
    applied += value_of(result).size();
  EXPECT_EQ(applied, 4U);
  expect_ok(database.open_store()->check_schema(soon()));
}

TEST(MariadbMigration, Its_printed_text_can_be_given_to_the_shell) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto migrator = make_mariadb_migrator(database.options());
  const auto steps = value_of(migrator->steps(soon()));
  std::string down;
  std::string up;
  for (const auto& step : steps) {
    up += step.up + "\n";
    down.insert(0, step.down + "\n");
  }

  const auto removed = database.server().run_shell(database.name(), down);
  EXPECT_EQ(removed.exit_code, 0) << removed.output;
  const auto made = database.server().run_shell(database.name(), up);
  EXPECT_EQ(made.exit_code, 0) << made.output;

  EXPECT_THAT(add(*database.open_store(), {order_event("1")}), SizeIs(1));
}

}  // namespace
}  // namespace postrider::testing
