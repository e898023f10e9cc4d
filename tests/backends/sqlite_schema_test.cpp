// The schema of SQLite: what its constraints and triggers refuse, how migrations come and go, and
// that every statement fits it.

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "backends/sqlite_database.hpp"
#include "conformance/store_builders.hpp"
#include "store/common/sql_names.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace statements = sql::store_sqlite;

std::string fill_names(std::string_view sql) {
  return store::substitute_names(sql, {});
}

// An event and a delivery row, in SQL that a case changes one value of.
constexpr auto one_event =
    "INSERT INTO outbox_events (aggregate_type, aggregate_id, aggregate_version, type, payload) "
    "VALUES ('order', '1', 1, 'order.placed', '{}')";
constexpr auto one_dead_letter = R"(
INSERT INTO outbox_deliveries (id, event_seq, event_id, route, ordering_key, status, attempts,
  retry_delays, available_at, finished_at)
SELECT '00000000-0000-7000-8000-000000000001', seq, id, 'out', 'order/1', 'failed', 1, '[]',
  '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z'
FROM outbox_events)";

struct Refusal {
  std::string sql;
  int code;
  std::string words;
};

void expect_refused(RawConnection& raw, const std::vector<Refusal>& refusals) {
  for (const auto& refusal : refusals) {
    EXPECT_EQ(raw.run(refusal.sql), refusal.code) << refusal.sql << ": " << raw.last_message();
    EXPECT_THAT(raw.last_message(), HasSubstr(refusal.words)) << refusal.sql;
  }
}

TEST(SqliteEvents, No_column_but_routed_at_ever_changes_and_that_once) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must(one_event);
  const auto immutable = [](const std::string& change) {
    return Refusal{"UPDATE outbox_events SET " + change, SQLITE_CONSTRAINT_TRIGGER,
                   "events are immutable"};
  };
  expect_refused(
      raw,
      {immutable("seq = 9"), immutable("rowid = 9"), immutable("oid = 9"),
       immutable("id = '00000000-0000-7000-8000-000000000001'"),
       immutable("aggregate_type = 'x', aggregate_id = 'x'"), immutable("aggregate_version = 9"),
       immutable("type = 'x'"), immutable("payload = 'x'"), immutable("payload_bytes = x'00'"),
       immutable("content_type = 'x'"), immutable("headers = '{}'"),
       immutable("available_at = NULL"), immutable("created_at = '2026-01-01T00:00:00.000000Z'")});

  raw.must("UPDATE outbox_events SET routed_at = '2026-01-01T00:00:00.000000Z'");

  expect_refused(
      raw, {immutable("routed_at = '2026-01-02T00:00:00.000000Z'"), immutable("routed_at = NULL")});
  EXPECT_EQ(raw.value("SELECT payload FROM outbox_events"), "{}");
}

TEST(SqliteEvents, Constraints_keep_out_what_could_go_nowhere) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must(one_event);
  const auto insert = [](const std::string& columns, const std::string& values,
                         const std::string& rule, int code = SQLITE_CONSTRAINT_CHECK) {
    return Refusal{"INSERT INTO outbox_events (" + columns + ") VALUES (" + values + ")", code,
                   rule};
  };
  const std::string long_name = "'" + std::string(256, 'x') + "'";
  expect_refused(
      raw,
      {insert("type", "''", "type_has_1_to_255_bytes"),
       insert("type", long_name, "type_has_1_to_255_bytes"),
       insert("type", "'a' || char(10)", "type_has_no_control_characters"),
       insert("type", "'a' || char(127)", "type_has_no_control_characters"),
       insert("type", "'a' || char(0) || 'b'", "type_has_no_control_characters"),
       insert("type", "NULL", "NOT NULL", SQLITE_CONSTRAINT_NOTNULL),
       insert("type, content_type", "'t', ''", "content_type_has_1_to_255_bytes"),
       insert("type, content_type", "'t', 'a' || char(13)", "content_type_has_no_control"),
       insert("type, aggregate_type", "'t', 'order'", "aggregate_has_type_and_id_or_neither"),
       insert("type, aggregate_id", "'t', '1'", "aggregate_has_type_and_id_or_neither"),
       insert("type, aggregate_type, aggregate_id", "'t', '', '1'", "aggregate_type_has_1_to_255"),
       insert("type, aggregate_type, aggregate_id", "'t', 'o', " + long_name,
              "aggregate_id_has_1_to_255"),
       insert("type, aggregate_type, aggregate_id", "'t', 'o' || char(9), '1'",
              "aggregate_type_has_no_control"),
       insert("type, aggregate_type, aggregate_id", "'t', 'o', char(10)",
              "aggregate_id_has_no_control"),
       insert("type, aggregate_version", "'t', 1", "aggregate_version_needs_an_aggregate"),
       insert("type, payload, payload_bytes", "'t', 'a', x'00'", "payload_stands_in_one_column"),
       insert("type, payload", "'t', 5", "payload_is_text_or_blob"),
       insert("type, payload", "'t', zeroblob(67108865)", "payload_has_at_most_64_mib"),
       insert("type, payload_bytes", "'t', zeroblob(67108865)", "payload_bytes_has_at_most"),
       insert("type, headers", "'t', '[]'", "headers_are_a_json_object"),
       insert("type, headers", "'t', '{'", "headers_are_a_json_object"),
       insert("type, available_at", "'t', 'tomorrow'", "available_at_is_a_time"),
       insert("type, created_at", "'t', '2026-01-01 00:00:00'", "created_at_is_utc"),
       insert("type, routed_at", "'t', '2026-01-01'", "routed_at_is_utc"),
       insert("type, id", "'t', 'x'", "id_is_a_lower_case_uuid"),
       insert("type, id", "'t', '0190ABCD-0000-7000-8000-000000000001'", "id_is_a_lower_case"),
       insert("type, id", "'t', '00000000-0000-7000-8000-00000000000-'", "id_is_a_lower_case"),
       insert("type, seq", "'t', -1", "seq_is_positive"),
       insert("type, seq", "'t', 1", "seq has to ascend", SQLITE_CONSTRAINT_TRIGGER),
       {one_event, SQLITE_CONSTRAINT_UNIQUE, "aggregate_version"}});
  EXPECT_EQ(raw.value("SELECT count(*) FROM outbox_events"), "1");
}

