// Events inside an application's own transaction on PostgreSQL, with libpq.

#include <atomic>
#include <thread>

#include <postrider/libpq.hpp>

#include "outbox/outbox_builders.hpp"
#include "outbox/postgres_shop.hpp"
#include "servers/chaos_proxy.hpp"

namespace postrider::testing {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PostgresOutboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    POSTRIDER_NEEDS_POSTGRES();
    shop_ = std::make_unique<PostgresShop>();
  }
  [[nodiscard]] LibpqConnection& app() { return shop_->app(); }
  [[nodiscard]] pg_conn* handle() { return shop_->handle(); }

  std::unique_ptr<PostgresShop> shop_;
  PostgresOutbox outbox_;
};

TEST_F(PostgresOutboxTest, R018_add_writes_one_unrouted_row_and_returns_its_id) {
  app().must("BEGIN");
  const auto id = value_of(outbox_.add(handle(), order_placed()));
  app().must("COMMIT");
  EXPECT_EQ(shop_->events(), "1");
  EXPECT_EQ(app().value("SELECT id FROM outbox_events WHERE routed_at IS NULL"),
            id.value().to_string());
}

TEST_F(PostgresOutboxTest, R016_event_and_data_commit_or_roll_back_together) {
  for (const auto& [end, count] : {std::pair("ROLLBACK", "0"), std::pair("COMMIT", "1")}) {
    app().must("BEGIN");
    shop_->insert_order();
    value_of(outbox_.add(handle(), order_placed()));
    EXPECT_EQ(shop_->events(), "0");
    app().must(end);
    EXPECT_EQ(shop_->orders(), count);
    EXPECT_EQ(shop_->events(), count);
  }
}

TEST_F(PostgresOutboxTest, R019_without_a_transaction_nothing_is_written) {
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::no_transaction);
  expect_refused(outbox_.add(handle(), order_placed(), {"api", "1"}), ErrorCode::no_transaction);
  expect_refused(outbox_.add_all(handle(), std::vector{order_placed()}), ErrorCode::no_transaction);
  EXPECT_EQ(shop_->events(), "0");
}

TEST_F(PostgresOutboxTest, A_transaction_that_has_failed_is_refused) {
  app().must("BEGIN");
  app().fails("SELECT 1 / 0");
  EXPECT_THAT(
      expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::no_transaction).message,
      HasSubstr("Roll it back"));
}

TEST_F(PostgresOutboxTest, A_connection_that_is_not_free_is_refused) {
  expect_refused(outbox_.add(static_cast<pg_conn*>(nullptr), order_placed()),
                 ErrorCode::invalid_argument);

  app().must("BEGIN");
  PQsendQuery(handle(), "SELECT 1");
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::invalid_argument);
  while (PGresult* result = PQgetResult(handle()))
    PQclear(result);

  ASSERT_EQ(PQenterPipelineMode(handle()), 1);
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::invalid_argument);
  ASSERT_EQ(PQexitPipelineMode(handle()), 1);

  app().must("SET client_encoding = 'LATIN1'");
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::unsupported);
  app().must("SET client_encoding = 'UTF8'");
  EXPECT_TRUE(outbox_.add(handle(), order_placed()).ok());

  shop_->database().end_sessions();
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::unavailable);
}

TEST_F(PostgresOutboxTest, F113_the_limit_is_checked_before_any_sql_and_named) {
  const PostgresOutbox small({{}, {.payload_bytes = 8}});
  app().must("BEGIN");
  NewEvent event = order_placed();
  event.payload = std::string(9, 'x');
  EXPECT_THAT(expect_refused(small.add(handle(), event), ErrorCode::limit_exceeded).message,
              AllOf(HasSubstr("9 bytes"), HasSubstr("may have 8")));
  event.payload.clear();
  EXPECT_TRUE(small.add(handle(), event).ok()) << "the transaction goes on";
  app().must("COMMIT");
  EXPECT_EQ(shop_->events(), "1");
}

TEST_F(PostgresOutboxTest, F114_payloads_arrive_as_they_were) {
  app().must("BEGIN");
  for (const auto& payload : difficult_payloads()) {
    NewEvent event = order_placed();
    event.payload = payload;
    value_of(outbox_.add(handle(), event));
  }
  app().must("COMMIT");

  const auto store = shop_->database().open_store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  std::vector<std::string> arrived;
  for (const auto& claimed : relay.claim().events)
    arrived.push_back(claimed.event->payload);
  EXPECT_EQ(arrived, difficult_payloads());
}

