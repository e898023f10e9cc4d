// Events inside an application's own transaction on PostgreSQL, with libpqxx.

#include <postrider/pqxx.hpp>

#include "outbox/inbox_builders.hpp"
#include "outbox/outbox_builders.hpp"
#include "outbox/postgres_shop.hpp"

namespace postrider::testing {
namespace {

class PqxxOutboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    POSTRIDER_NEEDS_POSTGRES();
    shop_ = std::make_unique<PostgresShop>();
    connection_ = std::make_unique<pqxx::connection>(shop_->database().conninfo());
  }

  std::unique_ptr<PostgresShop> shop_;
  std::unique_ptr<pqxx::connection> connection_;
  PqxxOutbox outbox_;
};

TEST_F(PqxxOutboxTest, R016_R018_event_and_data_commit_or_roll_back_together) {
  {
    pqxx::work transaction(*connection_);
    transaction.exec("INSERT INTO orders (total_cents) VALUES (2500)");
    value_of(outbox_.add(transaction, order_placed()));
  }
  EXPECT_EQ(shop_->events(), "0");
  pqxx::work transaction(*connection_);
  transaction.exec("INSERT INTO orders (total_cents) VALUES (2500)");
  const auto id = value_of(outbox_.add(transaction, order_placed()));
  transaction.commit();
  EXPECT_EQ(shop_->orders(), "1");
  EXPECT_EQ(shop_->app().value("SELECT id FROM outbox_events WHERE routed_at IS NULL"),
            id.value().to_string());
}

TEST_F(PqxxOutboxTest, F114_payloads_are_written_as_they_are) {
  pqxx::work transaction(*connection_);
  std::vector<NewEvent> events;
  for (const auto& payload : difficult_payloads()) {
    events.push_back(order_placed());
    events.back().payload = payload;
  }
  value_of(outbox_.add_all(transaction, events));
  transaction.commit();
  const auto store = shop_->database().open_store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  std::vector<std::string> arrived;
  for (const auto& claimed : relay.claim().events)
    arrived.push_back(claimed.event->payload);
  EXPECT_EQ(arrived, difficult_payloads());
}

TEST_F(PqxxOutboxTest, R019_without_a_transaction_nothing_is_written) {
  pqxx::nontransaction none(*connection_);
  expect_refused(outbox_.add(none, order_placed()), ErrorCode::no_transaction);
  EXPECT_EQ(shop_->events(), "0");
}

TEST_F(PqxxOutboxTest, What_the_server_refuses_is_an_error_and_no_exception) {
  NewEvent event = order_placed();
  event.id = EventId(fresh_uuid());
  pqxx::work transaction(*connection_);
  value_of(outbox_.add(transaction, event));
  expect_refused(outbox_.add(transaction, event), ErrorCode::already_exists);
  expect_refused(outbox_.add(transaction, order_placed()), ErrorCode::no_transaction);
}

TEST_F(PqxxOutboxTest, What_the_connection_does_is_an_error_and_no_exception) {
  connection_->set_client_encoding("LATIN1");
  {
    pqxx::work transaction(*connection_);
    expect_refused(outbox_.add(transaction, order_placed()), ErrorCode::unsupported);
  }
  connection_->set_client_encoding("UTF8");
  {
    pqxx::work transaction(*connection_);
    value_of(outbox_.add(transaction, order_placed()));
    transaction.commit();
    expect_refused(outbox_.add(transaction, order_placed()), ErrorCode::no_transaction);
  }
  pqxx::work transaction(*connection_);
  value_of(outbox_.add(transaction, order_placed()));
  shop_->database().end_sessions();
  expect_refused(outbox_.add(transaction, order_placed()), ErrorCode::unavailable);
  EXPECT_THROW(transaction.commit(), std::exception);
}

TEST_F(PqxxOutboxTest, R038_keys_work_as_with_libpq) {
  pqxx::work transaction(*connection_);
  const auto first = value_of(outbox_.add(transaction, order_placed(), {"api", "1"}));
  EXPECT_EQ(value_of(outbox_.add(transaction, order_placed(), {"api", "1"})), first);
  expect_refused(outbox_.add(transaction, lone_event(), {"api", "1"}), ErrorCode::key_reused);
  transaction.commit();
  EXPECT_EQ(shop_->events(), "1");
}

TEST_F(PqxxOutboxTest, R143_receipts_work_as_with_libpq) {
  const PqxxInbox inbox;
  for (const auto expected : {InboxResult::processed, InboxResult::duplicate}) {
    pqxx::work transaction(*connection_);
    const auto effect = [](pqxx::transaction_base& same) {
      same.exec("INSERT INTO orders (total_cents) VALUES (1)");
    };
    EXPECT_EQ(value_of(inbox.process(transaction, message(), effect)), expected);
    transaction.commit();
  }
  EXPECT_EQ(shop_->orders(), "1");
}

}  // namespace
}  // namespace postrider::testing
