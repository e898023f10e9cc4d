#pragma once
/// \file
/// A statement with its parameters, and the rows that it answers.
///
/// Parameters are written into the text as literals: a statement is one round trip, nothing has to
/// be prepared anew after a lost connection, and lists need no tricks. All literals are made here.
/// On our own connections a literal is quoted with backslashes, which the session's character set
/// (utf8mb4) and sql_mode make unambiguous; on an application's connection, whose settings are its
/// own, it is hexadecimal.
///
/// The first error of a query stays with it and turns every later step into nothing, so that a
/// caller binds and reads in a row and asks once at the end.
///
/// Thread safety: one thread at a time per connection and what came from it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

struct st_mysql_res;

namespace postrider::store::mariadb {

/// The name under which messages know a statement: that of its file.
[[nodiscard]] std::string_view statement_name(std::string_view text);

enum class Quoting : std::uint8_t { backslashes, hexadecimal };

/// 'it\'s': text as a literal.
[[nodiscard]] std::string text_literal(std::string_view text, Quoting quoting);
/// Bytes, whatever they are, as a literal that no character set touches.
[[nodiscard]] std::string bytes_literal(std::string_view bytes, Quoting quoting);
/// "2026-01-01 00:00:00.000000", which compares with DATETIME(6).
[[nodiscard]] std::string datetime_text(Timestamp time);
/// The way back. Nothing for any other form.
[[nodiscard]] std::optional<Timestamp> parse_datetime(std::string_view text);

struct FreeResult {
  void operator()(st_mysql_res* result) const noexcept;
};
using ResultRows = std::unique_ptr<st_mysql_res, FreeResult>;

/// Who sends a statement.
class Executor {
 public:
  /// Null when the statement gives no rows.
  virtual Result<ResultRows> execute(const std::string& sql, std::string_view doing) = 0;
  [[nodiscard]] virtual Quoting quoting() const = 0;

 protected:
  ~Executor() = default;
};

/// One run of a statement.
///
/// Requires: a name given to `bind` stands in the statement; a column read is there.
class MariadbQuery {
 public:
  /// `text` has its names filled in already; `name` is for messages.
  MariadbQuery(Executor& executor, std::string_view text, std::string_view name)
      : executor_(&executor), text_(text), name_(name) {}

  /// What is not bound is NULL.
  MariadbQuery& bind(const char* name, std::int64_t value);
  MariadbQuery& bind(const char* name, std::string_view text);
  MariadbQuery& bind_if(const char* name, const std::optional<std::string>& text);
  MariadbQuery& bind_bytes(const char* name, std::string_view bytes);
  MariadbQuery& bind(const char* name, Timestamp time);
  /// A list in parentheses for IN. An empty one is a list of NULL, in which nothing is.
  MariadbQuery& bind_list(const char* name, std::span<const std::int64_t> values);
  MariadbQuery& bind_list(const char* name, std::span<const std::string> texts);
  /// SQL of our own making.
  MariadbQuery& bind_sql(const char* name, std::string sql);

  /// Of a statement that inserts: ends one tuple of VALUES with what is bound; the next one begins
  /// with nothing bound.
  MariadbQuery& end_tuple();
  /// How much text the ended tuples are.
  [[nodiscard]] std::size_t tuples_size() const { return tuples_.size(); }

  /// Goes to the next row; false at the end and after an error.
  bool next();
  Result<void> run();
  /// The error that made `next` say false, if it was one.
  [[nodiscard]] Result<void> result() const;

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::optional<std::int64_t> optional_integer(int column) const;
  /// With every byte; NULL is empty.
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::optional<std::string> optional_text(int column) const;
  [[nodiscard]] std::optional<Timestamp> time(int column) const;
  [[nodiscard]] std::size_t size(int column) const;

 private:
  [[nodiscard]] std::string render() const;
  void render(std::string_view text, std::string& sql) const;
  [[nodiscard]] std::size_t tuple_begin() const;
  [[nodiscard]] std::size_t tuple_end() const;
  void keep_bound(const char* name, std::string literal);

  Executor* executor_;
  std::string_view text_;
  std::string_view name_;
  std::map<std::string, std::string, std::less<>> bound_;
  std::string tuples_;  ///< ended, with commas between them
  bool sent_ = false;
  ResultRows rows_;
  char** row_ = nullptr;
  unsigned long* lengths_ = nullptr;
  std::optional<Error> error_;
};

}  // namespace postrider::store::mariadb
