// Receipts of messages in an application's own transaction on PostgreSQL.

#include <thread>

#include <postrider/libpq.hpp>

#include "outbox/inbox_builders.hpp"
#include "outbox/outbox_builders.hpp"
#include "outbox/postgres_shop.hpp"

namespace postrider::testing {
namespace {

class PostgresInboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    POSTRIDER_NEEDS_POSTGRES();
    shop_ = std::make_unique<PostgresShop>();
  }
  Result<InboxResult> deliver(LibpqConnection& connection, const InboxMessage& delivered) {
    return transaction(connection.handle(), [&] {
      return inbox_.process(connection.handle(), delivered, [&](pg_conn*) {
        connection.must("INSERT INTO orders (total_cents) VALUES (1)");
      });
    });
  }
  Result<InboxResult> deliver(const InboxMessage& delivered) {
    return deliver(shop_->app(), delivered);
  }
  /// Returns when the session waits for a lock.
  void await_lock(pg_conn* session) {
    const auto sql = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = " +
                     std::to_string(PQbackendPID(session));
    while (shop_->witness().value(sql) != "Lock")
      std::this_thread::yield();
  }

  std::unique_ptr<PostgresShop> shop_;
  PostgresInbox inbox_;
};

TEST_F(PostgresInboxTest, R137_R147_one_effect_after_any_number_of_deliveries) {
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  for (int repeat = 0; repeat < 5; ++repeat) {
    EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
  }
  InboxMessage other = message();
  other.consumer = "invoices";
  EXPECT_EQ(value_of(deliver(other)), InboxResult::processed);
  EXPECT_EQ(shop_->orders(), "2");
}

TEST_F(PostgresInboxTest, One_id_with_other_content_is_never_dropped) {
  value_of(deliver(message("m-1", "a")));
  expect_refused(deliver(message("m-1", "b")), ErrorCode::conflict);
  EXPECT_EQ(shop_->orders(), "1");
}

TEST_F(PostgresInboxTest, R145_an_error_of_the_handler_takes_the_receipt_back) {
  const auto failed = transaction(shop_->handle(), [&] {
    return inbox_.process(shop_->handle(), message(), [&]() -> Result<void> {
      shop_->insert_order();
      return Error{ErrorCode::unavailable, Disposition::retry, "no stock service.", "shop", ""};
    });
  });
  expect_refused(failed, ErrorCode::unavailable);
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  EXPECT_EQ(shop_->orders(), "1");
}

TEST_F(PostgresInboxTest, Only_an_open_transaction_and_sound_names_are_taken) {
  const auto never = [] { ADD_FAILURE() << "called"; };
  expect_refused(inbox_.process(shop_->handle(), message(), never), ErrorCode::no_transaction);
  shop_->app().must("BEGIN");
  expect_refused(inbox_.process(shop_->handle(), message(""), never), ErrorCode::invalid_argument);
  expect_refused(PostgresInbox({"", "x;"}).claim(shop_->handle(), message()),
                 ErrorCode::config_invalid);
  expect_refused(PostgresInbox({"", "other_"}).claim(shop_->handle(), message()),
                 ErrorCode::schema_mismatch);
}

TEST_F(PostgresInboxTest, R148_a_second_consumer_waits_for_the_first_and_learns_its_end) {
  for (const auto& [end, expected] : {std::pair("COMMIT", InboxResult::duplicate),
                                      std::pair("ROLLBACK", InboxResult::processed)}) {
    LibpqConnection other(shop_->database().conninfo());
    shop_->app().must("BEGIN");
    EXPECT_EQ(
        value_of(inbox_.process(shop_->handle(), message(end), [&] { shop_->insert_order(); })),
        InboxResult::processed);
    InboxResult second{};
    std::thread waiting([&] { second = value_of(deliver(other, message(end))); });
    await_lock(other.handle());
    shop_->app().must(end);
    waiting.join();
    EXPECT_EQ(second, expected) << end;
  }
  EXPECT_EQ(shop_->orders(), "2");
}

TEST_F(PostgresInboxTest, A_second_consumer_with_other_content_waits_and_is_then_told) {
  LibpqConnection other(shop_->database().conninfo());
  shop_->app().must("BEGIN");
  value_of(inbox_.process(shop_->handle(), message("m-1", "a"), [&] { shop_->insert_order(); }));
  std::thread waiting(
      [&] { expect_refused(deliver(other, message("m-1", "b")), ErrorCode::conflict); });
  await_lock(other.handle());
  shop_->app().must("COMMIT");
  waiting.join();
  EXPECT_EQ(shop_->orders(), "1");
}

TEST_F(PostgresInboxTest, A_receipt_that_was_purged_lets_a_late_copy_through) {
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  PurgeRequest request;
  request.kept = Kept::receipts;
  const auto purger = make_postgres_purger(shop_->database().options());
  EXPECT_EQ(value_of(purger->purge(request, std::nullopt, soon())).rows, 1);
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed) << "hence the long retention";
}

TEST_F(PostgresInboxTest, A_purge_passes_over_a_receipt_that_is_under_way) {
  shop_->app().must("BEGIN");
  value_of(inbox_.claim(shop_->handle(), message()));
  PurgeRequest request;
  request.kept = Kept::receipts;
  const auto purger = make_postgres_purger(shop_->database().options());
  EXPECT_EQ(value_of(purger->purge(request, std::nullopt, soon())).rows, 0);
  shop_->app().must("COMMIT");
  EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
}

TEST_F(PostgresInboxTest, A_serialization_failure_is_to_be_repeated_and_no_poison) {
  LibpqConnection other(shop_->database().conninfo());
  shop_->app().must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM orders");
  value_of(deliver(other, message()));
  const auto error =
      expect_refused(inbox_.process(shop_->handle(), message(), [] { ADD_FAILURE() << "called"; }),
                     ErrorCode::conflict);
  EXPECT_EQ(error.disposition, Disposition::retry);
  shop_->app().must("ROLLBACK");
  EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
}

TEST_F(PostgresInboxTest, R146_a_process_killed_before_its_commit_leaves_nothing) {
  const auto conninfo = shop_->database().conninfo();
  expect_killed([&] {
    LibpqConnection mine(conninfo);
    static_cast<void>(transaction(mine.handle(), [&] {
      return inbox_.process(mine.handle(), message(), [&] {
        mine.must("INSERT INTO orders (total_cents) VALUES (1)");
        die();
      });
    }));
  });
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  EXPECT_EQ(shop_->orders(), "1");
}

TEST_F(PostgresInboxTest, R149_a_restarted_consumer_knows_what_it_did) {
  const auto conninfo = shop_->database().conninfo();
  expect_killed([&] {
    LibpqConnection mine(conninfo);
    static_cast<void>(deliver(mine, message()));
    die();
  });
  EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
  EXPECT_EQ(shop_->orders(), "1");
}

TEST_F(PostgresInboxTest, F35_a_receipt_makes_its_commit_durable) {
  shop_->app().must("SET synchronous_commit = off; BEGIN");
  EXPECT_EQ(value_of(inbox_.claim(shop_->handle(), message())), InboxResult::processed);
  EXPECT_EQ(shop_->app().value("SHOW synchronous_commit"), "local");
  shop_->app().must("COMMIT");
  EXPECT_EQ(shop_->app().value("SHOW synchronous_commit"), "off");
}

}  // namespace
}  // namespace postrider::testing