TEST(SqliteEvents, A_number_is_not_given_out_again_after_its_row_was_deleted) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must(one_event);
  raw.must("DELETE FROM outbox_events");
  raw.must("INSERT INTO outbox_events (type) VALUES ('t')");
  EXPECT_EQ(raw.value("SELECT seq FROM outbox_events"), "2");
}

TEST(SqliteDeliveries, Constraints_keep_out_impossible_rows) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("PRAGMA foreign_keys = ON");
  raw.must(one_event);
  raw.must(one_dead_letter);
  const auto set = [](const std::string& change, const std::string& rule) {
    return Refusal{"UPDATE outbox_deliveries SET " + change, SQLITE_CONSTRAINT_CHECK, rule};
  };
  expect_refused(
      raw,
      {set("finished_at = NULL", "finished_at_is_set_exactly_when_final"),
       set("attempts = 2", "attempts_fit_the_delays"),
       set("attempts = -1", "attempts_fit_the_delays"),
       set("route = ''", "route_is_empty_exactly_while_held"),
       set("retry_delays = '{}'", "retry_delays_are_a_json_array"),
       set("timeout_ms = -1", "timeout_is_not_negative"),
       set("on_failed = 'wait'", "on_failed_is_known"), set("ambiguous = 2", "ambiguous_is_0_or_1"),
       set("generation = 0", "generation_is_positive"), set("current = 2", "current_is_0_or_1"),
       set("id = 'x'", "id_is_a_lower_case_uuid"),
       set("dispatch_id = 'x'", "dispatch_id_is_a_lower_case_uuid"),
       set("status = 'discarded', current = 0", "only_failed_rows_become_history")});
  const std::string copy =
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, route, status, available_at, ";
  const std::string from = " FROM outbox_deliveries";
  const std::string values =
      "SELECT '00000000-0000-7000-8000-000000000002', event_seq, event_id, 'in', ";
  expect_refused(
      raw, {{copy + "finished_at) " + values + "'unknown', available_at, NULL" + from,
             SQLITE_CONSTRAINT_CHECK, "status_is_known"},
            {copy + "finished_at) " + values + "'pending', available_at, available_at" + from,
             SQLITE_CONSTRAINT_CHECK, "finished_at_is_set_exactly_when_final"},
            {copy + "dispatched_at) " + values + "'dispatched', available_at, available_at" + from,
             SQLITE_CONSTRAINT_CHECK, "dispatched_rows_have_a_dispatch_and_a_deadline"},
            {copy + "dispatched_at) " + values + "'pending', available_at, available_at" + from,
             SQLITE_CONSTRAINT_CHECK, "pending_rows_have_no_deadline"},
            {copy + "generation) " +
                 "SELECT '00000000-0000-7000-8000-000000000002', event_seq, event_id, route, "
                 "'pending', available_at, 2" +
                 from,
             SQLITE_CONSTRAINT_UNIQUE, "outbox_deliveries.route"},
            {copy + "generation) " +
                 "SELECT '00000000-0000-7000-8000-000000000002', 99, event_id, 'in', 'pending', "
                 "available_at, 1" +
                 from,
             SQLITE_CONSTRAINT_FOREIGNKEY, "FOREIGN KEY"},
            {"DELETE FROM outbox_events", SQLITE_CONSTRAINT_FOREIGNKEY, "FOREIGN KEY"}});
}