TEST_F(PostgresOutboxTest, All_columns_are_written) {
  NewEvent event = order_placed();
  event.id = EventId(fresh_uuid());
  event.aggregate_version = 7;
  event.content_type = "text/plain";
  event.headers = {{"trace", "a\"b"}};
  event.available_at = Timestamp(std::chrono::seconds(1'800'000'000));
  app().must("BEGIN");
  EXPECT_EQ(value_of(outbox_.add(handle(), event)), *event.id);
  app().must("COMMIT");
  EXPECT_EQ(app().value("SELECT concat_ws('|', aggregate_type, aggregate_id, aggregate_version, "
                        "type, content_type, headers, extract(epoch FROM available_at)::bigint) "
                        "FROM outbox_events"),
            R"(order|1|7|order.placed|text/plain|{"trace":"a\"b"}|1800000000)");
}

TEST_F(PostgresOutboxTest, F119_an_id_that_is_taken_fails_the_transaction) {
  NewEvent event = order_placed();
  event.id = EventId(fresh_uuid());
  app().must("BEGIN");
  value_of(outbox_.add(handle(), event));
  expect_refused(outbox_.add(handle(), event), ErrorCode::already_exists);
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::no_transaction);
}

TEST_F(PostgresOutboxTest, Several_events_are_written_in_the_order_given) {
  const std::vector events = {order_placed("9"), order_placed("1"), lone_event(),
                              order_placed("5")};
  app().must("BEGIN");
  const auto ids = value_of(outbox_.add_all(handle(), events));
  EXPECT_TRUE(value_of(outbox_.add_all(handle(), {})).empty());
  app().must("COMMIT");
  std::string expected;
  for (const auto& id : ids)
    expected += (expected.empty() ? "" : ",") + id.value().to_string();
  EXPECT_EQ(app().value("SELECT string_agg(id::text, ',' ORDER BY seq) FROM outbox_events"),
            expected);
}

TEST_F(PostgresOutboxTest, Writers_of_the_same_aggregates_in_opposite_orders_do_not_deadlock) {
  constexpr int rounds = 100;
  const auto write = [&](const std::vector<NewEvent>& events) {
    LibpqConnection mine(shop_->database().conninfo());
    for (int i = 0; i < rounds; ++i) {
      mine.must("BEGIN");
      value_of(outbox_.add_all(mine.handle(), events));
      mine.must("COMMIT");
    }
  };
  std::vector<NewEvent> there;
  for (int i = 0; i < 20; ++i)
    there.push_back(order_placed(std::to_string(i)));
  const std::vector<NewEvent> back(there.rbegin(), there.rend());
  std::thread other(write, back);
  write(there);
  other.join();
  EXPECT_EQ(shop_->events(), std::to_string(2 * rounds * 20));
}

TEST_F(PostgresOutboxTest, A_row_that_a_foreign_trigger_swallows_is_an_error) {
  app().must(
      "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
      "CREATE TRIGGER a_swallow BEFORE INSERT ON outbox_events FOR EACH ROW "
      "EXECUTE FUNCTION swallow()");
  app().must("BEGIN");
  expect_refused(outbox_.add(handle(), order_placed()), ErrorCode::internal);
}

TEST_F(PostgresOutboxTest, A_missing_schema_is_named_and_hostile_names_reach_no_sql) {
  const PostgresOutbox hostile({{"", "x; DROP TABLE orders; --"}, {}});
  app().must("BEGIN");
  expect_refused(hostile.add(handle(), order_placed()), ErrorCode::config_invalid);
  const PostgresOutbox elsewhere({{"", "other_"}, {}});
  EXPECT_THAT(
      expect_refused(elsewhere.add(handle(), order_placed()), ErrorCode::schema_mismatch).message,
      HasSubstr("postrider migrate"));
}

TEST_F(PostgresOutboxTest, Tables_may_have_a_schema_and_a_prefix) {
  PostgresOptions options;
  options.names = {"shop", "app_"};
  PostgresShop shop(options);
  const PostgresOutbox outbox({options.names, {}});
  shop.app().must("BEGIN");
  value_of(outbox.add(shop.handle(), order_placed(), {"api", "1"}));
  value_of(outbox.add_all(shop.handle(), std::vector{order_placed("1"), order_placed("2")}));
  shop.app().must("COMMIT");
  EXPECT_EQ(shop.app().value("SELECT count(*) FROM shop.app_outbox_events"), "3");
}

