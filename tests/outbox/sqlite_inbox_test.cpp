// Receipts of messages in an application's own transaction on SQLite.

#include <atomic>
#include <stdexcept>
#include <thread>

#include <postrider/sqlite.hpp>

#include "outbox/inbox_builders.hpp"
#include "outbox/outbox_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SqliteInboxTest : public ::testing::Test {
 protected:
  // [inbox]
  /// One delivery, as a consumer does it: the effect is an order.
  Result<InboxResult> deliver(sqlite3* database, const InboxMessage& delivered) {
    return transaction(database, [&] {
      return inbox_.process(database, delivered, [&](sqlite3* same) {
        sqlite3_exec(same, "INSERT INTO orders (total_cents) VALUES (1)", nullptr, nullptr,
                     nullptr);
      });
    });
  }
  // [inbox]
  Result<InboxResult> deliver(const InboxMessage& delivered) {
    return deliver(shop_.handle(), delivered);
  }
  [[nodiscard]] std::string receipts() {
    return shop_.app().value("SELECT count(*) FROM inbox_receipts");
  }

  Shop shop_;
  SqliteInbox inbox_;
};

TEST_F(SqliteInboxTest, R137_R147_one_effect_after_any_number_of_deliveries) {
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  for (int repeat = 0; repeat < 5; ++repeat) {
    EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
  }
  EXPECT_EQ(shop_.orders(), "1");
  EXPECT_EQ(receipts(), "1");
}

TEST_F(SqliteInboxTest, R140_without_the_inbox_a_duplicate_has_two_effects) {
  for (int delivery = 0; delivery < 2; ++delivery)
    shop_.insert_order();
  EXPECT_EQ(shop_.orders(), "2");
}

TEST_F(SqliteInboxTest, R135_ids_count_and_not_content) {
  value_of(deliver(message("m-1")));
  EXPECT_EQ(value_of(deliver(message("m-2"))), InboxResult::processed);
  InboxMessage other = message("m-1");
  other.consumer = "invoices";
  EXPECT_EQ(value_of(deliver(other)), InboxResult::processed);
  other.source = "another shop";
  EXPECT_EQ(value_of(deliver(other)), InboxResult::processed);
  EXPECT_EQ(shop_.orders(), "4");
}

TEST_F(SqliteInboxTest, One_id_with_other_content_is_never_dropped) {
  value_of(deliver(message("m-1", "a")));
  const auto error = expect_refused(deliver(message("m-1", "b")), ErrorCode::conflict);
  EXPECT_EQ(error.disposition, Disposition::reject);
  EXPECT_EQ(shop_.orders(), "1");
}

TEST_F(SqliteInboxTest, R145_an_error_of_the_handler_takes_the_receipt_back) {
  const auto failed = transaction(shop_.handle(), [&] {
    return inbox_.process(shop_.handle(), message(), [&]() -> Result<void> {
      shop_.insert_order();
      return Error{ErrorCode::unavailable, Disposition::retry, "no stock service.", "shop", ""};
    });
  });
  expect_refused(failed, ErrorCode::unavailable);
  EXPECT_THROW(static_cast<void>(transaction(shop_.handle(),
                                             [&] {
                                               return inbox_.process(shop_.handle(), message(), [] {
                                                 throw std::runtime_error("x");
                                               });
                                             })),
               std::runtime_error);
  EXPECT_EQ(receipts(), "0");
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
}

TEST_F(SqliteInboxTest, Only_a_transaction_that_can_write_durably_is_taken) {
  const auto never = [] { ADD_FAILURE() << "called"; };
  expect_refused(inbox_.process(shop_.handle(), message(), never), ErrorCode::no_transaction);
  expect_refused(inbox_.process(nullptr, message(), never), ErrorCode::invalid_argument);
  shop_.app().must("PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE");
  expect_refused(inbox_.process(shop_.handle(), message(), never), ErrorCode::unsupported);
}

TEST_F(SqliteInboxTest, Names_are_checked_before_any_sql) {
  for (auto member : {&InboxMessage::consumer, &InboxMessage::source, &InboxMessage::message_id}) {
    InboxMessage wrong = message();
    wrong.*member = "";
    expect_refused(deliver(wrong), ErrorCode::invalid_argument);
    wrong.*member = std::string(256, 'x');
    EXPECT_THAT(expect_refused(deliver(wrong), ErrorCode::limit_exceeded).message,
                AllOf(HasSubstr("256"), HasSubstr("255")));
  }
  expect_refused(SqliteInbox({"", "x;"}).claim(shop_.handle(), message()),
                 ErrorCode::config_invalid);
}

TEST_F(SqliteInboxTest, R148_two_consumers_at_once_have_one_effect) {
  constexpr int messages = 50;
  std::atomic<int> processed = 0;
  const auto consume = [&] {
    RawConnection mine(shop_.database().path());
    sqlite3_busy_timeout(mine.handle(), 30'000);
    for (int i = 0; i < messages; ++i) {
      const auto result = value_of(deliver(mine.handle(), message(std::to_string(i))));
      if (result == InboxResult::processed) ++processed;
    }
  };
  std::thread first(consume);
  std::thread second(consume);
  first.join();
  second.join();
  EXPECT_EQ(processed, messages);
  EXPECT_EQ(shop_.orders(), std::to_string(messages));
}

TEST_F(SqliteInboxTest, R146_a_process_killed_before_its_commit_leaves_nothing) {
  const auto path = shop_.database().path();
  expect_killed([&] {
    RawConnection mine(path);
    static_cast<void>(transaction(mine.handle(), [&] {
      return inbox_.process(mine.handle(), message(), [&] {
        mine.run("INSERT INTO orders (total_cents) VALUES (1)");
        die();
      });
    }));
  });
  EXPECT_EQ(receipts(), "0");
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  EXPECT_EQ(shop_.orders(), "1");
}

TEST_F(SqliteInboxTest, R149_a_restarted_consumer_knows_what_it_did) {
  const auto path = shop_.database().path();
  expect_killed([&] {
    RawConnection mine(path);
    static_cast<void>(deliver(mine.handle(), message()));
    die();
  });
  EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
  EXPECT_EQ(shop_.orders(), "1");
}

}  // namespace
}  // namespace postrider::testing