TEST(SqliteDeliveries, A_final_row_is_never_open_again) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must(one_event);
  raw.must(one_dead_letter);
  const auto to = [](const std::string& status) {
    return Refusal{"UPDATE outbox_deliveries SET finished_at = NULL, status = '" + status + "'",
                   SQLITE_CONSTRAINT_TRIGGER, "a final delivery does not change"};
  };
  expect_refused(raw, {to("pending"), to("held"), to("dispatched"), to("completed")});

  raw.must("UPDATE outbox_deliveries SET status = 'discarded'");

  expect_refused(raw, {to("pending"), to("failed"), to("completed"), to("cancelled")});
}

/// Runs one of a purge's deletes for event 1.
int delete_first_event(RawConnection& raw, std::string_view statement, const char* before) {
  sqlite3_stmt* prepared = nullptr;
  const auto sql = fill_names(statement);
  EXPECT_EQ(sqlite3_prepare_v2(raw.handle(), sql.c_str(), -1, &prepared, nullptr), SQLITE_OK);
  sqlite3_bind_int64(prepared, sqlite3_bind_parameter_index(prepared, ":after"), 0);
  sqlite3_bind_int64(prepared, sqlite3_bind_parameter_index(prepared, ":last"), 1);
  sqlite3_bind_text(prepared, sqlite3_bind_parameter_index(prepared, ":before"), before, -1,
                    SQLITE_STATIC);
  EXPECT_EQ(sqlite3_step(prepared), SQLITE_DONE);
  sqlite3_finalize(prepared);
  return sqlite3_changes(raw.handle());
}

TEST(SqliteDeliveries, The_deletes_of_a_purge_look_again_at_what_they_delete) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const auto* early = "2026-01-01T00:00:00.000000Z";
  const auto* late = "2026-01-03T00:00:00.000000Z";
  raw.must(one_event);
  EXPECT_EQ(delete_first_event(raw, statements::events_delete, late), 0) << "not routed";
  raw.must("UPDATE outbox_events SET routed_at = '2026-01-02T00:00:00.000000Z'");
  EXPECT_EQ(delete_first_event(raw, statements::events_delete, early), 0) << "too young";
  raw.must(one_dead_letter);
  EXPECT_EQ(delete_first_event(raw, statements::deliveries_delete, late), 0) << "dead";
  EXPECT_EQ(delete_first_event(raw, statements::events_delete, late), 0) << "has a delivery";
  raw.must(
      "UPDATE outbox_deliveries SET status = 'discarded', finished_at = "
      "'2026-01-02T00:00:00.000000Z'");
  EXPECT_EQ(delete_first_event(raw, statements::deliveries_delete, early), 0) << "too young";

  EXPECT_EQ(delete_first_event(raw, statements::deliveries_delete, late), 1);
  EXPECT_EQ(delete_first_event(raw, statements::events_delete, late), 1);
}

// Rows of 002 and 003, of which a case changes one value.
std::string key_row(const std::string& scope, const std::string& key, const std::string& event_id,
                    const std::string& hash, const std::string& created_at) {
  return "INSERT INTO outbox_keys (scope, key, event_id, content_hash, created_at) VALUES (" +
         scope + ", " + key + ", " + event_id + ", " + hash + ", " + created_at + ")";
}
std::string receipt_row(const std::string& consumer, const std::string& source,
                        const std::string& message_id, const std::string& hash,
                        const std::string& received_at) {
  return "INSERT INTO inbox_receipts (consumer, source, message_id, content_hash, received_at) "
         "VALUES (" +
         consumer + ", " + source + ", " + message_id + ", " + hash + ", " + received_at + ")";
}
const std::string sound_id = "'00000000-0000-7000-8000-000000000001'";
const std::string sound_hash = "zeroblob(32)";
const std::string sound_time = "'2026-01-01T00:00:00.000000Z'";
const std::string too_long = "'" + std::string(256, 'x') + "'";

