// What the PostgreSQL store does when the server, the connection or somebody else fails it.

#include <unistd.h>

#include <atomic>
#include <thread>

#include "backends/postgres_database.hpp"
#include "conformance/store_builders.hpp"
#include "servers/chaos_proxy.hpp"
#include "store/postgres/postgres_connection.hpp"

namespace postrider::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class PostgresFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_postgres()) return;
    database_ = std::make_unique<PostgresDatabase>();
    session_ = database_->open_session();
    store_ = database_->open_store();
  }

  /// The same database, as another role or through a proxy.
  [[nodiscard]] PostgresOptions options_over_tcp(const std::string& role, int port = 0) const {
    auto options = database_->options();
    options.conninfo = database_->server().tcp_conninfo(database_->name(), role, port);
    return options;
  }

  [[nodiscard]] std::string count(const std::string& table) const {
    return session_->run("SELECT count(*) FROM " + table);
  }

  ManualClock clock_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<PostgresSession> session_;
  std::unique_ptr<Store> store_;
};

#define NEEDS_DATABASE() \
  if (database_ == nullptr) return

/// What a caller may do after a refusal.
void expect_refusal(const Error& error, ErrorCode code, Disposition disposition) {
  EXPECT_EQ(error.code, code) << describe(error);
  EXPECT_EQ(error.disposition, disposition) << describe(error);
}

TEST_F(PostgresFaults, F18_after_a_crash_of_the_server_nothing_committed_is_missing) {
  NEEDS_DATABASE();
  PostgresServer server;
  PostgresDatabase database({}, &server);
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

  server.stop_immediate();
  const auto refused = store->claim(relay.claim_request({before.mark}), soon());
  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::unavailable, Disposition::retry);
  stopping = true;
  writer.join();
  server.start();

  const auto after = relay.claim_all();
  EXPECT_GE(after.events.size(), static_cast<std::size_t>(confirmed.load()));
  EXPECT_LE(after.events.size(), static_cast<std::size_t>(confirmed.load()) + 1);
  EXPECT_EQ(relay.claim(relay.claim_request({before.mark})).events.size(),
            after.events.size() - before.events.size());
}

TEST_F(PostgresFaults, F19_a_lost_answer_to_commit_is_in_doubt_and_a_repetition_is_harmless) {
  NEEDS_DATABASE();
  ChaosProxy proxy(database_->server().port());
  const auto through_proxy = make_postgres_store(options_over_tcp("postgres", proxy.port()));
  const auto event = order_event("1");
  Claimant relay(*through_proxy, clock_);
  relay.lease();
  add(*through_proxy, {order_event("2")});
  const auto batch = relay.claim();
  auto request =
      routing(relay.settle_request(), batch.events.at(0), {delivery_of(batch.events[0])});

  proxy.tell("down drop");
  const auto refused = through_proxy->settle(request, Deadline::after(seconds(1)));
  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::commit_unknown, Disposition::in_doubt);
  proxy.tell("both reset");
  proxy.tell("down pass");
  while (session_->run("SELECT count(*) FROM outbox_events WHERE routed_at IS NULL") != "0") {
  }

  const auto again = relay.settle(request);
  EXPECT_THAT(again.stale_events, ElementsAre(batch.events[0].event->seq));
  EXPECT_EQ(count("outbox_deliveries"), "1");
}

TEST_F(PostgresFaults, F19_an_add_whose_answer_is_lost_can_be_repeated_under_its_id) {
  NEEDS_DATABASE();
  ChaosProxy proxy(database_->server().port());
  const auto through_proxy = make_postgres_store(options_over_tcp("postgres", proxy.port()));
  add(*through_proxy, {order_event("1")});
  const auto event = order_event("1");

  proxy.tell("down drop");
  const auto refused = through_proxy->add(std::vector{event}, Deadline::after(seconds(1)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::commit_unknown);
  proxy.tell("both reset");
  proxy.tell("down pass");
  while (count("outbox_events") != "2") {
  }

  const auto again = through_proxy->add(std::vector{event}, soon());
  ASSERT_FALSE(again.ok());
  expect_refusal(again.error(), ErrorCode::already_exists, Disposition::reject);
}

TEST_F(PostgresFaults, F20_a_session_that_waits_for_a_lock_and_is_ended_has_done_nothing) {
  NEEDS_DATABASE();
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto request = routing(relay.settle_request(), relay.claim().events.at(0));
  session_->run("BEGIN");
  session_->run("SELECT 1 FROM outbox_partitions FOR UPDATE");
  std::thread ender([&] {
    PostgresSession other(database_->server().conninfo("postgres"));
    while (other.run("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                     "WHERE datname = '" +
                     database_->name() +
                     "' AND application_name = 'postrider' AND wait_event_type = 'Lock'") == "0") {
    }
  });

  const auto refused = store_->settle(request, soon());
  ender.join();
  session_->run("ROLLBACK");

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::unavailable, Disposition::retry);
  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());
}

