// Writers without our library: psql, several at once, beside a relay.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "process/patience.hpp"
#include "process/relay_line.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

constexpr int aggregates = 3;

/// psql, as an application without a driver.
std::unique_ptr<Running> start_psql(RelayLine& line, const std::string& script) {
  return line.shop().start_program({"psql", "--no-psqlrc", "--quiet", "--tuples-only", "--dbname",
                                    line.database().conninfo(), "--set", "ON_ERROR_STOP=1"},
                                   script);
}

void expect_done(Running& psql) {
  const auto finished = psql.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
}

std::string insert(const std::string& seq, int aggregate, const std::string& payload) {
  return "INSERT INTO outbox_events (seq, aggregate_type, aggregate_id, type, payload) VALUES (" +
         seq + ", 'order', '" + std::to_string(aggregate) + "', 'order.changed', '" + payload +
         "') RETURNING seq \\gset\n";
}

/// Writes one event of an aggregate in one of the ways that people think of, and then, as long as
/// its transaction is open, the next line of that aggregate's ledger. Two of one aggregate at once
/// could not do so: they would want the same number.
std::string transaction_of(int writer, int number) {
  const int aggregate = (writer + number) % aggregates;
  const auto payload = std::to_string(writer) + "-" + std::to_string(number);
  const std::string highest = "(SELECT coalesce(max(seq), 0) + 1 FROM outbox_events)";
  std::string script = "BEGIN;\n";
  switch (number % 4) {
    case 0:
      script += insert("DEFAULT", aggregate, payload);
      break;
    case 1:
      script += insert(highest, aggregate, payload);
      break;
    case 2:
      script += insert("1", aggregate, payload);
      break;
    default:
      script += "SAVEPOINT s;\n" + insert("DEFAULT", aggregate, payload) + "ROLLBACK TO s;\n" +
                insert(highest, aggregate, payload);
  }
  return script + "INSERT INTO ledger SELECT " + std::to_string(aggregate) +
         ", coalesce(max(number), 0) + 1, :seq FROM ledger WHERE aggregate = " +
         std::to_string(aggregate) + ";\n" + (number % 10 == 9 ? "ROLLBACK;\n" : "COMMIT;\n");
}

std::string script_of(int writer, int transactions) {
  std::string script;
  for (int number = 0; number < transactions; ++number)
    script += transaction_of(writer, number);
  return script;
}

TEST(RawWriters, F31_several_at_once_commit_in_the_order_of_their_numbers_or_fail) {
  if (lacks_servers()) return;
  RelayLine line("raw-writers");
  line.sql(
      "CREATE TABLE ledger (aggregate integer, number integer, seq bigint, "
      "PRIMARY KEY (aggregate, number))");
  const auto relay = line.start_relay();
  constexpr int writers = 6;
  constexpr int transactions = 60;
  std::vector<std::unique_ptr<Running>> running;
  for (int writer = 0; writer < writers; ++writer)
    running.push_back(start_psql(line, script_of(writer, transactions)));
  for (const auto& psql : running)
    expect_done(*psql);

  auto run = line.run();
  run.events = writers * transactions * 9 / 10;
  EXPECT_EQ(line.count("outbox_events"), run.events);
  EXPECT_EQ(line.count("(SELECT seq <= lag(seq) OVER (PARTITION BY aggregate ORDER BY number) "
                       "AS back FROM ledger) AS l WHERE back"),
            0);
  EXPECT_TRUE(all_arrive(run)) << relay->err();
  expect_sound(run, line.arrived());
  expect_clean_stop(*relay);
}

TEST(RawWriters, F31_of_two_that_insist_on_one_number_one_is_refused) {
  if (lacks_servers()) return;
  RelayLine line("insisting-writers");
  const auto first = line.database().open_session();
  first->run("BEGIN");
  first->run("SET LOCAL postrider.import = on");
  first->run("INSERT INTO outbox_events (seq, type, payload) VALUES (7, 'order.changed', 'first')");
  const auto second = start_psql(
      line,
      "BEGIN;\nSET LOCAL postrider.import = on;\n"
      "INSERT INTO outbox_events (seq, type, payload) VALUES (7, 'order.changed', 'second');\n"
      "COMMIT;\n");
  EXPECT_TRUE(comes_true([&] {
    return line.count(
               "pg_stat_activity WHERE application_name = 'psql' "
               "AND wait_event_type = 'Lock'") == 1;
  }));
  first->run("COMMIT");
  const auto finished = second->finish();
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err, HasSubstr("duplicate key"));
  EXPECT_EQ(line.sql("SELECT string_agg(payload, ',') FROM outbox_events"), "first");
}

TEST(RawWriters,
     F35_an_event_that_was_visible_is_there_after_a_crash_although_its_writer_did_not_care) {
  if (lacks_servers()) return;
  PostgresServer server({"wal_writer_delay=10s", "autovacuum=off"});
  RelayLine line("asynchronous-writer", on_server(server));
  line.sql("CREATE TABLE notes (text text)");
  const std::string careless = "SET synchronous_commit = off;\n";
  expect_done(*start_psql(
      line, careless + "INSERT INTO outbox_events (aggregate_type, aggregate_id, "
                       "type, payload) VALUES ('order', '1', 'order.changed', '1');\n"));
  expect_done(*start_psql(line, careless + "INSERT INTO notes VALUES ('1');\n"));
  EXPECT_EQ(line.count("outbox_events"), 1);
  EXPECT_EQ(line.count("notes"), 1);
  server.stop_immediate();
  server.start();
  EXPECT_EQ(line.count("notes"), 0) << "nothing was in danger, so this run has proved nothing";
  EXPECT_EQ(line.count("outbox_events"), 1);
  EXPECT_EQ(line.shop().run({"relay", "--drain"}).code, 0);
  EXPECT_EQ(line.arrived().size(), 1U);
}

}  // namespace
}  // namespace postrider::testing
