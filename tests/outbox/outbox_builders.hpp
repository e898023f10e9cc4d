#pragma once
/// \file
/// What the tests of the write side share: an event, errors that must come, a shop on SQLite.

#include <sqlite3.h>

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/outbox.hpp>

#include "backends/sqlite_database.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {

inline constexpr auto placed_payload = R"({"orderId":1,"totalCents":2500})";

[[nodiscard]] inline NewEvent order_placed(const std::string& order = "1") {
  NewEvent event;
  event.aggregate = Aggregate{"order", order};
  event.type = "order.placed";
  event.payload = placed_payload;
  return event;
}

/// The error of a call that must fail with this code.
template <class T>
Error expect_refused(const Result<T>& result, ErrorCode code) {
  if (result.ok()) {
    ADD_FAILURE() << "expected " << to_string(code) << " and the call succeeded";
    return {};
  }
  EXPECT_EQ(result.error().code, code) << describe(result.error());
  EXPECT_TRUE(result.error().message.ends_with('.')) << result.error().message;
  return result.error();
}

/// A database with our tables and one of the application, and the application's connection to it.
class Shop {
 public:
  explicit Shop(const SchemaNames& names = {}) : database_(names), app_(database_.path()) {
    app_.must("CREATE TABLE orders (id INTEGER PRIMARY KEY, total_cents INTEGER NOT NULL)");
  }

  [[nodiscard]] const SqliteDatabase& database() const { return database_; }
  [[nodiscard]] RawConnection& app() { return app_; }
  [[nodiscard]] sqlite3* handle() const { return app_.handle(); }

  void insert_order() { app_.must("INSERT INTO orders (total_cents) VALUES (2500)"); }
  [[nodiscard]] std::string orders() { return app_.value("SELECT count(*) FROM orders"); }
  [[nodiscard]] std::string events() { return app_.value("SELECT count(*) FROM outbox_events"); }

 private:
  SqliteDatabase database_;
  RawConnection app_;
};

}  // namespace postrider::testing
