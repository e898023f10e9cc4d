// The schema of PostgreSQL: what the migrations make, and that they can be taken back.

#include <thread>

#include "backends/postgres_database.hpp"
#include "conformance/store_builders.hpp"
#include "golden/golden.hpp"
#include "store_postgres_sql.hpp"

namespace postrider::testing {

// Only the suite's builders are used here; postgres_store_test.cpp runs the suite itself.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Tables, constraints, indexes, triggers and functions as the catalog has them.
std::string schema_text(PostgresSession& session) {
  std::string text;
  const auto add = [&](const std::string& title, const std::string& sql) {
    text += title + "\n";
    for (const auto& row : session.rows(sql))
      text += "  " + row + "\n";
  };
  add("columns",
      "SELECT c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod), "
      "CASE WHEN a.attnotnull THEN 'not null' ELSE '' END, "
      "coalesce(pg_get_expr(d.adbin, d.adrelid), '') FROM pg_class AS c "
      "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 "
      "AND NOT a.attisdropped "
      "LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum "
      "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') "
      "ORDER BY c.relname, a.attnum");
  add("options",
      "SELECT relname, reloptions::text FROM pg_class WHERE relnamespace = 'public'::regnamespace "
      "AND reloptions IS NOT NULL ORDER BY relname");
  add("constraints",
      "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
      "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2");
  add("indexes",
      "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY tablename, indexname");
  add("triggers",
      "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal "
      "ORDER BY tgrelid::regclass::text, tgname");
  add("functions",
      "SELECT oid::regprocedure::text, provolatile, prosecdef FROM pg_proc "
      "WHERE pronamespace = 'public'::regnamespace ORDER BY 1");
  return text;
}

TEST(PostgresSchema, The_migrations_make_exactly_this) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  expect_golden("postgres_schema.txt", schema_text(*database.open_session()));
}

/// A statement on tables without schema and prefix.
std::string without_names(std::string_view statement) {
  std::string text(statement);
  for (const auto* placeholder : {"{schema}", "{prefix}"}) {
    for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
      text.erase(at, 8);
    }
  }
  return text;
}

TEST(PostgresSchema, Every_statement_fits_the_schema) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  for (const auto& statement : sql::store_postgres::statements) {
    const auto text = without_names(statement.text);
    if (statement.name.starts_with("session_")) continue;
    const bool preparable = text.starts_with("SELECT") || text.starts_with("INSERT") ||
                            text.starts_with("UPDATE") || text.starts_with("DELETE") ||
                            text.starts_with("WITH");
    if (!preparable) continue;
    EXPECT_EQ(session->refusal("PREPARE " + std::string(statement.name) + " AS " + text), "")
        << statement.name;
  }
}

TEST(PostgresSchema, Down_leaves_nothing_and_up_makes_it_again_with_rows_in_place) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  const auto before = schema_text(*session);
  const auto store = database.open_store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_delivery(*store, relay, order_event("1"), dead());
  store_held(*store, relay, order_event("2"));
  const auto migrator = make_postgres_migrator(database.options());

  EXPECT_FALSE(migrator->down(0, false, soon()).ok());
  EXPECT_EQ(schema_text(*session), before) << "a refused step leaves everything";
  const auto steps = value_of(migrator->steps(soon())).size();
  EXPECT_THAT(value_of(migrator->down(0, true, soon())), SizeIs(steps));
  EXPECT_EQ(session->run("SELECT count(*) FROM pg_class WHERE relnamespace = "
                         "'public'::regnamespace"),
            "0");
  EXPECT_EQ(session->run("SELECT count(*) FROM pg_proc WHERE pronamespace = "
                         "'public'::regnamespace"),
            "0");
  EXPECT_THAT(value_of(migrator->up(std::nullopt, soon())), SizeIs(steps));
  EXPECT_EQ(schema_text(*session), before);
}

TEST(PostgresSchema, Two_runners_at_once_migrate_once) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  value_of(make_postgres_migrator(database.options())->down(0, false, soon()));
  std::vector<int> mine;
  std::vector<int> others;
  std::thread other(
      [&] { others = value_of(make_postgres_migrator(database.options())->up({}, soon())); });
  mine = value_of(make_postgres_migrator(database.options())->up({}, soon()));
  other.join();

  EXPECT_EQ(mine.size() + others.size(), std::size(sql::store_postgres::migrations));
}