TEST_F(PostgresFaults, F21_a_read_only_database_is_named_and_used_again_when_it_is_not) {
  NEEDS_DATABASE();
  session_->run("ALTER DATABASE " + database_->name() + " SET default_transaction_read_only = on");
  LeaseRequest request;
  request.owner = "relay-1";
  request.lease_time = seconds(30);
  request.at_most = 1;

  const auto refused = store_->lease(request, soon());

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::primary_not_writable, Disposition::retry);
  session_->run("SET default_transaction_read_only = off");
  session_->run("ALTER DATABASE " + database_->name() + " RESET default_transaction_read_only");
  database_->end_sessions();
  EXPECT_THAT(value_of(store_->lease(request, soon())).leases, SizeIs(1));
}

TEST_F(PostgresFaults, F22_a_full_server_is_unavailable_and_nothing_else) {
  NEEDS_DATABASE();
  session_->run("ALTER DATABASE " + database_->name() + " CONNECTION LIMIT 0");
  session_->run("DROP ROLE IF EXISTS test_guest; CREATE ROLE test_guest LOGIN");
  const auto guest = make_postgres_store(options_over_tcp("test_guest"));

  const auto refused = guest->check_schema(soon());

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::unavailable, Disposition::retry);
  EXPECT_EQ(refused.error().native_code, "53300");
  session_->run("DROP ROLE test_guest");
}

TEST_F(PostgresFaults, F23_a_refused_login_is_named_and_no_password_is_told) {
  NEEDS_DATABASE();
  auto options = database_->options();
  options.conninfo =
      database_->server().tcp_conninfo(database_->name(), "nobody-here") + " password=hidden-word";

  const auto refused = make_postgres_store(options)->check_schema(soon());

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::auth_failed, Disposition::stop);
  EXPECT_THAT(describe(refused.error()), Not(HasSubstr("hidden-word")));
}

TEST_F(PostgresFaults, A_server_or_database_that_is_not_there_is_named) {
  NEEDS_DATABASE();
  auto options = database_->options();
  options.conninfo = database_->server().conninfo("no_such_database");
  const auto no_database = make_postgres_store(options)->check_schema(soon());
  ASSERT_FALSE(no_database.ok());
  expect_refusal(no_database.error(), ErrorCode::not_found, Disposition::stop);

  options.conninfo = "host=127.0.0.1 port=" + std::to_string(free_port());
  const auto no_server = make_postgres_store(options)->check_schema(soon());
  ASSERT_FALSE(no_server.ok());
  expect_refusal(no_server.error(), ErrorCode::unavailable, Disposition::retry);
  EXPECT_EQ(no_server.error().native_code, "");
}

TEST_F(PostgresFaults, A_server_that_does_not_answer_costs_the_deadline_and_no_more) {
  NEEDS_DATABASE();
  int port = 0;
  const int listening = listen_on_loopback(port);
  auto options = database_->options();
  options.conninfo = database_->server().tcp_conninfo(database_->name(), "postgres", port);

  const auto refused =
      make_postgres_store(options)->check_schema(Deadline::after(milliseconds(200)));

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::timeout, Disposition::retry);
  ::close(listening);
}