TEST(SqliteKeys, Constraints_keep_out_keys_that_could_not_be_compared) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must(key_row("'s'", "'k'", sound_id, sound_hash, sound_time));
  const auto check = [](const std::string& sql, const std::string& rule) {
    return Refusal{sql, SQLITE_CONSTRAINT_CHECK, rule};
  };
  const auto null = [](const std::string& sql) {
    return Refusal{sql, SQLITE_CONSTRAINT_NOTNULL, "NOT NULL"};
  };
  expect_refused(
      raw,
      {check(key_row("''", "'a'", sound_id, sound_hash, sound_time), "scope_has_1_to_255_bytes"),
       check(key_row(too_long, "'a'", sound_id, sound_hash, sound_time), "scope_has_1_to_255"),
       check(key_row("'s'", "''", sound_id, sound_hash, sound_time), "key_has_1_to_255_bytes"),
       check(key_row("'s'", too_long, sound_id, sound_hash, sound_time), "key_has_1_to_255"),
       check(key_row("'s'", "'a'", "'x'", sound_hash, sound_time), "event_id_is_a_lower_case"),
       check(
           key_row("'s'", "'a'", "'0190ABCD-0000-7000-8000-000000000001'", sound_hash, sound_time),
           "event_id_is_a_lower_case"),
       check(key_row("'s'", "'a'", sound_id, "zeroblob(31)", sound_time), "content_hash_has_32"),
       check(key_row("'s'", "'a'", sound_id, "zeroblob(33)", sound_time), "content_hash_has_32"),
       check(key_row("'s'", "'a'", sound_id, sound_hash, "'2026-01-01'"), "created_at_is_utc"),
       null(key_row("NULL", "'a'", sound_id, sound_hash, sound_time)),
       null(key_row("'s'", "NULL", sound_id, sound_hash, sound_time)),
       null(key_row("'s'", "'a'", "NULL", sound_hash, sound_time)),
       null(key_row("'s'", "'a'", sound_id, "NULL", sound_time)),
       null(key_row("'s'", "'a'", sound_id, sound_hash, "NULL")),
       {key_row("'s'", "'a'", sound_id, "'text'", sound_time), SQLITE_CONSTRAINT_DATATYPE, "BLOB"},
       {key_row("'s'", "'k'", sound_id, sound_hash, sound_time), SQLITE_CONSTRAINT_PRIMARYKEY,
        "UNIQUE"}});
  raw.must(key_row("'s'", "'k2'", sound_id, sound_hash, sound_time));
  raw.must(key_row("'s2'", "'k'", sound_id, sound_hash, sound_time));
}

TEST(SqliteReceipts, Constraints_keep_out_receipts_that_could_not_be_compared) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must(receipt_row("'c'", "'s'", "'m'", sound_hash, sound_time));
  const auto check = [](const std::string& sql, const std::string& rule) {
    return Refusal{sql, SQLITE_CONSTRAINT_CHECK, rule};
  };
  const auto null = [](const std::string& sql) {
    return Refusal{sql, SQLITE_CONSTRAINT_NOTNULL, "NOT NULL"};
  };
  expect_refused(
      raw,
      {check(receipt_row("''", "'s'", "'a'", sound_hash, sound_time), "consumer_has_1_to_255"),
       check(receipt_row(too_long, "'s'", "'a'", sound_hash, sound_time), "consumer_has_1_to_255"),
       check(receipt_row("'c'", "''", "'a'", sound_hash, sound_time), "source_has_1_to_255"),
       check(receipt_row("'c'", too_long, "'a'", sound_hash, sound_time), "source_has_1_to_255"),
       check(receipt_row("'c'", "'s'", "''", sound_hash, sound_time), "message_id_has_1_to_255"),
       check(receipt_row("'c'", "'s'", too_long, sound_hash, sound_time),
             "message_id_has_1_to_255"),
       check(receipt_row("'c'", "'s'", "'a'", "zeroblob(31)", sound_time), "content_hash_has_32"),
       check(receipt_row("'c'", "'s'", "'a'", "zeroblob(33)", sound_time), "content_hash_has_32"),
       check(receipt_row("'c'", "'s'", "'a'", sound_hash, "'today'"), "received_at_is_utc"),
       null(receipt_row("NULL", "'s'", "'a'", sound_hash, sound_time)),
       null(receipt_row("'c'", "NULL", "'a'", sound_hash, sound_time)),
       null(receipt_row("'c'", "'s'", "NULL", sound_hash, sound_time)),
       null(receipt_row("'c'", "'s'", "'a'", "NULL", sound_time)),
       null(receipt_row("'c'", "'s'", "'a'", sound_hash, "NULL")),
       {receipt_row("'c'", "'s'", "'m'", sound_hash, sound_time), SQLITE_CONSTRAINT_PRIMARYKEY,
        "UNIQUE"}});
  raw.must(receipt_row("'c2'", "'s'", "'m'", sound_hash, sound_time));
  raw.must(receipt_row("'c'", "'s2'", "'m'", sound_hash, sound_time));
  raw.must(receipt_row("'c'", "'s'", "'m2'", sound_hash, sound_time));
}