TEST(PostgresSchema, F27_a_migration_behind_an_open_reader_gives_up_soon) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto reader = database.open_session();
  reader->run("BEGIN");
  reader->run("SELECT count(*) FROM outbox_events");

  const auto refused = make_postgres_migrator(database.options())->down(0, true, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::busy) << describe(refused.error());
  reader->run("ROLLBACK");
  const auto steps = value_of(make_postgres_migrator(database.options())->steps(soon()));
  EXPECT_TRUE(steps.front().applied) << "the step that gave up left everything";
}

TEST(PostgresSchema, A_named_schema_is_made_and_a_database_holds_several_outboxes) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  PostgresOptions second = database.options();
  second.names = {"shop", "b_"};
  value_of(make_postgres_migrator(second)->up({}, soon()));

  add(*make_postgres_store(second), {order_event("1")});

  const auto session = database.open_session();
  EXPECT_EQ(session->run("SELECT count(*) FROM shop.b_outbox_events"), "1");
  EXPECT_EQ(session->run("SELECT count(*) FROM outbox_events"), "0");
}

TEST(PostgresSchema, Writers_need_no_search_path) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  session->run(
      "CREATE SCHEMA trap; CREATE FUNCTION trap.nextval(regclass) RETURNS bigint "
      "LANGUAGE sql AS 'SELECT 13::bigint'; SET search_path = trap");

  session->run("INSERT INTO public.outbox_events (type) VALUES ('x')");

  EXPECT_EQ(session->run("SELECT seq FROM public.outbox_events"), "1");
}

TEST(PostgresSchema, Options_that_cannot_be_are_refused_before_anything_is_connected) {
  PostgresOptions options;
  options.conninfo = "host=127.0.0.1 port=1";
  for (const int partitions : {0, -1, 1025}) {
    options.partitions = partitions;
    const auto refused = make_postgres_store(options)->check_schema(soon());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::config_invalid) << partitions;
  }
  options.partitions = 64;
  for (const SchemaNames& names : {SchemaNames{"a\"b", ""}, SchemaNames{"", "x; drop"}}) {
    options.names = names;
    const auto refused = make_postgres_store(options)->check_schema(soon());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::config_invalid);
  }
}

TEST(PostgresSchema, Another_number_of_partitions_than_the_schemas_is_a_mismatch) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  auto options = database.options();
  options.partitions = 8;

  const auto refused = make_postgres_store(options)->check_schema(soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::schema_mismatch);
  EXPECT_THAT(refused.error().message, HasSubstr("64"));
}

TEST(PostgresSchema, A_database_in_another_encoding_is_refused) {
  POSTRIDER_NEEDS_POSTGRES();
  auto& server = shared_postgres();
  PostgresSession session(server.conninfo("postgres"));
  session.run("DROP DATABASE IF EXISTS latin");
  session.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
  PostgresOptions options;
  options.conninfo = server.conninfo("latin");

  const auto refused = make_postgres_migrator(options)->up({}, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  session.run("DROP DATABASE latin");
}

// A row of 002 or 003 with one value changed, and the SQLSTATE that has to come.
struct BadRow {
  std::size_t column;
  std::string value;
  std::string sqlstate;
};

const std::string check_violation = "23514";
const std::string not_null_violation = "23502";
const std::string unique_violation = "23505";

void expect_refused(PostgresSession& session, const std::string& table,
                    const std::vector<std::string>& sound, const std::vector<BadRow>& bad_rows) {
  const auto insert = [&](const std::vector<std::string>& values) {
    std::string list;
    for (const auto& value : values)
      list += (list.empty() ? "" : ", ") + value;
    return "INSERT INTO " + table + " VALUES (" + list + ")";
  };
  EXPECT_EQ(session.refusal(insert(sound)), "");
  EXPECT_EQ(session.refusal(insert(sound)), unique_violation);
  for (const auto& bad : bad_rows) {
    auto values = sound;
    values[bad.column] = bad.value;
    EXPECT_EQ(session.refusal(insert(values)), bad.sqlstate) << insert(values);
  }
}

TEST(PostgresSchema, Keys_that_could_not_be_compared_are_refused) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  expect_refused(*session, "outbox_keys",
                 {"'s'", "'k'", "gen_random_uuid()", "sha256('x')", "now()"},
                 {{0, "''", check_violation},
                  {0, "repeat('x', 256)", check_violation},
                  {0, "NULL", not_null_violation},
                  {1, "''", check_violation},
                  {1, "repeat('x', 256)", check_violation},
                  {1, "NULL", not_null_violation},
                  {2, "NULL", not_null_violation},
                  {3, "'\\x00'", check_violation},
                  {3, "sha512('x')", check_violation},
                  {3, "NULL", not_null_violation},
                  {4, "NULL", not_null_violation},
                  {0, "'another'", ""},
                  {1, "'another'", ""}});
}

