// What the MariaDB store does when the server, the connection or somebody else fails it.

#include <atomic>
#include <thread>

#include "backends/mariadb_database.hpp"
#include "conformance/store_builders.hpp"
#include "servers/chaos_proxy.hpp"

namespace postrider::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class MariadbFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_mariadb()) return;
    database_ = std::make_unique<MariadbDatabase>();
    session_ = database_->open_session();
    store_ = database_->open_store();
  }

  [[nodiscard]] std::unique_ptr<Store> store_through(const ChaosProxy& proxy) const {
    auto options = database_->options();
    options.url = database_->server().url(database_->name(), proxy.port());
    return make_mariadb_store(options);
  }

  [[nodiscard]] std::string count(const std::string& what) const {
    return session_->run("SELECT count(*) FROM " + what);
  }

  ManualClock clock_;
  std::unique_ptr<MariadbDatabase> database_;
  std::unique_ptr<MariadbSession> session_;
  std::unique_ptr<Store> store_;
};

#define NEEDS_FAULTY_MARIADB() \
  if (database_ == nullptr) return

void expect_refused_with(const Error& error, ErrorCode code, Disposition disposition) {
  EXPECT_EQ(error.code, code) << describe(error);
  EXPECT_EQ(error.disposition, disposition) << describe(error);
}

TEST_F(MariadbFaults, F54_after_a_crash_of_the_server_nothing_committed_is_missing) {
  NEEDS_FAULTY_MARIADB();
  MariadbServer server;
  MariadbDatabase database({}, &server);
  const auto store = database.open_store();
  std::atomic<bool> stopping{false};
  std::atomic<int> confirmed{0};
  std::thread writer([&] {
    const auto own = database.open_store();
    while (!stopping) {
      if (own->add(std::vector{order_event("1")}, soon()).ok()) ++confirmed;
    }
  });
  while (confirmed < 20)
    std::this_thread::yield();
  Claimant relay(*store, clock_);
  relay.lease();
  const auto before = relay.claim();

  server.kill();
  const auto refused = store->claim(relay.claim_request({before.mark}), soon());
  ASSERT_FALSE(refused.ok());
  expect_refused_with(refused.error(), ErrorCode::unavailable, Disposition::retry);
  stopping = true;
  writer.join();
  server.start();

  const auto after = relay.claim_all();
  EXPECT_GE(after.events.size(), static_cast<std::size_t>(confirmed.load()));
  EXPECT_LE(after.events.size(), static_cast<std::size_t>(confirmed.load()) + 1);
  EXPECT_EQ(relay.claim(relay.claim_request({before.mark})).events.size(),
            after.events.size() - before.events.size());
  // Numbers that were cached are lost with the crash, and that is all.
  add(*store, {order_event("1")});
  EXPECT_THAT(relay.claim(relay.claim_request({after.mark})).events, SizeIs(1));
}

/// The answers of BEGIN, INSERT and COMMIT get through a few bytes further each time.
TEST_F(MariadbFaults, F47_an_answer_that_is_lost_at_any_point_leaves_all_or_nothing) {
  NEEDS_FAULTY_MARIADB();
  ChaosProxy proxy(database_->server().port());
  int in_doubt = 0;
  bool passed = false;
  for (int bytes = 0; bytes <= 400 && !passed; bytes += 5) {
    const auto through_proxy = store_through(proxy);
    expect_ok(through_proxy->check_schema(soon()));
    const auto event = order_event("1");
    proxy.tell("down drop-after " + std::to_string(bytes));

    const auto written = through_proxy->add(std::vector{event}, Deadline::after(seconds(1)));

    proxy.tell("both reset");
    proxy.tell("down pass");
    passed = written.ok();
    if (passed) continue;
    if (written.error().code == ErrorCode::commit_unknown) {
      EXPECT_EQ(written.error().disposition, Disposition::in_doubt);
      ++in_doubt;
      continue;
    }
    EXPECT_EQ(written.error().disposition, Disposition::retry) << describe(written.error());
    EXPECT_EQ(count("outbox_events WHERE id = '" + event.id->value().to_string() + "'"), "0");
  }
  EXPECT_TRUE(passed);
  EXPECT_GE(in_doubt, 1) << "the answer to COMMIT was never the one that was lost";
}

TEST_F(MariadbFaults, F47_a_settle_in_doubt_is_repeated_and_harms_nothing) {
  NEEDS_FAULTY_MARIADB();
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("2")});
  const auto batch = relay.claim();
  const auto request =
      routing(relay.settle_request(), batch.events.at(0), {delivery_of(batch.events[0])});
  relay.settle(request);

  const auto again = relay.settle(request);

  EXPECT_THAT(again.stale_events, ElementsAre(batch.events[0].event->seq));
  EXPECT_THAT(again.stale_deliveries, IsEmpty());
  EXPECT_EQ(count("outbox_deliveries"), "1");
}