TEST(SqlitePartitions, Neither_token_nor_generation_goes_back_and_there_is_one_row) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("UPDATE outbox_partitions SET token = 5, generation = 5");
  expect_refused(
      raw,
      {{"UPDATE outbox_partitions SET token = 4", SQLITE_CONSTRAINT_TRIGGER, "never go back"},
       {"UPDATE outbox_partitions SET generation = 4", SQLITE_CONSTRAINT_TRIGGER, "never go back"},
       {"UPDATE outbox_partitions SET owner = 'x'", SQLITE_CONSTRAINT_CHECK,
        "owner_and_end_of_lease"},
       {"INSERT INTO outbox_partitions (partition) VALUES (1)", SQLITE_CONSTRAINT_CHECK,
        "there_is_one_partition"}});
}

TEST(SqliteSchema, The_states_of_a_delivery_are_those_of_the_library) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const auto schema = raw.lines("SELECT sql FROM sqlite_master WHERE name = 'outbox_deliveries'");
  std::string list;
  for (const auto status : all_delivery_statuses()) {
    list += (list.empty() ? "'" : ", '") + std::string(to_string(status)) + "'";
  }
  EXPECT_THAT(schema, HasSubstr(list + ")"));
}

TEST(SqliteSchema, It_is_the_golden_one) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const auto schema = raw.lines(
      "SELECT sql || ';' || char(10) FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE "
      "'sqlite~_%' ESCAPE '~' ORDER BY type DESC, name");
  const std::string path = POSTRIDER_TEST_SOURCE_DIR "/tests/golden/sqlite_schema.txt";
  if (std::getenv("POSTRIDER_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << schema;
  std::ifstream file(path);
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(golden.str(), schema) << "set POSTRIDER_UPDATE_GOLDEN=1 to take the new one over";
}

TEST(SqliteSchema, Every_statement_can_be_prepared_on_it) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  for (const auto& statement : statements::statements) {
    const auto sql = fill_names(statement.text);
    sqlite3_stmt* prepared = nullptr;
    const char* rest = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(raw.handle(), sql.c_str(), -1, &prepared, &rest), SQLITE_OK)
        << statement.name << ": " << raw.last_message();
    EXPECT_EQ(std::string(rest), "") << statement.name << " is more than one statement";
    sqlite3_finalize(prepared);
  }
}

