// Events and receipts in an application's own transaction on MariaDB.

#include <thread>

#include <postrider/mariadb.hpp>

#include "backends/mariadb_database.hpp"
#include "conformance/store_builders.hpp"
#include "outbox/inbox_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class MariadbShopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_mariadb()) return;
    database_ = std::make_unique<MariadbDatabase>();
    app_ = database_->open_session();
    app_->run("CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, total INT) ENGINE = InnoDB");
  }

  [[nodiscard]] st_mysql* handle() const { return static_cast<st_mysql*>(app_->handle()); }
  [[nodiscard]] std::string events() const {
    return database_->open_session()->run("SELECT count(*) FROM outbox_events");
  }
  [[nodiscard]] std::string orders() const {
    return database_->open_session()->run("SELECT count(*) FROM orders");
  }
  void insert_order() const { app_->run("INSERT INTO orders (total) VALUES (2500)"); }

  std::unique_ptr<MariadbDatabase> database_;
  std::unique_ptr<MariadbSession> app_;
  MariadbOutbox outbox_;
};

#define NEEDS_SHOP() \
  if (database_ == nullptr) return

template <class T>
void expect_code(const Result<T>& result, ErrorCode code) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, code) << describe(result.error());
  EXPECT_TRUE(result.error().message.ends_with('.')) << result.error().message;
}

TEST_F(MariadbShopTest, R016_the_event_commits_and_rolls_back_with_its_data) {
  NEEDS_SHOP();
  const auto placed = transaction(handle(), [&]() -> Result<EventId> {
    insert_order();
    return outbox_.add(handle(), order_event("1"));
  });
  ASSERT_TRUE(placed.ok()) << describe(placed.error());
  EXPECT_EQ(orders() + events(), "11");

  const auto undone = transaction(handle(), [&]() -> Result<void> {
    insert_order();
    value_of(outbox_.add(handle(), order_event("1")));
    return Error{ErrorCode::invalid_argument, Disposition::reject, "no.", "test", ""};
  });

  EXPECT_FALSE(undone.ok());
  EXPECT_EQ(orders() + events(), "11");
}

TEST_F(MariadbShopTest, Without_a_transaction_nothing_is_written) {
  NEEDS_SHOP();
  expect_code(outbox_.add(handle(), order_event("1")), ErrorCode::no_transaction);
  expect_code(outbox_.add(nullptr, order_event("1")), ErrorCode::invalid_argument);
  EXPECT_EQ(events(), "0");
  app_->run("SET autocommit = 0");
  value_of(outbox_.add(handle(), order_event("1")));
  app_->run("COMMIT");
  EXPECT_EQ(events(), "1");
}

TEST_F(MariadbShopTest, Bytes_arrive_under_any_character_set_and_sql_mode_of_the_application) {
  NEEDS_SHOP();
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  for (const auto* settings :
       {"SET NAMES latin1", "SET NAMES gbk", "SET NAMES utf8mb3", "SET NAMES utf8mb4",
        "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'", "SET sql_mode = ''"}) {
    app_->run(settings);
    auto event = order_event("ü'\\", all);
    event.headers = {{"tenant", "grün \"x\""}};
    value_of(transaction(handle(), [&] { return outbox_.add(handle(), event); }));
  }
  const auto store = database_->open_store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(6));
  for (const auto& claimed : batch.events) {
    EXPECT_EQ(claimed.event->payload, all);
    EXPECT_EQ(claimed.event->aggregate, (Aggregate{"order", "ü'\\"}));
    EXPECT_EQ(claimed.event->headers, (Headers{{"tenant", "grün \"x\""}}));
  }
}

TEST_F(MariadbShopTest, One_event_is_written_per_key_and_its_id_is_answered_again) {
  NEEDS_SHOP();
  const IdempotencyKey key{"orders-api", "request-1"};
  const auto place = [&](const NewEvent& event) {
    return transaction(handle(), [&] { return outbox_.add(handle(), event, key); });
  };
  auto event = order_event("1");
  event.id.reset();
  const auto first = value_of(place(event));

  EXPECT_EQ(value_of(place(event)), first);
  auto other = event;
  other.payload = "{\"other\":1}";
  expect_code(place(other), ErrorCode::key_reused);
  EXPECT_EQ(events(), "1");
}