TEST(PostgresSchema, Receipts_that_could_not_be_compared_are_refused) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  expect_refused(*session, "inbox_receipts", {"'c'", "'s'", "'m'", "sha256('x')", "now()"},
                 {{0, "''", check_violation},
                  {0, "repeat('x', 256)", check_violation},
                  {0, "NULL", not_null_violation},
                  {1, "''", check_violation},
                  {1, "repeat('x', 256)", check_violation},
                  {1, "NULL", not_null_violation},
                  {2, "''", check_violation},
                  {2, "repeat('x', 256)", check_violation},
                  {2, "NULL", not_null_violation},
                  {3, "'\\x00'", check_violation},
                  {3, "sha512('x')", check_violation},
                  {3, "NULL", not_null_violation},
                  {4, "NULL", not_null_violation},
                  {0, "'another'", ""},
                  {1, "'another'", ""},
                  {2, "'another'", ""}});
}

// An index is used where it pays; on a table of a few rows the planner rightly reads all.
TEST(PostgresSchema, A_look_for_old_keys_and_receipts_reads_an_index) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  session->run(
      "INSERT INTO outbox_keys SELECT 's', n::text, gen_random_uuid(), sha256('x'), now() FROM "
      "generate_series(1, 20000) AS n");
  session->run(
      "INSERT INTO inbox_receipts SELECT 'c', 's', n::text, sha256('x'), now() FROM "
      "generate_series(1, 20000) AS n");
  session->run("ANALYZE");
  for (const auto& [table, column] :
       {std::pair("outbox_keys", "created_at"), std::pair("inbox_receipts", "received_at")}) {
    std::string plan;
    for (const auto& line : session->rows(std::string("EXPLAIN SELECT ctid FROM ") + table +
                                          " WHERE " + column + " <= now() - interval '7 days' " +
                                          "ORDER BY " + column + " LIMIT 500 FOR UPDATE")) {
      plan += line + "\n";
    }
    EXPECT_THAT(plan, HasSubstr(std::string(table) + "_age_idx")) << plan;
  }
}

// Of jobs there are always many, and no relay sends one.
TEST(PostgresSchema, A_look_for_due_deliveries_passes_no_job) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  session->run(
      "INSERT INTO outbox_events (type, routed_at) SELECT 't', now() FROM "
      "generate_series(1, 20000)");
  session->run(
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, route, status, retry_delays, "
      "timeout_ms, on_failed, available_at, kind, job, queue, transport, priority, "
      "on_worker_death, "
      "max_deaths, timeout_limit_ms) SELECT outbox_uuidv7(), seq, id, slot, 'ship', 'pending', "
      "'[]', 0, 'skip', now(), 'job', 'j', 'q', 'database', 0, 'fail', 2, 0 FROM outbox_events");
  session->run("ANALYZE");
  session->run("SET plan_cache_mode = force_generic_plan");
  session->run("PREPARE due AS " + without_names(sql::store_postgres::deliveries_due));
  session->run("PREPARE next_due AS " + without_names(sql::store_postgres::deliveries_next_due));
  const auto plan_of = [&](const std::string& call) {
    std::string plan;
    for (const auto& line : session->rows("EXPLAIN EXECUTE " + call))
      plan += line + "\n";
    return plan;
  };

  const auto due = plan_of("due (NULL, '\\xff', 8, '{out}', 100, 1000, true)");
  EXPECT_THAT(due, HasSubstr("outbox_deliveries_open_idx")) << due;
  const auto next = plan_of("next_due (NULL, '\\xff', 8, '{out}')");
  EXPECT_THAT(next, HasSubstr("outbox_deliveries_due_idx")) << next;
  EXPECT_THAT(next, HasSubstr("outbox_deliveries_timeout_idx")) << next;
}