TEST_F(PostgresOutboxTest, R038_a_repeated_request_gets_the_first_id_and_writes_nothing) {
  app().must("BEGIN");
  const auto first = value_of(outbox_.add(handle(), order_placed(), {"api", "1"}));
  app().must("COMMIT");
  app().must("BEGIN");
  EXPECT_EQ(value_of(outbox_.add(handle(), order_placed(), {"api", "1"})), first);
  EXPECT_NE(value_of(outbox_.add(handle(), order_placed(), {"api", "2"})), first);
  expect_refused(outbox_.add(handle(), lone_event(), {"api", "1"}), ErrorCode::key_reused);
  expect_refused(outbox_.add(handle(), lone_event(), {"", "1"}), ErrorCode::invalid_argument);
  app().must("COMMIT");
  EXPECT_EQ(shop_->events(), "2");
}

TEST_F(PostgresOutboxTest, R038_a_request_waits_for_the_same_one_that_is_under_way) {
  for (const auto* end : {"COMMIT", "ROLLBACK"}) {
    const IdempotencyKey key{"api", end};
    app().must("BEGIN");
    const auto first = value_of(outbox_.add(handle(), order_placed(end), key));
    LibpqConnection other(shop_->database().conninfo());
    other.must("BEGIN");
    const auto pid = std::to_string(PQbackendPID(other.handle()));
    EventId second;
    std::thread waiting([&] {
      second = value_of(outbox_.add(other.handle(), order_placed(end), key));
      other.must("COMMIT");
    });
    while (shop_->witness().value("SELECT wait_event_type FROM pg_stat_activity WHERE pid = " +
                                  pid) != "Lock") {
      std::this_thread::yield();
    }
    app().must(end);
    waiting.join();
    EXPECT_EQ(second == first, end == std::string("COMMIT"));
  }
  EXPECT_EQ(shop_->events(), "2");
}

TEST_F(PostgresOutboxTest, R038_a_request_with_other_content_waits_and_is_then_refused) {
  const IdempotencyKey key{"api", "1"};
  app().must("BEGIN");
  value_of(outbox_.add(handle(), order_placed("1"), key));
  LibpqConnection other(shop_->database().conninfo());
  other.must("BEGIN");
  const auto pid = std::to_string(PQbackendPID(other.handle()));
  std::thread waiting([&] {
    expect_refused(outbox_.add(other.handle(), order_placed("2"), key), ErrorCode::key_reused);
  });
  while (shop_->witness().value("SELECT wait_event_type FROM pg_stat_activity WHERE pid = " +
                                pid) != "Lock") {
    std::this_thread::yield();
  }
  app().must("COMMIT");
  waiting.join();
  other.must("COMMIT");
  EXPECT_EQ(shop_->events(), "1") << "and the refused transaction wrote nothing";
}

TEST_F(PostgresOutboxTest, A_key_that_is_purged_between_two_looks_is_to_be_repeated) {
  app().must("BEGIN");
  value_of(outbox_.add(handle(), order_placed("1"), {"api", "1"}));
  app().must("COMMIT");
  // A statement's trigger fires although the insert finds the key taken: the purge comes just then.
  app().must(
      "CREATE FUNCTION purge_now() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN DELETE FROM outbox_keys; RETURN NULL; END'");
  app().must(
      "CREATE TRIGGER purge_now AFTER INSERT ON outbox_keys FOR EACH STATEMENT EXECUTE FUNCTION "
      "purge_now()");
  app().must("BEGIN");
  const auto error =
      expect_refused(outbox_.add(handle(), order_placed("1"), {"api", "1"}), ErrorCode::conflict);
  EXPECT_EQ(error.disposition, Disposition::retry);
  app().must("ROLLBACK");
  const auto store = shop_->database().open_store();
  expect_refused(store->add_once(order_placed("1"), {"api", "1"}, soon()), ErrorCode::conflict);
  EXPECT_EQ(shop_->events(), "1");
}