TEST(SqliteSchema, Statements_use_the_indexes_that_they_name) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const std::map<std::string_view, std::vector<std::string>> expected = {
      {statements::events_claim, {"outbox_events_unrouted (seq>?)", "outbox_deliveries_held"}},
      {statements::events_held, {"outbox_deliveries_held", "INTEGER PRIMARY KEY"}},
      {statements::events_set_routed, {"INTEGER PRIMARY KEY"}},
      {statements::deliveries_pending, {"COVERING INDEX outbox_deliveries_pending"}},
      {statements::deliveries_overdue, {"outbox_deliveries_dispatched"}},
      {statements::deliveries_next_deadline, {"outbox_deliveries_dispatched"}},
      {statements::deliveries_get, {"outbox_deliveries_current"}},
      {statements::deliveries_dead, {"outbox_deliveries_dead"}},
      {statements::heads_next, {"outbox_deliveries_blocking"}},
      {statements::heads_routes, {"outbox_deliveries_blocking"}},
      {statements::events_slice, {"INTEGER PRIMARY KEY (rowid>?)"}},
      {statements::events_purgeable,
       {"INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "(event_seq=?)"}},
      {statements::events_delete, {"INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "(event_seq=?)"}},
      {statements::keys_purgeable, {"COVERING INDEX outbox_keys_age"}},
      {statements::keys_purge, {"outbox_keys_age"}},
      {statements::inbox_purgeable, {"COVERING INDEX inbox_receipts_age"}},
      {statements::inbox_purge, {"inbox_receipts_age"}},
      {statements::events_count, {"outbox_events_unrouted"}},
      {statements::events_find, {"(id=?)"}},
      {statements::events_bound, {"INTEGER PRIMARY KEY (rowid<?)"}},
      {statements::events_list, {"INTEGER PRIMARY KEY (rowid>? AND rowid<?)"}},
      {statements::events_list_held, {"outbox_deliveries_held", "INTEGER PRIMARY KEY"}},
      {statements::events_show, {"(id=?)"}},
      {statements::deliveries_find, {"(id=?)"}},
      {statements::deliveries_bound, {"(event_seq=?)", "(event_seq<?)"}},
      {statements::deliveries_list, {"(event_seq>? AND event_seq<?)", "INTEGER PRIMARY KEY"}},
      {statements::jobs_bound, {"(id<?)"}},
      {statements::jobs_list, {"(id>? AND id<?)", "INTEGER PRIMARY KEY"}},
      {statements::jobs_show, {"(id=?)"}},
      {statements::jobs_find_unique, {"outbox_jobs_unique (job=? AND unique_key=?)"}},
      {statements::deliveries_list_status,
       {"outbox_deliveries_pending", "outbox_jobs_take", "outbox_jobs_hand_out",
        "outbox_deliveries_dispatched", "outbox_deliveries_held", "outbox_deliveries_dead"}},
      {statements::deliveries_supersede,
       {"(id=?)", "outbox_jobs_unique (job=? AND unique_key=?)"}}};
  for (const auto& [statement, parts] : expected) {
    std::string plan;
    const auto add = [](void* to, int, char** values, char**) {
      static_cast<std::string*>(to)->append(values[3]).append("\n");
      return 0;
    };
    const auto explain = "EXPLAIN QUERY PLAN " + fill_names(statement);
    ASSERT_EQ(sqlite3_exec(raw.handle(), explain.c_str(), add, &plan, nullptr), SQLITE_OK);
    for (const auto& part : parts)
      EXPECT_THAT(plan, HasSubstr(part)) << statement;
    // The names of a few routes may be sorted, and what people list by status; rows that a relay
    // reads may not.
    if (statement != statements::heads_routes && statement != statements::deliveries_list_status) {
      EXPECT_THAT(plan, Not(HasSubstr("TEMP B-TREE"))) << statement;
    }
  }
}

std::vector<int> numbers_of_all_steps() {
  std::vector<int> numbers;
  for (const auto& step : statements::migrations)
    numbers.push_back(step.number);
  return numbers;
}

TEST(SqliteMigrator, A_file_is_created_only_when_asked_for) {
  SqliteDatabase database({}, false);
  const auto refused = make_sqlite_migrator(database.options())->up({}, soon());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  EXPECT_THAT(refused.error().message, HasSubstr("postrider migrate"));
  EXPECT_FALSE(std::filesystem::exists(database.path()));

  EXPECT_FALSE(value_of(make_sqlite_migrator(database.options(true))->steps(soon())).at(0).applied);
  EXPECT_FALSE(std::filesystem::exists(database.path()));

  EXPECT_EQ(value_of(make_sqlite_migrator(database.options(true))->up({}, soon())),
            numbers_of_all_steps());
  EXPECT_THAT(value_of(make_sqlite_migrator(database.options())->up({}, soon())), IsEmpty());
}

TEST(SqliteMigrator, Steps_show_the_sql_that_runs_with_its_names) {
  SqliteDatabase database({"", "shop_"});
  const auto steps = value_of(make_sqlite_migrator(database.options())->steps(soon()));
  for (const auto& step : steps) {
    EXPECT_TRUE(step.applied);
    EXPECT_THAT(step.up + step.down, HasSubstr("shop_"));
    EXPECT_THAT(step.up + step.down, Not(HasSubstr("{prefix}")));
  }
}

TEST(SqliteMigrator, Two_prefixes_live_in_one_file) {
  SqliteDatabase database;
  auto other = database.options();
  other.names.prefix = "shop_";
  EXPECT_EQ(value_of(make_sqlite_migrator(other)->up({}, soon())), numbers_of_all_steps());

  value_of(make_sqlite_store(other)->add(std::vector{lone_event()}, soon()));

  RawConnection raw(database.path());
  EXPECT_EQ(raw.value("SELECT count(*) FROM outbox_events"), "0");
  EXPECT_EQ(raw.value("SELECT count(*) FROM shop_outbox_events"), "1");
}

TEST(SqliteMigrator, Down_with_settled_rows_leaves_the_applications_tables_alone) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1)");
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_delivery(*store, relay, order_event("1"), dead());
  const auto migrator = make_sqlite_migrator(database.options());

  auto taken = value_of(migrator->down(0, false, soon()));

  std::reverse(taken.begin(), taken.end());
  EXPECT_EQ(taken, numbers_of_all_steps());
  EXPECT_EQ(raw.lines("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"),
            "orders\n");
  EXPECT_EQ(value_of(migrator->up({}, soon())), numbers_of_all_steps());
  EXPECT_EQ(raw.value("SELECT count(*) FROM orders"), "1");
}

TEST(SqliteMigrator, Down_refuses_to_lose_what_has_not_left) {
  SqliteDatabase database;
  const auto store = database.store();
  const auto migrator = make_sqlite_migrator(database.options());
  value_of(store->add(std::vector{order_event("1")}, soon()));

  const auto refused = migrator->down(0, false, soon());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("1 events have not left"));

  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  const auto batch = relay.claim();
  relay.settle(
      routing(relay.settle_request(), batch.events.at(0), {delivery_of(batch.events.at(0))}));
  const auto still = migrator->down(0, false, soon());
  ASSERT_FALSE(still.ok());
  EXPECT_THAT(still.error().message, HasSubstr("1 deliveries are open"));

  EXPECT_FALSE(value_of(migrator->down(0, true, soon())).empty());
}