TEST_F(MariadbShopTest, A_refused_batch_leaves_nothing_and_the_transaction_goes_on) {
  NEEDS_SHOP();
  const auto taken = order_event("1");
  value_of(transaction(handle(), [&] { return outbox_.add(handle(), taken); }));

  expect_ok(transaction(handle(), [&]() -> Result<void> {
    insert_order();
    const std::vector<NewEvent> batch = {order_event("2"), taken, order_event("3")};
    expect_code(outbox_.add_all(handle(), batch), ErrorCode::already_exists);
    return {};
  }));

  EXPECT_EQ(orders() + events(), "11");
}

TEST_F(MariadbShopTest, F46_after_a_lock_wait_timeout_the_whole_transaction_can_be_repeated) {
  NEEDS_SHOP();
  app_->run("SET innodb_lock_wait_timeout = 1");
  const auto other = database_->open_session();
  other->run("START TRANSACTION");
  other->run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ('order', '1', "
      "'t')");
  const auto place = [&] {
    return transaction(handle(), [&]() -> Result<EventId> {
      insert_order();
      return outbox_.add(handle(), order_event("1"));
    });
  };

  const auto refused = place();
  expect_code(refused, ErrorCode::busy);
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  EXPECT_EQ(orders(), "0") << "the server has undone one statement, and we the rest";
  other->run("COMMIT");

  value_of(place());
  EXPECT_EQ(orders(), "1");
}

TEST_F(MariadbShopTest, F47_a_deadlock_is_told_and_leaves_nothing) {
  NEEDS_SHOP();
  app_->run("INSERT INTO orders (id, total) VALUES (1, 0)");
  app_->run("START TRANSACTION");
  app_->run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ('order', '1', "
      "'t')");
  // Heavier, so that the server chooses the other one as victim.
  for (int i = 0; i < 50; ++i)
    insert_order();
  const auto rival = database_->open_session();
  auto* const rival_handle = static_cast<st_mysql*>(rival->handle());

  std::thread waits;
  const auto refused = transaction(rival_handle, [&]() -> Result<EventId> {
    rival->run("UPDATE orders SET total = 1 WHERE id = 1");
    waits = std::thread(
        [&] { EXPECT_EQ(app_->refusal("UPDATE orders SET total = 2 WHERE id = 1"), 0U); });
    return outbox_.add(rival_handle, order_event("1"));
  });
  waits.join();
  app_->run("COMMIT");

  expect_code(refused, ErrorCode::conflict);
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  EXPECT_EQ(database_->open_session()->run("SELECT total FROM orders WHERE id = 1"), "2");
}

TEST_F(MariadbShopTest, F47_a_lost_answer_to_commit_is_in_doubt) {
  NEEDS_SHOP();
  auto begun = MariadbTransaction::begin(handle());
  ASSERT_TRUE(begun.ok());
  value_of(outbox_.add(handle(), order_event("1")));
  database_->end_sessions();

  expect_code(begun->commit(), ErrorCode::commit_unknown);
  EXPECT_EQ(events(), "0");
}

TEST_F(MariadbShopTest, F52_a_statement_that_commits_by_itself_is_noticed_at_commit) {
  NEEDS_SHOP();
  const auto done = transaction(handle(), [&]() -> Result<void> {
    insert_order();
    app_->run("CREATE TABLE surprise (a INT)");
    return {};
  });

  expect_code(done, ErrorCode::no_transaction);
}

TEST_F(MariadbShopTest, Units_roll_back_when_the_outbox_refused) {
  NEEDS_SHOP();
  const auto done = unit_of_work(handle(), outbox_, [&](auto& unit) {
    insert_order();
    NewEvent nameless;
    static_cast<void>(unit.add(nameless));
  });

  EXPECT_FALSE(done.ok());
  EXPECT_EQ(orders() + events(), "00");
}

TEST_F(MariadbShopTest, R137_a_message_that_comes_again_has_one_effect) {
  NEEDS_SHOP();
  const MariadbInbox inbox;
  const auto deliver = [&](const InboxMessage& delivered) {
    return transaction(handle(), [&] {
      return inbox.process(handle(), delivered, [&](st_mysql*) { insert_order(); });
    });
  };
  EXPECT_EQ(value_of(deliver(message())), InboxResult::processed);
  EXPECT_EQ(value_of(deliver(message())), InboxResult::duplicate);
  EXPECT_EQ(value_of(deliver(message("M-1"))), InboxResult::processed) << "F53: bytes count";
  EXPECT_EQ(value_of(deliver(message("m-1 "))), InboxResult::processed);
  EXPECT_FALSE(deliver(message("m-1", "other")).ok());
  EXPECT_EQ(orders(), "3");
}

}  // namespace
}  // namespace postrider::testing
