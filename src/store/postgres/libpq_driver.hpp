#pragma once
/// \file
/// The application's own connection of libpq as a driver.
///
/// Thread safety: that of the connection.

#include <memory>

#include <postrider/postgres_driver.hpp>

struct pg_conn;
struct pg_result;

namespace postrider::store::postgres {

struct ClearResult {
  void operator()(pg_result* result) const noexcept;
};
using ResultHandle = std::unique_ptr<pg_result, ClearResult>;

/// The error that a result of the application's connection stands for.
[[nodiscard]] Error error_of(pg_conn* connection, const pg_result* result, std::string_view doing);

/// What every call checks first. Errors: `invalid_argument` for a null handle, a running command or
/// pipeline mode; `unavailable` when the connection is gone.
[[nodiscard]] Result<void> check_idle_handle(pg_conn* connection);

class LibpqDriver final : public PostgresDriver {
 public:
  explicit LibpqDriver(pg_conn* connection) : connection_(connection) {}

  Result<void> check_transaction() override;
  Result<PostgresAnswer> run(const PostgresCall& call) override;

 private:
  pg_conn* connection_;
};

}  // namespace postrider::store::postgres