TEST_F(PostgresFaults, F24_a_schema_that_vanishes_is_named_and_used_again_after_its_migration) {
  NEEDS_DATABASE();
  Claimant relay(*store_, clock_);
  relay.lease();
  relay.claim();
  const auto migrator = make_postgres_migrator(database_->options());
  value_of(migrator->down(0, true, soon()));

  const auto refused = store_->claim(relay.claim_request({ReadMark()}), soon());

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::schema_mismatch, Disposition::stop);
  EXPECT_THAT(refused.error().message, HasSubstr("postrider migrate"));
  database_->migrate();
  const auto ids = add(*store_, {order_event("1")});
  EXPECT_THAT(ids_of(relay.claim_all()), ElementsAre(ids[0]));
}

TEST_F(PostgresFaults, F25_a_missing_right_is_named_and_touches_only_what_needs_it) {
  NEEDS_DATABASE();
  session_->run(
      "DROP ROLE IF EXISTS test_reader; CREATE ROLE test_reader LOGIN;"
      "GRANT SELECT ON ALL TABLES IN SCHEMA public TO test_reader");
  add(*store_, {order_event("1")});
  const auto options = options_over_tcp("test_reader");
  const auto operations = make_postgres_operations(options);

  EXPECT_EQ(value_of(operations->status(std::nullopt, soon())).events.total, 1);
  EXPECT_THAT(value_of(operations->dead_letters({}, soon())), IsEmpty());
  const auto refused = operations->route_pause("out", {"ann", "why"}, std::nullopt, soon());
  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::permission_denied, Disposition::stop);
  const auto not_added = make_postgres_store(options)->add(std::vector{order_event("2")}, soon());
  ASSERT_FALSE(not_added.ok());
  expect_refusal(not_added.error(), ErrorCode::permission_denied, Disposition::stop);
  session_->run("DROP OWNED BY test_reader; DROP ROLE test_reader");
}

TEST_F(PostgresFaults, F26_a_row_lock_of_somebody_else_is_not_waited_for_without_end) {
  NEEDS_DATABASE();
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1"), order_event("2")});
  const auto batch = relay.claim();
  session_->run("BEGIN");
  session_->run("SELECT 1 FROM outbox_events WHERE seq = 1 FOR UPDATE");

  EXPECT_THAT(relay.claim_all().events, SizeIs(2)) << "reading waits for nobody";
  const auto request = routing(relay.settle_request(), batch.events.at(0));
  const auto refused = store_->settle(request, Deadline::after(milliseconds(300)));
  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::busy, Disposition::retry);
  EXPECT_EQ(session_->run("SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                          "'postrider' AND state LIKE 'idle in transaction%' AND datname = "
                          "current_database()"),
            "0");
  session_->run("ROLLBACK");
  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());
}

TEST_F(PostgresFaults, F30_a_transaction_that_a_relay_left_open_would_be_ended_by_the_server) {
  NEEDS_DATABASE();
  store::postgres::PostgresConnection relay(database_->options(), store::postgres::Use::relay);
  ASSERT_TRUE(relay.begin(soon()));
  const auto bounded = relay.run_script(
      "DO $$ BEGIN ASSERT current_setting('idle_in_transaction_session_timeout') = '30s'; END $$",
      "the look at its bound", soon());
  EXPECT_TRUE(bounded) << describe(bounded.error());
}

TEST_F(PostgresFaults, F40_a_settle_waits_by_its_own_deadline_and_not_by_the_roles) {
  NEEDS_DATABASE();
  session_->run(
      "DROP ROLE IF EXISTS test_hasty; CREATE ROLE test_hasty LOGIN SUPERUSER;"
      "ALTER ROLE test_hasty SET statement_timeout = '250ms'");
  const auto hasty = make_postgres_store(options_over_tcp("test_hasty"));
  Claimant relay(*hasty, clock_);
  relay.lease();
  add(*hasty, {order_event("1")});
  const auto request = routing(relay.settle_request(), relay.claim().events.at(0));
  session_->run("BEGIN");
  session_->run("SELECT 1 FROM outbox_partitions FOR UPDATE");
  session_->send("SELECT pg_sleep(0.6); COMMIT");

  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());

  session_->finish();
  session_->run("DROP ROLE test_hasty");
}

