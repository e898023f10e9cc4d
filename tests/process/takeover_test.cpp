// Who owns the partitions when an owner dies, and when it only stands still. PostgreSQL.
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "backends/postgres_database.hpp"
#include "cli/program.hpp"

namespace postrider::testing {
namespace {

constexpr std::string_view owners = "SELECT min(owner) FROM outbox_partitions";

class Takeover : public ::testing::Test {
 protected:
  void prepare(const std::string& lease_time) {
    database_ = std::make_unique<PostgresDatabase>();
    shop_.write(
        "postrider.toml",
        "store = \"postgresql://postgres@127.0.0.1:" + std::to_string(database_->server().port()) +
            "/" + database_->name() + "\"\n[relay]\nlease_time = \"" + lease_time +
            "\"\nlease_renewal = \"1s\"\n[[routes]]\nname = \"all\"\nto = "
            "\"file:events.jsonl\"\n");
    const auto migrated = shop_.run({"migrate"});
    ASSERT_EQ(migrated.code, 0) << migrated.err;
  }
  void emit(const std::string& payload) {
    const auto emitted =
        shop_.run({"emit", "--type", "a", "--aggregate", "order/1", "--payload", payload});
    ASSERT_EQ(emitted.code, 0) << emitted.err;
  }
  /// Waits until every partition has an owner other than `not_this`, and returns it.
  std::string owner(PostgresSession& session, const std::string& not_this = "") {
    const auto until = Deadline::after(std::chrono::seconds(30));
    std::string found;
    while ((found.empty() || found == not_this) && !until.passed()) {
      found = session.run(std::string(owners));
      std::this_thread::yield();
    }
    return found;
  }

  std::unique_ptr<PostgresDatabase> database_;
  Workshop shop_;
};

TEST_F(Takeover, F1_a_standby_goes_on_within_seconds_of_a_death_although_the_lease_is_a_minute) {
  POSTRIDER_NEEDS_POSTGRES();
  prepare("60s");
  const auto session = database_->open_session();
  const auto dying = shop_.start({"relay", "--loop"});
  const auto before = owner(*session);
  ASSERT_FALSE(before.empty());
  const auto standby = shop_.start({"relay", "--loop"});
  emit("1");
  ASSERT_TRUE(shop_.will_hold("events.jsonl", R"("payload":"1")"));

  const auto killed_at = std::chrono::steady_clock::now();
  dying->signal(SIGKILL);
  emit("2");
  ASSERT_TRUE(shop_.will_hold("events.jsonl", R"("payload":"2")"));

  constexpr std::chrono::seconds promised(2);
  constexpr int slack = 5;
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, promised * slack);
  EXPECT_NE(owner(*session), before);
  standby->signal(SIGTERM);
  EXPECT_EQ(standby->finish().code, 0);
}

TEST_F(Takeover, F5_a_frozen_owner_keeps_what_it_has_until_its_lease_has_run_out) {
  POSTRIDER_NEEDS_POSTGRES();
  prepare("3s");
  const auto session = database_->open_session();
  const auto frozen = shop_.start({"relay", "--loop"});
  const auto before = owner(*session);
  ASSERT_FALSE(before.empty());
  const auto standby = shop_.start({"relay", "--loop"});
  frozen->signal(SIGSTOP);
  const auto leased_until = session->run("SELECT max(leased_until)::text FROM outbox_partitions");

  ASSERT_NE(owner(*session, before), "");

  EXPECT_EQ(session->run("SELECT min(leased_until) - interval '3 s' >= $1::timestamptz FROM "
                         "outbox_partitions",
                         {leased_until}),
            "t")
      << "it was taken before " << leased_until;
  emit("1");
  EXPECT_TRUE(shop_.will_hold("events.jsonl", R"("payload":"1")"));
  frozen->signal(SIGCONT);
  EXPECT_TRUE(frozen->says("lease_lost"));
  for (const auto* const relay : {frozen.get(), standby.get()})
    relay->signal(SIGTERM);
  EXPECT_EQ(frozen->finish().code, 0);
  EXPECT_EQ(standby->finish().code, 0);
}

}  // namespace
}  // namespace postrider::testing
