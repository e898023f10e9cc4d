#include "common/database.hpp"

#include <memory>

#include <sqlite3.h>

#include <postrider/store/sqlite.hpp>

namespace examples {
namespace {

constexpr int busy_timeout_ms = 5000;
constexpr postrider::milliseconds migration_patience{30'000};

using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

void expect(sqlite3* database, int code, int expected) {
  if (code != expected) {
    throw DatabaseError(sqlite3_extended_errcode(database), sqlite3_errmsg(database));
  }
}

Statement prepare(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  expect(
      database,
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr),
      SQLITE_OK);
  return {statement, &sqlite3_finalize};
}

int bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *number);
  }
  const auto& text = std::get<std::string>(value);
  return sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT,
                             SQLITE_UTF8);
}

SqlRow row_of(sqlite3_stmt* statement) {
  SqlRow row;
  for (int column = 0; column < sqlite3_column_count(statement); ++column) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
    row.emplace_back(bytes == nullptr ? "" : bytes, bytes == nullptr ? 0 : size);
  }
  return row;
}

}  // namespace

bool DatabaseError::is_failed_check() const noexcept {
  return code_ == SQLITE_CONSTRAINT_CHECK;
}

Database::Database(const std::string& path) {
  if (sqlite3_open(path.c_str(), &handle_) != SQLITE_OK) {
    const DatabaseError error(sqlite3_extended_errcode(handle_), sqlite3_errmsg(handle_));
    sqlite3_close(handle_);
    throw error;
  }
  sqlite3_busy_timeout(handle_, busy_timeout_ms);
  script("PRAGMA foreign_keys = ON");
}

Database::~Database() {
  sqlite3_close(handle_);
}

void Database::script(const std::string& sql) {
  expect(handle_, sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
}

std::vector<SqlRow> Database::run(std::string_view sql, std::initializer_list<SqlValue> values) {
  const auto statement = prepare(handle_, sql);
  int index = 0;
  for (const auto& value : values)
    expect(handle_, bind(statement.get(), ++index, value), SQLITE_OK);
  std::vector<SqlRow> rows;
  int step = sqlite3_step(statement.get());
  for (; step == SQLITE_ROW; step = sqlite3_step(statement.get()))
    rows.push_back(row_of(statement.get()));
  expect(handle_, step, SQLITE_DONE);
  return rows;
}

std::string Database::value(std::string_view sql, std::initializer_list<SqlValue> values) {
  auto rows = run(sql, values);
  if (rows.size() != 1) throw std::logic_error("not exactly one row: " + std::string(sql));
  return std::move(rows[0].at(0));
}

std::int64_t Database::number(std::string_view sql, std::initializer_list<SqlValue> values) {
  return std::stoll(value(sql, values));
}

void create_postrider_tables(const std::string& path) {
  postrider::SqliteOptions options;
  options.path = path;
  options.create = true;
  const auto migrator = postrider::make_sqlite_migrator(options);
  value_or_throw(migrator->up(std::nullopt, postrider::Deadline::after(migration_patience)));
}

}  // namespace examples