TEST_F(PostgresFaults, F40_a_cancelled_settle_has_done_nothing_and_is_repeated) {
  NEEDS_DATABASE();
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto request = routing(relay.settle_request(), relay.claim().events.at(0));
  session_->run("BEGIN");
  session_->run("SELECT 1 FROM outbox_partitions FOR UPDATE");
  std::thread canceller([&] {
    PostgresSession other(database_->conninfo());
    while (other.run("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity "
                     "WHERE datname = current_database() AND application_name = 'postrider' "
                     "AND wait_event_type = 'Lock'") == "0") {
    }
  });

  const auto refused = store_->settle(request, soon());
  canceller.join();
  session_->run("ROLLBACK");

  ASSERT_FALSE(refused.ok());
  expect_refusal(refused.error(), ErrorCode::timeout, Disposition::retry);
  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());
}

TEST_F(PostgresFaults, F42_a_lease_counts_from_when_its_lock_was_had) {
  NEEDS_DATABASE();
  LeaseRequest request;
  request.owner = "relay-1";
  request.lease_time = seconds(60);
  request.at_most = 64;
  value_of(store_->lease(request, soon()));
  EXPECT_EQ(session_->run("SELECT bool_and(leased_until > clock_timestamp() + interval '55 s') "
                          "FROM outbox_partitions"),
            "t");
}

TEST_F(PostgresFaults, A_stale_token_that_waits_for_its_successor_is_fenced) {
  NEEDS_DATABASE();
  Claimant old_owner(*store_, clock_, "relay-1");
  old_owner.lease();
  add(*store_, {order_event("1")});
  const auto request = routing(old_owner.settle_request(), old_owner.claim().events.at(0));
  // The takeover is not committed yet when the old owner begins to settle: a comparison without the
  // lock would still see the old token.
  session_->run("BEGIN");
  session_->run("UPDATE outbox_partitions SET owner = 'relay-2', token = token + 1");
  std::thread taker([&] {
    PostgresSession other(database_->conninfo());
    while (other.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'postrider' "
                     "AND wait_event_type = 'Lock' AND datname = current_database()") == "0") {
    }
    session_->run("COMMIT");
  });

  const auto settled = old_owner.settle(request);
  taker.join();

  EXPECT_THAT(settled.lost, SizeIs(64));
  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_events WHERE routed_at IS NULL"), "1");
}

TEST_F(PostgresFaults, Two_relays_that_start_at_once_share_and_never_own_the_same) {
  NEEDS_DATABASE();
  const auto lease = [](Store& store, const char* owner) {
    LeaseRequest request;
    request.owner = owner;
    request.lease_time = seconds(30);
    request.at_most = 40;
    value_of(store.lease(request, soon()));
  };
  // Both live to the end: of a session that is gone everybody takes the partitions at once.
  const auto second = database_->open_store();
  std::thread other([&] { lease(*second, "relay-2"); });
  lease(*store_, "relay-1");
  other.join();
  lease(*store_, "relay-1");
  lease(*second, "relay-2");

  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_partitions WHERE owner IS NOT NULL"), "64");
  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_partitions WHERE token <> 1"), "0");
}

TEST_F(PostgresFaults, Dead_letters_can_be_retried_beside_a_relay_that_settles) {
  NEEDS_DATABASE();
  Claimant relay(*store_, clock_);
  relay.lease();
  std::vector<NewDelivery> rows;
  for (int i = 0; i < 20; ++i) {
    rows.push_back(store_delivery(*store_, relay, order_event(std::to_string(i)), dead()));
  }
  std::atomic<bool> done{false};
  std::thread person([&] {
    const auto operations = make_postgres_operations(database_->options());
    DeadFilter one;
    one.limit = 1;
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(value_of(operations->dead_retry(one, {"ann", "again"}, clock_.wall(), soon())),
                  SizeIs(1));
    }
    done = true;
  });
  while (!done)
    store_routed(*store_, relay, order_event("other"));
  person.join();

  EXPECT_THAT(relay.due().deliveries, SizeIs(20));
}

