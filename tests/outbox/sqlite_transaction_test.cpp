// How transactions of the write side end, on SQLite; the functions are the same for every driver.

#include <stdexcept>

#include <postrider/sqlite.hpp>

#include "outbox/outbox_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

class SqliteTransactionTest : public ::testing::Test {
 protected:
  /// One order and its event, inside whatever transaction is open.
  Result<EventId> place_order() {
    shop_.insert_order();
    return outbox_.add(shop_.handle(), order_placed());
  }
  void expect_rows(const std::string& count) {
    EXPECT_EQ(sqlite3_get_autocommit(shop_.handle()), 1) << "no transaction is left open";
    EXPECT_EQ(shop_.orders(), count);
    EXPECT_EQ(shop_.events(), count);
  }

  Shop shop_;
  SqliteOutbox outbox_;
};

// [transaction]
TEST_F(SqliteTransactionTest, R029_a_value_commits_and_comes_back) {
  const Result<EventId> placed = transaction(shop_.handle(), [&]() -> Result<EventId> {
    shop_.insert_order();
    return outbox_.add(shop_.handle(), order_placed());
  });

  EXPECT_TRUE(placed.ok());
  expect_rows("1");
}
// [transaction]

TEST_F(SqliteTransactionTest, Values_and_nothing_come_back_as_results) {
  const Result<int> number = transaction(shop_.handle(), [&] {
    EXPECT_TRUE(place_order().ok());
    return 5;
  });
  EXPECT_EQ(value_of(number), 5);
  const Result<void> nothing =
      transaction(shop_.handle(), [&] { EXPECT_TRUE(place_order().ok()); });
  EXPECT_TRUE(nothing.ok());
  const auto only_movable = transaction(shop_.handle(), [&] { return std::make_unique<int>(7); });
  EXPECT_EQ(**&only_movable.value(), 7);
  expect_rows("2");
}

TEST_F(SqliteTransactionTest, R032_an_error_by_value_rolls_back_and_comes_back) {
  const Error error{ErrorCode::not_found, Disposition::reject, "no such customer.", "shop", "404"};
  const auto placed = transaction(shop_.handle(), [&]() -> Result<EventId> {
    EXPECT_TRUE(place_order().ok());
    return error;
  });
  EXPECT_EQ(expect_refused(placed, ErrorCode::not_found).native_code, "404");
  expect_rows("0");
}

struct Unusual {
  int number;
};

template <class Thrown>
void expect_passed_on(Shop& shop, Thrown thrown, auto same) {
  try {
    static_cast<void>(transaction(shop.handle(), [&] {
      shop.insert_order();
      throw thrown;
    }));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Thrown& caught) {
    EXPECT_TRUE(same(caught));
  }
}

TEST_F(SqliteTransactionTest, R031_an_exception_of_any_type_rolls_back_and_goes_on) {
  expect_passed_on(shop_, std::runtime_error("a"),
                   [](const auto& e) { return std::string(e.what()) == "a"; });
  expect_passed_on(shop_, Unusual{9}, [](const auto& e) { return e.number == 9; });
  expect_passed_on(shop_, 42, [](int e) { return e == 42; });
  expect_rows("0");
}

TEST_F(SqliteTransactionTest, R031_it_is_the_same_object_that_is_thrown_on) {
  const auto thrown = std::make_exception_ptr(std::logic_error("x"));
  try {
    static_cast<void>(transaction(shop_.handle(), [&] { std::rethrow_exception(thrown); }));
  } catch (...) {
    EXPECT_EQ(std::current_exception(), thrown);
  }
  expect_rows("0");
}

TEST_F(SqliteTransactionTest, R033_a_scope_that_is_left_without_commit_rolls_back) {
  {
    auto scoped = SqliteTransaction::begin(shop_.handle());
    ASSERT_TRUE(scoped.ok());
    EXPECT_TRUE(place_order().ok());
  }
  expect_rows("0");
  {
    auto scoped = SqliteTransaction::begin(shop_.handle());
    ASSERT_TRUE(scoped.ok());
    EXPECT_TRUE(place_order().ok());
    expect_ok(scoped->commit());
    expect_refused(scoped->commit(), ErrorCode::no_transaction);
    scoped->roll_back();
  }
  expect_rows("1");
}