TEST(SqliteMigrator, A_step_that_fails_leaves_nothing_behind_and_runs_again) {
  SqliteDatabase database({}, false);
  RawConnection raw(database.path());
  raw.must("CREATE TABLE outbox_routes (x)");
  const auto migrator = make_sqlite_migrator(database.options());
  const auto failed = migrator->up({}, soon());
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("migration 1 up"));
  EXPECT_EQ(raw.lines("SELECT name FROM sqlite_master WHERE type = 'table'"), "outbox_routes\n");

  raw.must("DROP TABLE outbox_routes");

  EXPECT_EQ(value_of(migrator->up({}, soon())), numbers_of_all_steps());
}

TEST(SqliteMigrator, Two_runners_at_once_apply_each_step_once) {
  SqliteDatabase database({}, false);
  std::vector<int> first;
  std::vector<int> second;
  const auto run = [&](std::vector<int>& done) {
    done = value_of(make_sqlite_migrator(database.options(true))->up({}, soon()));
  };
  std::thread other([&] { run(first); });
  run(second);
  other.join();
  first.insert(first.end(), second.begin(), second.end());
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, numbers_of_all_steps());
}

TEST(SqliteMigrator, Targets_that_do_not_exist_and_utf16_files_are_refused) {
  SqliteDatabase database({}, false);
  const auto migrator = make_sqlite_migrator(database.options(true));
  EXPECT_EQ(migrator->up(999, soon()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(migrator->down(-1, true, soon()).error().code, ErrorCode::invalid_argument);
  RawConnection raw(database.path());
  raw.must("PRAGMA encoding = 'UTF-16'; CREATE TABLE orders (id)");
  EXPECT_EQ(migrator->up({}, soon()).error().code, ErrorCode::unsupported);
}

TEST(SqliteCheckSchema, It_tells_absent_older_newer_and_renamed_schemas_apart) {
  SqliteDatabase database({}, false);
  const auto check = [&] { return database.store()->check_schema(soon()); };
  EXPECT_EQ(check().error().code, ErrorCode::not_found);

  RawConnection raw(database.path());
  raw.must("CREATE TABLE orders (id)");
  const auto absent = check();
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::schema_mismatch);
  EXPECT_THAT(absent.error().message, HasSubstr("at schema 0 and this build needs"));
  EXPECT_THAT(absent.error().message, HasSubstr("`postrider migrate`"));
  EXPECT_EQ(database.store()->add(std::vector{lone_event()}, soon()).error().code,
            ErrorCode::schema_mismatch);

  const auto migrator = make_sqlite_migrator(database.options());
  value_of(migrator->up({}, soon()));
  expect_ok(check());

  raw.must("INSERT INTO postrider_schema (number, name) VALUES (999, 'create_future')");
  const auto newer = check();
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, ErrorCode::schema_mismatch);
  EXPECT_THAT(newer.error().message, HasSubstr("at schema 999 and this build knows"));
  EXPECT_THAT(newer.error().message, HasSubstr("`postrider migrate`"));
  EXPECT_EQ(migrator->up({}, soon()).error().code, ErrorCode::schema_mismatch);
  EXPECT_EQ(migrator->down(0, true, soon()).error().code, ErrorCode::schema_mismatch);

  raw.must("DELETE FROM postrider_schema WHERE number = 999");
  raw.must("UPDATE postrider_schema SET name = 'create_other' WHERE number = 1");
  EXPECT_THAT(check().error().message, HasSubstr("is called create_other"));
}

TEST(SqliteOptionsCheck, Bad_names_and_paths_are_refused_before_anything_is_opened) {
  SqliteDatabase database({}, false);
  const std::vector<SqliteOptions> all = {{database.path(), {"public", ""}, true},
                                          {database.path(), {"", "x; DROP TABLE orders"}, true},
                                          {database.path(), {"", "sqlite_"}, true},
                                          {"", {}, true},
                                          {":memory:", {}, true}};
  for (const auto& options : all) {
    EXPECT_EQ(make_sqlite_migrator(options)->up({}, soon()).error().code,
              ErrorCode::config_invalid);
    EXPECT_EQ(make_sqlite_store(options)->check_schema(soon()).error().code,
              ErrorCode::config_invalid);
  }
  EXPECT_FALSE(std::filesystem::exists(database.path()));
}