/// An old event with one delivery, ready to be purged unless the delivery is open.
class PostgresPurge : public PostgresFaults {
 protected:
  NewDelivery old_delivery(const Change& change) {
    Claimant relay(*store_, clock_);
    relay.lease();
    auto row = store_delivery(*store_, relay, order_event("1"), change);
    clock_.advance(age + milliseconds(1000));
    return row;
  }
  /// Gives up soon if anything has to be waited for.
  std::int64_t purge() {
    PurgeRequest request;
    request.older_than = age;
    request.now = clock_.wall();
    const auto purger = make_postgres_purger(database_->options());
    return value_of(purger->purge(request, std::nullopt, soon())).rows;
  }

  static constexpr milliseconds age = std::chrono::hours(24);
};

TEST_F(PostgresPurge, Beside_a_settle_that_is_under_way_the_event_stays_and_nobody_waits) {
  NEEDS_DATABASE();
  old_delivery({});
  session_->run("BEGIN");
  session_->run(
      "UPDATE outbox_deliveries SET status = 'completed', finished_at = '2026-01-02T00:00:01Z'");

  EXPECT_EQ(purge(), 0);

  session_->run("COMMIT");
  EXPECT_EQ(purge(), 0) << "it has just been completed";
  clock_.advance(age);
  EXPECT_EQ(purge(), 1);
}

TEST_F(PostgresPurge, Beside_a_dead_retry_that_is_under_way_the_event_stays_and_nobody_waits) {
  NEEDS_DATABASE();
  const auto dead_row = old_delivery(dead());
  session_->run("BEGIN");
  session_->run("UPDATE outbox_deliveries SET current = false");
  session_->run(
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, route, status, retry_delays, "
      "timeout_ms, on_failed, available_at, generation) SELECT outbox_uuidv7(), event_seq, "
      "event_id, slot, route, 'pending', retry_delays, timeout_ms, on_failed, available_at, 2 FROM "
      "outbox_deliveries");

  EXPECT_EQ(purge(), 0);

  session_->run("COMMIT");
  EXPECT_EQ(purge(), 0);
  EXPECT_EQ(count("outbox_deliveries"), "2");
  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_deliveries WHERE id = '" +
                          dead_row.id.value().to_string() + "'"),
            "1");
}

TEST_F(PostgresPurge, An_event_for_which_a_delivery_is_just_being_stored_is_passed_over) {
  NEEDS_DATABASE();
  old_delivery(with_status(DeliveryStatus::completed));
  session_->run("BEGIN");
  session_->run(
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, route, status, retry_delays, "
      "timeout_ms, on_failed, available_at) SELECT outbox_uuidv7(), event_seq, event_id, slot, "
      "'another', 'pending', retry_delays, timeout_ms, on_failed, available_at FROM "
      "outbox_deliveries");

  EXPECT_EQ(purge(), 0) << "the foreign key's lock";

  session_->run("ROLLBACK");
  EXPECT_EQ(purge(), 1);
}

TEST_F(PostgresPurge, What_another_purge_has_locked_is_passed_over) {
  NEEDS_DATABASE();
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 3; ++i)
    store_routed(*store_, relay, lone_event());
  clock_.advance(age + milliseconds(1000));
  session_->run("BEGIN");
  session_->run("SELECT 1 FROM outbox_events WHERE seq = 2 FOR UPDATE");

  EXPECT_EQ(purge(), 2);

  session_->run("ROLLBACK");
  EXPECT_EQ(purge(), 1);
}

TEST_F(PostgresPurge, A_missing_right_to_delete_is_named) {
  NEEDS_DATABASE();
  session_->run(
      "DROP ROLE IF EXISTS test_keeper; CREATE ROLE test_keeper LOGIN;"
      "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO test_keeper");
  const auto purger = make_postgres_purger(options_over_tcp("test_keeper"));
  for (const auto kept : all_kept) {
    PurgeRequest request;
    request.kept = kept;
    const auto refused = purger->purge(request, std::nullopt, soon());
    ASSERT_FALSE(refused.ok()) << to_string(kept);
    expect_refusal(refused.error(), ErrorCode::permission_denied, Disposition::stop);
  }
  session_->run("DROP OWNED BY test_keeper; DROP ROLE test_keeper");
}

}  // namespace
}  // namespace postrider::testing