TEST_F(MariadbFaults, F47_a_silent_network_holds_no_call_beyond_its_deadline) {
  NEEDS_FAULTY_MARIADB();
  ChaosProxy proxy(database_->server().port());
  const auto through_proxy = store_through(proxy);
  Claimant relay(*through_proxy, clock_);
  relay.lease();
  proxy.tell("both drop");
  const auto begun = std::chrono::steady_clock::now();

  const auto claimed =
      through_proxy->claim(relay.claim_request({ReadMark()}), Deadline::after(seconds(1)));
  // A new connection gets no further.
  const auto added = through_proxy->add(std::vector{order_event("1")}, Deadline::after(seconds(1)));

  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(10));
  ASSERT_FALSE(claimed.ok());
  expect_refused_with(claimed.error(), ErrorCode::timeout, Disposition::retry);
  ASSERT_FALSE(added.ok());
  expect_refused_with(added.error(), ErrorCode::timeout, Disposition::retry);
  proxy.tell("both reset");
  proxy.tell("both pass");
  EXPECT_THAT(add(*through_proxy, {order_event("1")}), SizeIs(1));
}

TEST_F(MariadbFaults, F46_a_settle_that_meets_a_lock_changes_nothing_and_can_be_repeated) {
  NEEDS_FAULTY_MARIADB();
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto batch = relay.claim();
  const auto request = routing(relay.settle_request(), batch.events.at(0));
  session_->run("START TRANSACTION");
  session_->run("SELECT seq FROM outbox_events FOR UPDATE");

  const auto refused = store_->settle(request, Deadline::after(seconds(1)));

  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().code == ErrorCode::timeout || refused.error().code == ErrorCode::busy)
      << describe(refused.error());
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  session_->run("ROLLBACK");
  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());
  EXPECT_EQ(count("outbox_events WHERE routed_at IS NULL"), "0");
}

TEST_F(MariadbFaults, F54_an_event_of_a_prepared_transaction_is_read_whenever_it_commits) {
  NEEDS_FAULTY_MARIADB();
  Claimant relay(*store_, clock_);
  relay.lease();
  {
    const auto dying = database_->open_session();
    dying->run("XA START 'orphan'");
    dying->run("INSERT INTO outbox_events (type, payload) VALUES ('x', 'orphan')");
    dying->run("XA END 'orphan'");
    dying->run("XA PREPARE 'orphan'");
  }
  add(*store_, {order_event("1")});
  const auto early = relay.claim();
  EXPECT_THAT(early.events, SizeIs(1));
  clock_.advance(minutes(30));
  relay.lease();
  const auto meanwhile = relay.claim(relay.claim_request({early.mark}));
  EXPECT_THAT(meanwhile.events, IsEmpty());

  // The session that prepared it may still be on its way out.
  const auto give_up = std::chrono::steady_clock::now() + seconds(60);
  while (session_->refusal("XA COMMIT 'orphan'") != 0 &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }

  const auto late = relay.claim(relay.claim_request({meanwhile.mark}));
  ASSERT_THAT(late.events, SizeIs(1));
  EXPECT_EQ(late.events[0].event->payload, "orphan");
}

TEST_F(MariadbFaults, An_owner_that_was_overtaken_can_settle_nothing) {
  NEEDS_FAULTY_MARIADB();
  Claimant owner(*store_, clock_, "relay-1");
  owner.lease();
  add(*store_, {order_event("1")});
  const auto batch = owner.claim();
  const auto request = routing(owner.settle_request(), batch.events.at(0));
  clock_.advance(minutes(5));
  const auto other = database_->open_store();
  Claimant(*other, clock_, "relay-2").lease();

  const auto settled = value_of(store_->settle(request, soon()));

  EXPECT_THAT(settled.lost, SizeIs(static_cast<std::size_t>(store_->traits().partitions)));
  EXPECT_EQ(count("outbox_events WHERE routed_at IS NOT NULL"), "0");
}

TEST_F(MariadbFaults, A_wrong_password_or_database_stops_and_is_not_tried_again) {
  NEEDS_FAULTY_MARIADB();
  auto options = database_->options();
  const auto port = std::to_string(database_->server().port());
  options.url = "mariadb://tester:wrong@127.0.0.1:" + port + "/" + database_->name();
  const auto unknown_user = make_mariadb_store(options)->check_schema(soon());
  ASSERT_FALSE(unknown_user.ok());
  expect_refused_with(unknown_user.error(), ErrorCode::auth_failed, Disposition::stop);
  options.url = "mariadb://tester@127.0.0.1:" + port + "/nowhere";
  const auto unknown_database = make_mariadb_store(options)->check_schema(soon());
  ASSERT_FALSE(unknown_database.ok());
  expect_refused_with(unknown_database.error(), ErrorCode::not_found, Disposition::stop);
}

}  // namespace
}  // namespace postrider::testing