// A plan that does not know how small a slice is joins whole tables: measured, 400,000 events were
// read for each slice.
TEST(PostgresSchema, A_slice_of_a_purge_reads_its_own_rows_only) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  session->run(
      "INSERT INTO outbox_events (type, routed_at) SELECT 't', now() FROM generate_series(1, "
      "20000)");
  session->run(
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, route, status, retry_delays, "
      "timeout_ms, on_failed, available_at, finished_at) SELECT outbox_uuidv7(), seq, id, slot, "
      "'r', "
      "'completed', '[]', 0, 'halt', now(), now() FROM outbox_events");
  session->run("ANALYZE");
  session->run("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off");
  session->run("PREPARE slice AS " + without_names(sql::store_postgres::events_purge));

  std::string plan;
  for (const auto& line : session->rows("EXPLAIN EXECUTE slice (NULL, 0, 9000, 500, NULL, NULL)")) {
    plan += line + "\n";
  }

  EXPECT_THAT(plan, HasSubstr("Index Cond: ((seq > $3) AND (seq <= ")) << plan;
  EXPECT_THAT(plan, HasSubstr("Index Cond: (event_seq = e_1.seq)")) << plan;
  for (const auto* join : {"Merge", "Hash", "Seq Scan"}) {
    EXPECT_THAT(plan, ::testing::Not(HasSubstr(join))) << plan;
  }
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
    "concat_ws(' ', kind, job, queue, transport, priority, serial_key, serial_limit, unique_key, "
    "on_worker_death, max_deaths, timeout_limit_ms, retry_delays, timeout_ms, on_failed)";
const std::string counters_of_job =
    "concat_ws(' ', status, attempts, deaths, snoozes, interruptions, generation)";
const std::string whole_policy =
    "job ReserveStock shipping broker -9 1 3 order/1 retry 7 3600000 [1000,5000] 10000 skip";

TEST(PostgresSchema, A_retried_job_has_its_whole_policy_and_fresh_counters) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  const auto store = database.open_store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_whole_dead_job(*store, relay);
  session->run(
      "UPDATE outbox_deliveries SET attempts = 2, deaths = 3, snoozes = 4, interruptions = 5, "
      "percent = 60, note = 'page 3', checkpoint = '\\x0102', result = 'fail x', worker = "
      "outbox_uuidv7()");

  const auto operations = make_postgres_operations(database.options());
  EXPECT_THAT(value_of(operations->dead_retry({}, {"ann", "", ""}, clock.wall(), soon())),
              SizeIs(1));

  const std::string next = " FROM outbox_deliveries WHERE generation = 2";
  EXPECT_EQ(session->run("SELECT " + policy_of_job + next), whole_policy);
  EXPECT_EQ(session->run("SELECT " + counters_of_job + next), "pending 0 0 0 0 2");
  EXPECT_EQ(session->run("SELECT num_nonnulls(percent, note, result, worker, dispatch_id)" + next),
            "0");
  EXPECT_EQ(session->run("SELECT checkpoint" + next), "\\x0102");
}

TEST(PostgresSchema, Taking_jobs_away_again_removes_their_rows_and_keeps_the_others) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  const auto before = schema_text(*session);
  const auto store = database.open_store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_whole_dead_job(*store, relay);
  store_delivery(*store, relay, order_event("2"), job());
  store_delivery(*store, relay, order_event("3"), dead());
  const auto migrator = make_postgres_migrator(database.options());

  const auto taken = value_of(migrator->down(3, true, soon()));
  EXPECT_FALSE(taken.empty());
  EXPECT_EQ(session->run("SELECT string_agg(route, ' ') FROM outbox_deliveries"), "out");
  EXPECT_THAT(value_of(migrator->up({}, soon())), SizeIs(taken.size()));

  EXPECT_EQ(session->run("SELECT string_agg(route || ' ' || kind, ' ') FROM outbox_deliveries"),
            "out publish");
  EXPECT_EQ(schema_text(*session), before);
}

TEST(PostgresSchema, Taking_schedules_away_again_keeps_their_events) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  Schedule yearly;
  yearly.name = "yearly";
  yearly.cron = "@yearly";
  yearly.type = "tick";
  {
    const auto schedules = make_postgres_schedule_store(database.options());
    ASSERT_TRUE(schedules->register_all({{yearly}, std::nullopt}, soon()));
    const auto state = value_of(schedules->states(std::nullopt, soon())).schedules.at(0);
    const auto slot = state.decided_until + std::chrono::seconds(1);
    FireRequest request{yearly.name, definition_hash(yearly), state.decided_until, slot, {}, {}};
    request.slots.push_back({slot, event_of(yearly, slot)});
    ASSERT_TRUE(value_of(schedules->fire(request, soon())).fired);
  }
  const auto migrator = make_postgres_migrator(database.options());

  EXPECT_EQ(value_of(migrator->down(4, true, soon())).size(), 1U);
  EXPECT_EQ(session->run("SELECT count(*) FROM outbox_events"), "1");
  EXPECT_EQ(session->run("SELECT count(*) FROM pg_class WHERE relname LIKE '%schedule%'"), "0");
  EXPECT_EQ(value_of(migrator->up({}, soon())).size(), 1U);
  EXPECT_EQ(session->run("SELECT count(*) FROM outbox_schedules"), "0");
}

}  // namespace
}  // namespace postrider::testing
