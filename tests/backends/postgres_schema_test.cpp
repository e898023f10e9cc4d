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

TEST(PostgresSchema, Every_statement_fits_the_schema) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresDatabase database;
  const auto session = database.open_session();
  for (const auto& statement : sql::store_postgres::statements) {
    std::string text(statement.text);
    for (const auto* placeholder : {"{schema}", "{prefix}"}) {
      for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
        text.erase(at, 8);
      }
    }
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

}  // namespace
}  // namespace postrider::testing
