#pragma once
/// \file
/// An application's own connection of libpq, and a table of its own beside ours.

#include <libpq-fe.h>

#include <memory>
#include <string>

#include "backends/postgres_database.hpp"

namespace postrider::testing {

/// Plain libpq, as an application would use it. What fails fails the test.
class LibpqConnection {
 public:
  explicit LibpqConnection(const std::string& conninfo)
      : handle_(PQconnectdb(conninfo.c_str()), &PQfinish) {
    EXPECT_EQ(PQstatus(handle_.get()), CONNECTION_OK) << PQerrorMessage(handle_.get());
  }

  [[nodiscard]] pg_conn* handle() const { return handle_.get(); }

  void must(const std::string& sql) { static_cast<void>(value(sql)); }
  void fails(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(handle(), sql.c_str()),
                                                               &PQclear);
    EXPECT_EQ(PQresultStatus(result.get()), PGRES_FATAL_ERROR) << sql;
  }
  /// The first column of the first row; empty without one.
  std::string value(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(handle(), sql.c_str()),
                                                               &PQclear);
    const auto status = PQresultStatus(result.get());
    EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        << sql << ": " << PQerrorMessage(handle());
    return PQntuples(result.get()) == 0 ? "" : PQgetvalue(result.get(), 0, 0);
  }

 private:
  std::unique_ptr<pg_conn, decltype(&PQfinish)> handle_;
};

class PostgresShop {
 public:
  explicit PostgresShop(PostgresOptions options = {})
      : database_(std::move(options)), app_(database_.conninfo()), witness_(database_.conninfo()) {
    app_.must("CREATE TABLE orders (id bigserial PRIMARY KEY, total_cents bigint NOT NULL)");
  }

  [[nodiscard]] const PostgresDatabase& database() const { return database_; }
  [[nodiscard]] LibpqConnection& app() { return app_; }
  [[nodiscard]] pg_conn* handle() const { return app_.handle(); }

  void insert_order() { app_.must("INSERT INTO orders (total_cents) VALUES (2500)"); }
  /// Counted from another session, so only what was committed.
  [[nodiscard]] std::string orders() { return witness_.value("SELECT count(*) FROM orders"); }
  [[nodiscard]] std::string events() {
    return witness_.value("SELECT count(*) FROM outbox_events");
  }
  [[nodiscard]] LibpqConnection& witness() { return witness_; }

 private:
  PostgresDatabase database_;
  LibpqConnection app_;
  LibpqConnection witness_;
};

}  // namespace postrider::testing
