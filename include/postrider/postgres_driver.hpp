#pragma once
/// \file
/// How Postrider runs a statement on a connection of PostgreSQL that is not its own, whichever
/// library the application uses. Applications meet it only when they write an adapter.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/result.hpp>

namespace postrider {

/// One statement with its parameters.
struct PostgresCall {
  std::string_view name;                ///< for messages
  std::string sql;                      ///< each parameter stands there with a cast: $1::uuid[]
  std::vector<std::string> parameters;  ///< in PostgreSQL's binary form; none is null
};

struct PostgresAnswer {
  std::int64_t affected = 0;  ///< rows that an INSERT wrote, or that a SELECT returned
  std::vector<std::optional<std::string>> first_row;  ///< in text form; empty when there is none
};

/// The caller's open transaction, seen through its driver.
///
/// Thread safety: that of the connection.
class PostgresDriver {
 public:
  virtual ~PostgresDriver() = default;

  /// Errors: `no_transaction` when none is open or it has failed; `invalid_argument` when the
  /// connection is busy with something else; `unsupported` when its text is not UTF-8.
  virtual Result<void> check_transaction() = 0;

  /// Runs the statement in the transaction. Never begins or ends one.
  virtual Result<PostgresAnswer> run(const PostgresCall& call) = 0;
};

/// The error that a SQLSTATE stands for, for adapters. An empty one means that the connection was
/// lost. `constraint` and `server_message` may be empty; neither may hold a value of a row.
[[nodiscard]] Error postgres_error(std::string_view sqlstate, std::string_view server_message,
                                   std::string_view constraint, std::string_view doing);

/// Whether text travels unchanged in this client encoding. Errors: `unsupported`.
[[nodiscard]] Result<void> check_client_encoding(std::string_view encoding);

}  // namespace postrider
