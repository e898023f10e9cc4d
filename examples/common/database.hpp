#pragma once
/// \file
/// What an application on SQLite has anyway: an open database and statements with parameters.
/// Nothing here is Postrider's; any other layer over sqlite3 does as well.

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;

namespace examples {

class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// SQLite's extended result code.
  [[nodiscard]] int code() const noexcept { return code_; }
  /// A CHECK of the schema said no.
  [[nodiscard]] bool is_failed_check() const noexcept;

 private:
  int code_;
};

using SqlValue = std::variant<std::int64_t, std::string>;
using SqlRow = std::vector<std::string>;  ///< columns as text; NULL is empty

/// A connection. Failures are thrown, so a transaction around them rolls back.
///
/// Blocking: up to 5 s while another connection writes.
/// Thread safety: one thread at a time; a second thread opens a second one.
class Database {
 public:
  /// Creates the file when there is none.
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs statements without parameters and without answer.
  void script(const std::string& sql);
  /// Runs one statement, with a value for each `?`, and returns its rows.
  std::vector<SqlRow> run(std::string_view sql, std::initializer_list<SqlValue> values = {});
  /// The first column of the only row.
  std::string value(std::string_view sql, std::initializer_list<SqlValue> values = {});
  std::int64_t number(std::string_view sql, std::initializer_list<SqlValue> values = {});

  [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

/// Brings the tables of Postrider into the database, as `postrider migrate` does.
void create_postrider_tables(const std::string& path);

/// The value of a call, or its error thrown: for a program that has nothing else to do about it.
template <class Result>
auto value_or_throw(Result&& result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return std::forward<Result>(result).value();
}

}  // namespace examples
