// A transaction that stays open delays its own events and nobody else's.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/testing/memory_publisher.hpp>

#include "backends/postgres_database.hpp"
#include "process/one_route_relay.hpp"

namespace postrider::testing {
namespace {

constexpr int passes = 100;

std::string insert(const std::string& aggregate, const std::string& payload) {
  return "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES ('order', "
         "'" +
         aggregate + "', 'x', '" + payload + "')";
}

class HeldTransaction : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_postgres()) return;
    database_ = std::make_unique<PostgresDatabase>();
    relay_ = std::make_unique<OneRouteRelay>(database_->open_store(),
                                             make_memory_publisher(journal_), RelayOptions());
    held_ = database_->open_session();
    writer_ = database_->open_session();
  }

  /// One pass; notes in which pass an event came first.
  void pass() {
    ++pass_;
    const auto report = (*relay_)->run_once();
    ASSERT_TRUE(report.ok()) << describe(report.error());
    for (const auto& event : journal_->accepted())
      came_in_.emplace(event->payload, pass_);
  }

  /// Before each pass events of other aggregates are written; each comes within two passes.
  void expect_others_flow() {
    for (int i = 1; i <= passes; ++i) {
      writer_->run(insert("a" + std::to_string(i % 7), "a" + std::to_string(i)));
      writer_->run(insert("new" + std::to_string(i), "b" + std::to_string(i)));
      ASSERT_NO_FATAL_FAILURE(pass());
    }
    ASSERT_NO_FATAL_FAILURE(pass());
    for (int i = 1; i <= passes; ++i) {
      for (const auto& payload : {"a" + std::to_string(i), "b" + std::to_string(i)}) {
        ASSERT_TRUE(came_in_.contains(payload)) << payload;
        EXPECT_LE(came_in_[payload], i + 1) << payload;
      }
    }
  }

  [[nodiscard]] bool has_come(const std::string& payload) const {
    return came_in_.contains(payload);
  }

  std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<OneRouteRelay> relay_;
  std::unique_ptr<PostgresSession> held_;
  std::unique_ptr<PostgresSession> writer_;
  int pass_ = 0;
  std::map<std::string, int> came_in_;
};

#define NEEDS_DATABASE() \
  if (database_ == nullptr) return

TEST_F(HeldTransaction, F29_over_100_passes_delays_its_own_event_only) {
  NEEDS_DATABASE();
  held_->run("BEGIN");
  held_->run(insert("held", "held"));

  expect_others_flow();

  EXPECT_FALSE(has_come("held"));
  held_->run("COMMIT");
  pass();
  EXPECT_TRUE(has_come("held"));
}

TEST_F(HeldTransaction, F28_F29_neither_does_one_of_another_database_nor_a_prepared_one) {
  NEEDS_DATABASE();
  PostgresSession elsewhere(database_->server().conninfo("postgres"));
  elsewhere.run("BEGIN");
  elsewhere.run("CREATE TEMPORARY TABLE written AS SELECT 1 AS n");
  const auto prepared = "held-" + database_->name();
  auto session = database_->open_session();
  session->run("BEGIN");
  session->run(insert("prepared", "prepared"));
  session->run("PREPARE TRANSACTION '" + prepared + "'");
  held_->run("BEGIN");
  held_->run(insert("held", "held"));

  expect_others_flow();

  EXPECT_FALSE(has_come("held"));
  EXPECT_FALSE(has_come("prepared"));
  session->run("COMMIT PREPARED '" + prepared + "'");
  pass();
  EXPECT_TRUE(has_come("prepared"));
  EXPECT_FALSE(has_come("held"));
  held_->run("COMMIT");
  pass();
  EXPECT_TRUE(has_come("held"));
  elsewhere.run("ROLLBACK");
}

}  // namespace
}  // namespace postrider::testing
