// Events inside an application's own transaction on SQLite.

#include <set>
#include <thread>

#include <postrider/sqlite.hpp>

#include "outbox/outbox_builders.hpp"

namespace postrider::testing {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SqliteOutboxTest : public ::testing::Test {
 protected:
  Shop shop_;
  SqliteOutbox outbox_;
};

TEST_F(SqliteOutboxTest, R018_add_writes_one_unrouted_row_and_returns_its_id) {
  shop_.app().must("BEGIN IMMEDIATE");
  const auto id = value_of(outbox_.add(shop_.handle(), order_placed()));
  shop_.app().must("COMMIT");

  EXPECT_EQ(shop_.events(), "1");
  EXPECT_EQ(shop_.app().value("SELECT id FROM outbox_events WHERE routed_at IS NULL"),
            id.value().to_string());
}

TEST_F(SqliteOutboxTest, R016_event_and_data_commit_or_roll_back_together) {
  for (const auto& [end, count] : {std::pair("ROLLBACK", "0"), std::pair("COMMIT", "1")}) {
    shop_.app().must("BEGIN IMMEDIATE");
    shop_.insert_order();
    value_of(outbox_.add(shop_.handle(), order_placed()));
    shop_.app().must(end);
    EXPECT_EQ(shop_.orders(), count);
    EXPECT_EQ(shop_.events(), count);
  }
}

TEST_F(SqliteOutboxTest, R019_without_a_transaction_nothing_is_written) {
  expect_refused(outbox_.add(shop_.handle(), order_placed()), ErrorCode::no_transaction);
  expect_refused(outbox_.add(shop_.handle(), order_placed(), {"api", "1"}),
                 ErrorCode::no_transaction);
  expect_refused(outbox_.add_all(shop_.handle(), std::vector{order_placed()}),
                 ErrorCode::no_transaction);
  EXPECT_EQ(shop_.events(), "0");
}

TEST_F(SqliteOutboxTest, F56_a_transaction_that_has_only_read_is_refused) {
  shop_.app().must("BEGIN");
  static_cast<void>(shop_.orders());

  const auto error =
      expect_refused(outbox_.add(shop_.handle(), order_placed()), ErrorCode::no_transaction);

  EXPECT_THAT(error.message, HasSubstr("BEGIN IMMEDIATE"));
  shop_.app().must("COMMIT");
  EXPECT_EQ(shop_.events(), "0");
}

TEST_F(SqliteOutboxTest, Every_transaction_that_can_write_is_taken) {
  for (const auto* begin : {"BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "SAVEPOINT mine",
                            "BEGIN; SELECT * FROM orders; INSERT INTO orders VALUES (NULL, 1)"}) {
    shop_.app().must(begin);
    EXPECT_TRUE(outbox_.add(shop_.handle(), order_placed()).ok()) << begin;
    shop_.app().must("COMMIT");
  }
  EXPECT_EQ(shop_.events(), "5");
}

TEST_F(SqliteOutboxTest, F35_synchronous_below_full_is_refused) {
  for (const auto* weak : {"OFF", "NORMAL"}) {
    shop_.app().must(std::string("PRAGMA synchronous = ") + weak);
    shop_.app().must("BEGIN IMMEDIATE");
    expect_refused(outbox_.add(shop_.handle(), order_placed()), ErrorCode::unsupported);
    shop_.app().must("ROLLBACK");
  }
  for (const auto* strong : {"FULL", "EXTRA"}) {
    shop_.app().must(std::string("PRAGMA synchronous = ") + strong);
    shop_.app().must("BEGIN IMMEDIATE");
    EXPECT_TRUE(outbox_.add(shop_.handle(), order_placed()).ok()) << strong;
    shop_.app().must("COMMIT");
  }
}

TEST_F(SqliteOutboxTest, F113_the_limit_is_checked_before_any_sql_and_named) {
  const SqliteOutbox small({{}, {.payload_bytes = 8}});
  shop_.app().must("BEGIN IMMEDIATE");
  NewEvent event = order_placed();
  for (const std::size_t size : {0U, 8U}) {
    event.payload = std::string(size, 'x');
    EXPECT_TRUE(small.add(shop_.handle(), event).ok()) << size;
  }
  event.payload = std::string(9, 'x');
  const auto error = expect_refused(small.add(shop_.handle(), event), ErrorCode::limit_exceeded);
  EXPECT_THAT(error.message, AllOf(HasSubstr("9 bytes"), HasSubstr("may have 8")));

  EXPECT_TRUE(small.add(shop_.handle(), lone_event()).ok()) << "the transaction goes on";
  shop_.app().must("COMMIT");
  EXPECT_EQ(shop_.events(), "3");
}

TEST_F(SqliteOutboxTest, F114_payloads_arrive_as_they_were_and_names_are_checked) {
  shop_.app().must("BEGIN IMMEDIATE");
  for (const auto& payload : difficult_payloads()) {
    NewEvent event = order_placed();
    event.payload = payload;
    value_of(outbox_.add(shop_.handle(), event));
  }
  NewEvent broken = order_placed();
  broken.type = "a\xff";
  EXPECT_THAT(
      expect_refused(outbox_.add(shop_.handle(), broken), ErrorCode::invalid_argument).message,
      HasSubstr("byte 1"));
  shop_.app().must("COMMIT");

  const auto store = shop_.database().store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  std::vector<std::string> arrived;
  for (const auto& claimed : relay.claim().events)
    arrived.push_back(claimed.event->payload);
  EXPECT_EQ(arrived, difficult_payloads());
}

TEST_F(SqliteOutboxTest, All_columns_are_written) {
  NewEvent event = order_placed();
  event.id = EventId(fresh_uuid());
  event.aggregate_version = 7;
  event.content_type = "text/plain";
  event.headers = {{"trace", "a\"b"}};
  event.available_at = Timestamp(std::chrono::seconds(1'800'000'000));
  shop_.app().must("BEGIN IMMEDIATE");
  EXPECT_EQ(value_of(outbox_.add(shop_.handle(), event)), *event.id);
  shop_.app().must("COMMIT");

  EXPECT_EQ(shop_.app().value("SELECT aggregate_version || '|' || content_type || '|' || headers "
                              "|| '|' || available_at FROM outbox_events"),
            R"(7|text/plain|{"trace":"a\"b"}|2027-01-15T08:00:00.000000Z)");
}

TEST_F(SqliteOutboxTest, R020_no_table_but_the_outbox_is_touched) {
  std::set<std::string> touched;
  const auto note = [](void* to, int action, const char* table, const char*, const char*,
                       const char*) {
    if (action == SQLITE_INSERT || action == SQLITE_READ || action == SQLITE_UPDATE) {
      static_cast<std::set<std::string>*>(to)->insert(table);
    }
    return SQLITE_OK;
  };
  shop_.app().must("BEGIN IMMEDIATE");
  sqlite3_set_authorizer(shop_.handle(), note, &touched);
  value_of(outbox_.add(shop_.handle(), order_placed()));
  sqlite3_set_authorizer(shop_.handle(), nullptr, nullptr);
  shop_.app().must("COMMIT");

  EXPECT_THAT(touched, ElementsAre("outbox_events", "sqlite_sequence"));
}

TEST_F(SqliteOutboxTest, F119_an_id_that_is_taken_is_refused_and_the_transaction_goes_on) {
  NewEvent event = order_placed();
  event.id = EventId(fresh_uuid());
  shop_.app().must("BEGIN IMMEDIATE");
  value_of(outbox_.add(shop_.handle(), event));
  expect_refused(outbox_.add(shop_.handle(), event), ErrorCode::already_exists);
  EXPECT_TRUE(outbox_.add(shop_.handle(), order_placed()).ok());
  shop_.app().must("COMMIT");
  EXPECT_EQ(shop_.events(), "2");
}

TEST_F(SqliteOutboxTest, Several_events_are_written_in_the_order_given) {
  const std::vector events = {order_placed("9"), order_placed("1"), lone_event(),
                              order_placed("5")};
  shop_.app().must("BEGIN IMMEDIATE");
  const auto ids = value_of(outbox_.add_all(shop_.handle(), events));
  EXPECT_THAT(value_of(outbox_.add_all(shop_.handle(), {})), SizeIs(0));
  shop_.app().must("COMMIT");

  std::string expected;
  for (const auto& id : ids)
    expected += id.value().to_string() + "\n";
  EXPECT_EQ(shop_.app().lines("SELECT id FROM outbox_events ORDER BY seq"), expected);
  EXPECT_EQ(shop_.app().lines("SELECT coalesce(aggregate_id, '-') FROM outbox_events ORDER BY seq"),
            "9\n1\n-\n5\n");
}

TEST_F(SqliteOutboxTest, Several_events_are_written_all_or_none) {
  NewEvent twice = order_placed();
  twice.id = EventId(fresh_uuid());
  shop_.app().must("BEGIN IMMEDIATE");
  expect_refused(outbox_.add_all(shop_.handle(), std::vector{order_placed("2"), twice, twice}),
                 ErrorCode::already_exists);
  EXPECT_EQ(shop_.events(), "0");
  shop_.insert_order();
  shop_.app().must("COMMIT");
  EXPECT_EQ(shop_.orders(), "1");
}

TEST_F(SqliteOutboxTest, Nothing_stays_prepared_on_the_handle) {
  shop_.app().must("BEGIN IMMEDIATE");
  value_of(outbox_.add(shop_.handle(), order_placed(), {"api", "1"}));
  expect_refused(outbox_.add(shop_.handle(), NewEvent{}), ErrorCode::invalid_argument);
  EXPECT_EQ(sqlite3_next_stmt(shop_.handle(), nullptr), nullptr);
  shop_.app().must("COMMIT");
}

TEST_F(SqliteOutboxTest, A_row_that_a_foreign_trigger_swallows_is_an_error) {
  shop_.app().must(
      "CREATE TRIGGER swallow BEFORE INSERT ON outbox_events BEGIN SELECT RAISE(IGNORE); END");
  shop_.app().must("BEGIN IMMEDIATE");
  EXPECT_THAT(
      expect_refused(outbox_.add(shop_.handle(), order_placed()), ErrorCode::internal).message,
      HasSubstr("trigger"));
}

TEST_F(SqliteOutboxTest, What_is_missing_or_in_the_way_is_named) {
  expect_refused(outbox_.add(nullptr, order_placed()), ErrorCode::invalid_argument);

  RawConnection other(shop_.database().path());
  other.must("BEGIN IMMEDIATE");
  shop_.app().must("BEGIN");
  expect_refused(outbox_.add(shop_.handle(), order_placed()), ErrorCode::busy);
  shop_.app().run("ROLLBACK");
  other.must("ROLLBACK");

  shop_.app().must("BEGIN IMMEDIATE");
  const SqliteOutbox elsewhere({{"", "other_"}, {}});
  EXPECT_THAT(
      expect_refused(elsewhere.add(shop_.handle(), order_placed()), ErrorCode::schema_mismatch)
          .message,
      HasSubstr("postrider migrate"));
  const SqliteOutbox hostile({{"", "x; DROP TABLE orders; --"}, {}});
  expect_refused(hostile.add(shop_.handle(), order_placed()), ErrorCode::config_invalid);
  shop_.app().must("ROLLBACK");
}

TEST_F(SqliteOutboxTest, Tables_may_have_a_prefix) {
  Shop shop({"", "shop_"});
  const SqliteOutbox outbox({{"", "shop_"}, {}});
  shop.app().must("BEGIN IMMEDIATE");
  value_of(outbox.add(shop.handle(), order_placed(), {"api", "1"}));
  shop.app().must("COMMIT");
  EXPECT_EQ(shop.app().value("SELECT count(*) FROM shop_outbox_events"), "1");
}

TEST_F(SqliteOutboxTest, Threads_share_an_outbox_and_not_a_handle) {
  constexpr int per_thread = 50;
  const auto write = [&] {
    RawConnection mine(shop_.database().path());
    sqlite3_busy_timeout(mine.handle(), 30'000);
    for (int i = 0; i < per_thread; ++i) {
      mine.must("BEGIN IMMEDIATE");
      value_of(outbox_.add(mine.handle(), order_placed()));
      mine.must("COMMIT");
    }
  };
  std::thread first(write);
  std::thread second(write);
  first.join();
  second.join();
  EXPECT_EQ(shop_.app().value("SELECT count(DISTINCT id) FROM outbox_events"), "100");
}

class SqliteKeys : public SqliteOutboxTest {
 protected:
  Result<EventId> add(const NewEvent& event, const IdempotencyKey& key) {
    shop_.app().must("BEGIN IMMEDIATE");
    auto id = outbox_.add(shop_.handle(), event, key);
    shop_.app().must("COMMIT");
    return id;
  }
};

TEST_F(SqliteKeys, R038_a_repeated_request_gets_the_first_id_and_writes_nothing) {
  const auto first = value_of(add(order_placed(), {"api", "request-1"}));
  NewEvent again = order_placed();
  again.id = EventId(fresh_uuid());
  EXPECT_EQ(value_of(add(again, {"api", "request-1"})), first);
  EXPECT_EQ(shop_.events(), "1");
}

TEST_F(SqliteKeys, Another_key_or_scope_is_another_request) {
  const auto first = value_of(add(order_placed(), {"api", "1"}));
  EXPECT_NE(value_of(add(order_placed(), {"api", "2"})), first);
  EXPECT_NE(value_of(add(order_placed(), {"import", "1"})), first);
  EXPECT_EQ(shop_.events(), "3");
}

TEST_F(SqliteKeys, A_key_with_other_content_is_refused) {
  value_of(add(order_placed(), {"api", "1"}));
  NewEvent other = order_placed();
  other.payload = "{}";
  const auto error = expect_refused(add(other, {"api", "1"}), ErrorCode::key_reused);
  EXPECT_EQ(error.disposition, Disposition::reject);
  EXPECT_EQ(shop_.events(), "1");
}

TEST_F(SqliteKeys, A_rollback_frees_the_key) {
  shop_.app().must("BEGIN IMMEDIATE");
  value_of(outbox_.add(shop_.handle(), order_placed(), {"api", "1"}));
  shop_.app().must("ROLLBACK");
  value_of(add(lone_event(), {"api", "1"}));
  EXPECT_EQ(shop_.events(), "1");
}

TEST_F(SqliteKeys, An_event_that_cannot_be_written_leaves_no_key) {
  NewEvent event = order_placed();
  event.id = EventId(fresh_uuid());
  value_of(add(event, {"api", "1"}));
  expect_refused(add(event, {"api", "2"}), ErrorCode::already_exists);
  EXPECT_EQ(shop_.app().value("SELECT count(*) FROM outbox_keys"), "1");
}

TEST_F(SqliteKeys, Keys_are_checked_before_any_sql) {
  expect_refused(add(order_placed(), {"", "1"}), ErrorCode::invalid_argument);
  expect_refused(add(order_placed(), {"api", ""}), ErrorCode::invalid_argument);
  expect_refused(add(order_placed(), {"api", "a\nb"}), ErrorCode::invalid_argument);
  EXPECT_THAT(
      expect_refused(add(order_placed(), {"api", std::string(256, 'k')}), ErrorCode::limit_exceeded)
          .message,
      AllOf(HasSubstr("256"), HasSubstr("255")));
}

}  // namespace
}  // namespace postrider::testing