// What becomes of a transaction whose COMMIT is not answered. The application is behind a proxy.
class PostgresCommit : public PostgresOutboxTest {
 protected:
  void SetUp() override {
    PostgresOutboxTest::SetUp();
    if (!shop_) return;
    const auto& database = shop_->database();
    proxy_ = std::make_unique<ChaosProxy>(database.server().port());
    connection_ = std::make_unique<LibpqConnection>(
        database.server().tcp_conninfo(database.name(), "postgres", proxy_->port()));
  }

  /// Places an order while the proxy does `command` to the COMMIT, then cuts the connection once
  /// `until` holds.
  Error place_order_and_lose(const std::string& command, const std::function<bool()>& until) {
    Result<EventId> placed = Error{};
    std::atomic<bool> told = false;
    std::thread client([&] {
      placed = transaction(connection_->handle(), [&] {
        connection_->must("INSERT INTO orders (total_cents) VALUES (2500)");
        auto id = outbox_.add(connection_->handle(), order_placed());
        proxy_->tell(command);
        told = true;
        return id;
      });
    });
    while (!told || !until())
      std::this_thread::yield();
    // COMMIT follows at once, and nothing shows that the proxy has swallowed it.
    std::this_thread::sleep_for(milliseconds(200));
    proxy_->tell("both reset");
    client.join();
    return expect_refused(placed, ErrorCode::commit_unknown);
  }

  std::unique_ptr<ChaosProxy> proxy_;
  std::unique_ptr<LibpqConnection> connection_;
};

TEST_F(PostgresCommit, F19_a_lost_answer_to_commit_is_resolved_as_committed) {
  const auto error = place_order_and_lose("down drop", [&] { return shop_->orders() == "1"; });

  EXPECT_EQ(error.disposition, Disposition::in_doubt);
  const auto ticket = value_of(commit_ticket(error));
  EXPECT_THAT(describe(error), HasSubstr(to_string(ticket)));
  EXPECT_EQ(value_of(resolve_commit(handle(), ticket)), CommitState::committed);
  EXPECT_EQ(shop_->events(), "1");
}

TEST_F(PostgresCommit, F19_a_commit_that_never_arrived_is_open_and_then_aborted) {
  const auto pid = std::to_string(PQbackendPID(connection_->handle()));
  const auto idle = [&] {
    return shop_->witness().value("SELECT state FROM pg_stat_activity WHERE pid = " + pid) ==
               "idle in transaction" &&
           shop_->witness().value(
               "SELECT query LIKE '%outbox_events%' FROM pg_stat_activity WHERE pid = " + pid) ==
               "t";
  };
  CommitTicket while_open;
  const auto error = place_order_and_lose("up drop", [&] {
    if (!idle()) return false;
    const auto xid =
        shop_->witness().value("SELECT backend_xid FROM pg_stat_activity WHERE pid = " + pid);
    const auto system =
        shop_->witness().value("SELECT system_identifier || '/1' FROM pg_control_system()");
    while_open = {std::stoull(xid), system};
    EXPECT_EQ(value_of(resolve_commit(handle(), while_open)), CommitState::open);
    return true;
  });

  const auto ticket = value_of(commit_ticket(error));
  EXPECT_EQ(ticket, while_open);
  auto state = value_of(resolve_commit(handle(), ticket));
  while (state == CommitState::open)
    state = value_of(resolve_commit(handle(), ticket));
  EXPECT_EQ(state, CommitState::aborted);
  EXPECT_EQ(shop_->orders(), "0");
}

TEST_F(PostgresCommit, F19_a_server_that_cannot_know_says_so) {
  auto begun = PostgresTransaction::begin(handle());
  ASSERT_TRUE(begun.ok());
  const auto ticket = begun->ticket();
  expect_refused(resolve_commit(handle(), ticket), ErrorCode::invalid_argument);
  expect_ok(begun->commit());
  EXPECT_EQ(value_of(resolve_commit(handle(), ticket)), CommitState::committed);

  expect_refused(resolve_commit(handle(), {ticket.xid, "7000000000000000000/1"}),
                 ErrorCode::commit_unknown);
  expect_refused(resolve_commit(handle(), {ticket.xid + 1'000'000, ticket.server}),
                 ErrorCode::commit_unknown);
  expect_refused(commit_ticket(Error{}), ErrorCode::not_found);
}

