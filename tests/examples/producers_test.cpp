// Producers in other languages: they insert rows, and what they wrote arrives byte for byte.
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "common/database.hpp"
#include "examples/example_service.hpp"
#if EXAMPLES_TEST_POSTGRES
#include "backends/postgres_database.hpp"
#endif

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

/// What a shell, SQL, JSON or a log could break.
const std::string odd_item = "lamp 'Größe \"2\"'; \\n $HOME `id` %s -- 日本";

std::string producer(const std::string& file) {
  return std::string(POSTRIDER_TEST_SOURCE_DIR) + "/examples/producers/" + file;
}

/// A missing tool is a failure in CI and a skip with its reason elsewhere. True: leave the test.
bool lacks(Workshop& workshop, const std::vector<std::string>& probe, const std::string& what) {
  if (workshop.run_program(probe).code == 0) return false;
  const auto why = what + " is missing: run scripts/install-deps test";
  if (std::getenv("CI") != nullptr) {
    ADD_FAILURE() << why;
  } else {
    [&] { GTEST_SKIP() << why; }();
  }
  return true;
}

/// Payloads as they came out of the relay.
std::vector<std::string> delivered(Workshop& workshop) {
  const auto relayed = workshop.run({"relay"});
  EXPECT_EQ(relayed.code, 0) << relayed.err;
  std::vector<std::string> payloads;
  std::ifstream file(workshop.path("events.jsonl"));
  for (std::string line; std::getline(file, line);) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_EQ(event["type"], "order.placed");
    EXPECT_EQ(event["aggregate_type"], "order");
    payloads.push_back(event["payload"]);
  }
  return payloads;
}

void expect_order(const std::string& payload, int id, const std::string& item, int quantity) {
  const auto json = nlohmann::json::parse(payload);
  EXPECT_EQ(json["orderId"], id);
  EXPECT_EQ(json["item"], item);
  EXPECT_EQ(json["quantity"], quantity);
  EXPECT_EQ(json["totalCents"], quantity * 100);
}

class SqliteProducers : public ::testing::Test {
 protected:
  SqliteProducers()
      : shop_(folder_, "shop", {"--database", folder_.file("shop.db")}, "listening on"),
        database_(folder_.file("shop.db")) {
    database_.run("INSERT INTO stock (item, price_cents, available) VALUES (?, 100, 1000)",
                  {odd_item});
    workshop_.write("postrider.toml", "store = \"sqlite:" + folder_.file("shop.db") +
                                          "\"\n[[routes]]\nname = \"all\"\nto = "
                                          "\"file:events.jsonl\"\n");
  }

  void expect_delivered_as_written(const std::vector<std::string>& command) {
    auto place = command;
    place.insert(place.end(), {folder_.file("shop.db"), odd_item, "3"});
    const auto placed = workshop_.run_program(place);
    EXPECT_EQ(placed.code, 0) << placed.err;
    EXPECT_EQ(placed.out, "order 1\n");

    const auto payloads = delivered(workshop_);

    ASSERT_EQ(payloads.size(), 1U);
    EXPECT_EQ(payloads[0], database_.value("SELECT payload FROM outbox_events"));
    expect_order(payloads[0], 1, odd_item, 3);
    EXPECT_EQ(database_.value("SELECT item FROM orders"), odd_item);
  }
  void expect_refused_without_a_row(const std::vector<std::string>& command) {
    auto place = command;
    place.insert(place.end(), {folder_.file("shop.db"), "boat", "1"});
    const auto refused = workshop_.run_program(place);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("the shop does not sell this item: boat"));
    EXPECT_EQ(database_.number("SELECT count(*) FROM orders"), 0);
    EXPECT_EQ(database_.number("SELECT count(*) FROM outbox_events"), 0);
  }

  TemporaryFolder folder_{"shop"};
  Workshop workshop_;
  ExampleService shop_;
  examples::Database database_;
};

TEST_F(SqliteProducers, Python_s_own_sqlite3_is_enough) {
  if (lacks(workshop_, {"/usr/bin/python3", "--version"}, "python3")) return;
  expect_refused_without_a_row({"/usr/bin/python3", producer("sqlite_producer.py")});
  expect_delivered_as_written({"/usr/bin/python3", producer("sqlite_producer.py")});
}

TEST_F(SqliteProducers, The_sqlite3_shell_is_enough) {
  if (lacks(workshop_, {"sqlite3", "--version"}, "the sqlite3 shell")) return;
  expect_refused_without_a_row({producer("sqlite_producer.sh")});
  expect_delivered_as_written({producer("sqlite_producer.sh")});
}

#if EXAMPLES_TEST_POSTGRES
class PostgresProducers : public ::testing::Test {
 protected:
  void SetUp() override {
    POSTRIDER_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    url_ = "postgresql://postgres@127.0.0.1:" + std::to_string(database_->server().port()) + "/" +
           database_->name();
    session_ = database_->open_session();
    std::ifstream schema(producer("orders_postgres.sql"));
    session_->run({std::istreambuf_iterator<char>(schema), {}});
    session_->run("INSERT INTO stock (item, price_cents) VALUES ($1, 100)", {odd_item});
    workshop_.write("postrider.toml", "store = \"" + url_ +
                                          "\"\n[[routes]]\nname = \"all\"\nto = "
                                          "\"file:events.jsonl\"\n");
  }

  void expect_delivered_as_written(std::vector<std::string> command) {
    command.insert(command.end(), {url_, odd_item, "3"});
    const auto placed = workshop_.run_program(command);
    EXPECT_EQ(placed.code, 0) << placed.err;
    EXPECT_EQ(placed.out, "order 1\n");

    const auto payloads = delivered(workshop_);

    ASSERT_EQ(payloads.size(), 1U);
    EXPECT_EQ(payloads[0], session_->run("SELECT payload FROM outbox_events"));
    expect_order(payloads[0], 1, odd_item, 3);
    EXPECT_EQ(session_->run("SELECT item FROM orders"), odd_item);
  }
  void expect_refused_without_a_row(std::vector<std::string> command) {
    command.insert(command.end(), {url_, "boat", "1"});
    const auto refused = workshop_.run_program(command);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("the shop does not sell this item: boat"));
    EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_events"), "0");
  }

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<PostgresSession> session_;
  std::string url_;
  Workshop workshop_;
};

TEST_F(PostgresProducers, Python_with_psycopg2_is_enough) {
  if (lacks(workshop_, {"/usr/bin/python3", "-c", "import psycopg2"}, "python3-psycopg2")) return;
  expect_delivered_as_written({"/usr/bin/python3", producer("postgres_producer.py")});
}

TEST_F(PostgresProducers, Python_s_refused_order_leaves_no_row) {
  if (lacks(workshop_, {"/usr/bin/python3", "-c", "import psycopg2"}, "python3-psycopg2")) return;
  expect_refused_without_a_row({"/usr/bin/python3", producer("postgres_producer.py")});
}

TEST_F(PostgresProducers, Psql_is_enough) {
  if (lacks(workshop_, {"psql", "--version"}, "psql")) return;
  expect_delivered_as_written({producer("postgres_producer.sh")});
}

TEST_F(PostgresProducers, Psql_s_refused_order_leaves_no_row) {
  if (lacks(workshop_, {"psql", "--version"}, "psql")) return;
  expect_refused_without_a_row({producer("postgres_producer.sh")});
}
#endif

}  // namespace
}  // namespace postrider::testing