/// A job that has failed, with a value of its own in every column of its policy.
NewDelivery store_whole_dead_job(Store& store, Claimant& relay) {
  return store_delivery(store, relay, order_event("1"),
                        all_of({failed_job("order/1"), [](NewDelivery& row) {
                                  auto& policy = row.job->policy;
                                  policy.on_worker_death = OnWorkerDeath::retry;
                                  policy.max_deaths = 7;
                                  policy.priority = -9;
                                  policy.serial_key = "1";
                                  policy.serial_limit = 3;
                                  row.job->transport = JobTransport::broker;
                                }}));
}

// What a policy is, and what starts anew.
const std::string policy_of_job =
    "kind || ' ' || job || ' ' || queue || ' ' || transport || ' ' || priority || ' ' || "
    "serial_key || ' ' || serial_limit || ' ' || unique_key || ' ' || on_worker_death || ' ' || "
    "max_deaths || ' ' || timeout_limit_ms || ' ' || retry_delays || ' ' || timeout_ms || ' ' || "
    "on_failed";
const std::string counters_of_job =
    "status || ' ' || attempts || ' ' || deaths || ' ' || snoozes || ' ' || interruptions || ' ' "
    "|| generation";
const std::string whole_policy =
    "job ReserveStock shipping broker -9 1 3 order/1 retry 7 3600000 [1000,5000] 10000 skip";

TEST(SqliteSchema, A_retried_job_has_its_whole_policy_and_fresh_counters) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_whole_dead_job(*store, relay);
  raw.must(
      "UPDATE outbox_deliveries SET attempts = 2, deaths = 3, snoozes = 4, interruptions = 5, "
      "percent = 60, note = 'page 3', checkpoint = x'0102', result = 'fail x', worker = 'w'");

  const auto operations = make_sqlite_operations(database.options());
  EXPECT_EQ(value_of(operations->dead_retry({}, {"ann", "", ""}, clock.wall(), soon())).size(), 1U);

  const std::string next = " FROM outbox_deliveries WHERE generation = 2";
  EXPECT_EQ(raw.value("SELECT " + policy_of_job + next), whole_policy);
  EXPECT_EQ(raw.value("SELECT " + counters_of_job + next), "pending 0 0 0 0 2");
  EXPECT_EQ(raw.value("SELECT coalesce(percent, note, result, worker, dispatch_id) IS NULL" + next),
            "1");
  EXPECT_EQ(raw.value("SELECT hex(checkpoint)" + next), "0102");
}

TEST(SqliteMigrator, Taking_jobs_away_again_removes_their_rows_and_keeps_the_others) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const auto schema = [&] {
    return raw.lines("SELECT sql FROM sqlite_master WHERE type <> 'table' ORDER BY name");
  };
  const auto before = schema();
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_whole_dead_job(*store, relay);
  store_delivery(*store, relay, order_event("2"), job());
  store_delivery(*store, relay, order_event("3"), dead());
  const auto migrator = make_sqlite_migrator(database.options());

  const auto taken = value_of(migrator->down(3, true, soon()));
  EXPECT_FALSE(taken.empty());
  EXPECT_EQ(raw.lines("SELECT route FROM outbox_deliveries"), "out\n");
  EXPECT_EQ(value_of(migrator->up({}, soon())).size(), taken.size());

  EXPECT_EQ(raw.lines("SELECT route || ' ' || kind FROM outbox_deliveries"), "out publish\n");
  EXPECT_EQ(schema(), before);
}

TEST(SqliteMigrator, Taking_schedules_away_again_keeps_their_events) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  Schedule yearly;
  yearly.name = "yearly";
  yearly.cron = "@yearly";
  yearly.type = "tick";
  {
    const auto schedules = make_sqlite_schedule_store(database.options());
    ASSERT_TRUE(schedules->register_all({{yearly}, std::nullopt}, soon()));
    const auto state = value_of(schedules->states(std::nullopt, soon())).schedules.at(0);
    const auto slot = state.decided_until + std::chrono::seconds(1);
    FireRequest request{yearly.name, definition_hash(yearly), state.decided_until, slot, {}, {}};
    request.slots.push_back({slot, event_of(yearly, slot)});
    ASSERT_TRUE(value_of(schedules->fire(request, soon())).fired);
  }
  const auto migrator = make_sqlite_migrator(database.options());

  EXPECT_EQ(value_of(migrator->down(4, true, soon())).size(), 1U);
  EXPECT_EQ(raw.value("SELECT count(*) FROM outbox_events"), "1");
  EXPECT_EQ(raw.value("SELECT count(*) FROM sqlite_master WHERE name LIKE '%schedule%'"), "0");
  EXPECT_EQ(value_of(migrator->up({}, soon())).size(), 1U);
  EXPECT_EQ(raw.value("SELECT count(*) FROM outbox_schedules"), "0");
}

}  // namespace
}  // namespace postrider::testing