TEST_F(PostgresCommit, A_connection_that_dies_before_commit_has_surely_not_committed) {
  const auto placed = transaction(connection_->handle(), [&]() -> Result<EventId> {
    auto id = outbox_.add(connection_->handle(), order_placed());
    proxy_->tell("both reset");
    const std::unique_ptr<PGresult, decltype(&PQclear)> lost(
        PQexec(connection_->handle(), "SELECT 1"), &PQclear);
    return id;
  });
  expect_refused(placed, ErrorCode::unavailable);
  EXPECT_EQ(shop_->events(), "0");
}

TEST_F(PostgresOutboxTest, R029_R031_R032_transactions_end_as_they_should) {
  EXPECT_EQ(value_of(transaction(handle(),
                                 [&] {
                                   shop_->insert_order();
                                   EXPECT_TRUE(outbox_.add(handle(), order_placed()).ok());
                                   return 5;
                                 })),
            5);
  expect_refused(
      transaction(handle(),
                  [&]() -> Result<int> {
                    shop_->insert_order();
                    return Error{ErrorCode::not_found, Disposition::reject, "gone.", "", ""};
                  }),
      ErrorCode::not_found);
  EXPECT_THROW(static_cast<void>(transaction(handle(),
                                             [&] {
                                               shop_->insert_order();
                                               throw 42;
                                             })),
               int);
  EXPECT_EQ(PQtransactionStatus(handle()), PQTRANS_IDLE);
  EXPECT_EQ(shop_->orders(), "1");
}

TEST_F(PostgresOutboxTest, A_failed_statement_that_nobody_told_of_does_not_commit) {
  const auto placed = transaction(handle(), [&] {
    shop_->insert_order();
    app().fails("SELECT 1 / 0");
  });
  expect_refused(placed, ErrorCode::no_transaction);
  expect_refused(transaction(handle(), [&] { app().must("ROLLBACK"); }), ErrorCode::no_transaction);
  EXPECT_EQ(shop_->orders(), "0");
  app().must("BEGIN");
  expect_refused(PostgresTransaction::begin(handle()), ErrorCode::invalid_argument);
}

TEST_F(PostgresOutboxTest, R007_a_commit_that_the_server_refuses_leaves_nothing) {
  app().must(
      "CREATE TABLE lines (order_id bigint REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");
  const auto placed = transaction(handle(), [&]() -> Result<EventId> {
    app().must("INSERT INTO lines VALUES (99)");
    return outbox_.add(handle(), order_placed());
  });
  expect_refused(placed, ErrorCode::invalid_argument);
  EXPECT_EQ(shop_->events(), "0");
}

TEST_F(PostgresOutboxTest, R021_a_unit_rolls_back_when_an_event_failed_and_nobody_cared) {
  const auto placed = unit_of_work(handle(), [&](Outbox& outbox) {
    shop_->insert_order();
    static_cast<void>(outbox.add(NewEvent{}));
    return 1;
  });
  expect_refused(placed, ErrorCode::invalid_argument);
  EXPECT_EQ(shop_->orders(), "0");
  const auto id = value_of(
      unit_of_work(handle(), outbox_, [&](Outbox& outbox) { return outbox.add(order_placed()); }));
  EXPECT_EQ(app().value("SELECT id FROM outbox_events"), id.value().to_string());
}

TEST_F(PostgresOutboxTest, A_role_without_superuser_can_write_and_resolve) {
  app().must("DROP ROLE IF EXISTS test_writer");
  app().must(
      "CREATE ROLE test_writer; GRANT INSERT ON outbox_events TO test_writer;"
      "GRANT INSERT, SELECT ON outbox_keys TO test_writer;"
      "GRANT USAGE ON SEQUENCE outbox_events_seq TO test_writer; SET ROLE test_writer");
  CommitTicket ticket;
  {
    auto begun = PostgresTransaction::begin(handle());
    ASSERT_TRUE(begun.ok()) << describe(begun.error());
    ticket = begun->ticket();
    value_of(outbox_.add(handle(), order_placed(), {"api", "1"}));
    value_of(outbox_.add(handle(), order_placed(), {"api", "1"}));
    expect_ok(begun->commit());
  }
  EXPECT_EQ(value_of(resolve_commit(handle(), ticket)), CommitState::committed);
  app().must("RESET ROLE; DROP OWNED BY test_writer; DROP ROLE test_writer");
}

}  // namespace
}  // namespace postrider::testing