TEST_F(SqliteTransactionTest, A_transaction_inside_another_is_refused_and_leaves_it_alone) {
  shop_.app().must("BEGIN IMMEDIATE");
  shop_.insert_order();
  expect_refused(transaction(shop_.handle(), [] { ADD_FAILURE() << "not called"; }),
                 ErrorCode::invalid_argument);
  shop_.app().must("COMMIT");
  EXPECT_EQ(shop_.orders(), "1");
  expect_refused(SqliteTransaction::begin(nullptr), ErrorCode::invalid_argument);
}

TEST_F(SqliteTransactionTest, The_work_is_not_called_when_the_database_is_locked) {
  RawConnection other(shop_.database().path());
  other.must("BEGIN IMMEDIATE");
  expect_refused(transaction(shop_.handle(), [] { ADD_FAILURE() << "not called"; }),
                 ErrorCode::busy);
}

TEST_F(SqliteTransactionTest, R007_a_commit_that_fails_leaves_nothing) {
  shop_.app().must("PRAGMA foreign_keys = ON");
  shop_.app().must(
      "CREATE TABLE lines (order_id INTEGER REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");
  const auto failed = transaction(shop_.handle(), [&] {
    EXPECT_TRUE(place_order().ok());
    shop_.app().must("INSERT INTO lines VALUES (99)");
  });
  expect_refused(failed, ErrorCode::not_found);
  expect_rows("0");
}

TEST_F(SqliteTransactionTest, Work_that_ends_the_transaction_itself_is_told) {
  const auto ended = transaction(shop_.handle(), [&] { shop_.app().must("ROLLBACK"); });
  expect_refused(ended, ErrorCode::no_transaction);
  expect_rows("0");
}

TEST_F(SqliteTransactionTest, R021_a_full_database_takes_the_order_back_too) {
  const auto pages = shop_.app().value("PRAGMA page_count");
  shop_.app().must("PRAGMA max_page_count = " + pages);
  const auto placed = transaction(shop_.handle(), [&]() -> Result<EventId> {
    shop_.insert_order();
    NewEvent event = order_placed();
    event.payload = std::string(100'000, 'x');
    return outbox_.add(shop_.handle(), event);
  });
  expect_refused(placed, ErrorCode::storage_failed);
  expect_rows("0");
}

// [unit-of-work]
TEST_F(SqliteTransactionTest, R029_a_unit_of_work_is_given_the_outbox) {
  const Result<std::string> order = unit_of_work(shop_.handle(), [&](Outbox& outbox) {
    shop_.insert_order();
    EXPECT_TRUE(outbox.add(order_placed()).ok());
    return std::string("order-1");
  });

  EXPECT_EQ(value_of(order), "order-1");
  expect_rows("1");
}
// [unit-of-work]

TEST_F(SqliteTransactionTest, R030_a_unit_adds_several_events_and_keys_in_one_commit) {
  const auto ids = unit_of_work(shop_.handle(), outbox_, [&](Outbox& outbox) {
    auto keyed = outbox.add(order_placed(), {"api", "1"});
    EXPECT_TRUE(keyed.ok());
    return outbox.add_all(std::vector{order_placed("2"), order_placed("3")});
  });
  EXPECT_EQ(value_of(ids).size(), 2U);
  EXPECT_EQ(shop_.events(), "3");
}

TEST_F(SqliteTransactionTest, R021_a_unit_rolls_back_when_an_event_failed_and_nobody_cared) {
  const auto placed = unit_of_work(shop_.handle(), [&](Outbox& outbox) {
    shop_.insert_order();
    NewEvent nameless;
    static_cast<void>(outbox.add(nameless));
    EXPECT_TRUE(outbox.add(order_placed()).ok());
    return 1;
  });
  EXPECT_THAT(expect_refused(placed, ErrorCode::invalid_argument).message, HasSubstr("type"));
  expect_rows("0");
}

TEST_F(SqliteTransactionTest, R031_an_exception_in_a_unit_rolls_back) {
  EXPECT_THROW(static_cast<void>(unit_of_work(shop_.handle(),
                                              [&](Outbox& outbox) {
                                                shop_.insert_order();
                                                EXPECT_TRUE(outbox.add(order_placed()).ok());
                                                throw Unusual{1};
                                              })),
               Unusual);
  expect_rows("0");
}

}  // namespace
}  // namespace postrider::testing
