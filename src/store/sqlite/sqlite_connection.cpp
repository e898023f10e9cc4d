#include "store/sqlite/sqlite_connection.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/assert.hpp"
#include "base/timestamp_text.hpp"
#include "store/common/sql_names.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {
namespace {

/// A longer wait between two looks at a lock adds latency, a shorter one costs CPU. Commits with
/// fsync take about half a millisecond on an SSD.
constexpr std::uint64_t longest_lock_wait_us = 8'000;

bool is_fsync_failure(int code) {
  return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
}

/// Codes after which the handle is not trusted any more.
bool spoils_handle(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_IOERR || primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
         primary == SQLITE_CANTOPEN || code == SQLITE_READONLY_DBMOVED;
}

}  // namespace

std::string_view statement_name(std::string_view text) {
  const auto& all = sql::store_sqlite::statements;
  const auto* const found = std::find_if(std::begin(all), std::end(all),
                                         [&](const auto& each) { return each.text == text; });
  return found == std::end(all) ? text : found->name;
}

SqliteQuery::SqliteQuery(SqliteFailures& failures, sqlite3_stmt* statement, std::string_view text)
    : failures_(&failures), statement_(statement), text_(text) {
  // Two runs of one statement at a time would overwrite each other.
  POSTRIDER_ASSERT(sqlite3_stmt_busy(statement) == 0);
}

SqliteQuery::SqliteQuery(SqliteFailures& failures, Error error)
    : failures_(&failures), error_(std::move(error)) {}

SqliteQuery::~SqliteQuery() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

int SqliteQuery::index_of(const char* name) const {
  const int index = sqlite3_bind_parameter_index(statement_, name);
  POSTRIDER_ASSERT(index > 0);
  return index;
}

void SqliteQuery::keep(int code) {
  if (code != SQLITE_OK && !error_)
    error_ = failures_->failure(code, statement_name(text_), Phase::ordinary);
}

SqliteQuery& SqliteQuery::bind(const char* name, std::int64_t value) {
  if (!error_) keep(sqlite3_bind_int64(statement_, index_of(name), value));
  return *this;
}

SqliteQuery& SqliteQuery::bind(const char* name, std::string_view text) {
  // A null pointer would be bound as NULL, and an empty view may hold one.
  const char* const data = text.data() == nullptr ? "" : text.data();
  if (!error_) {
    keep(sqlite3_bind_text64(statement_, index_of(name), data, text.size(), SQLITE_TRANSIENT,
                             SQLITE_UTF8));
  }
  return *this;
}

SqliteQuery& SqliteQuery::bind_if(const char* name, const std::optional<std::string>& text) {
  return text ? bind(name, std::string_view(*text)) : *this;
}

SqliteQuery& SqliteQuery::bind_real(const char* name, double value) {
  if (!error_) keep(sqlite3_bind_double(statement_, index_of(name), value));
  return *this;
}

SqliteQuery& SqliteQuery::bind_borrowed_text(const char* name, std::string_view text) {
  const char* const data = text.data() == nullptr ? "" : text.data();
  if (!error_) {
    keep(sqlite3_bind_text64(statement_, index_of(name), data, text.size(), SQLITE_STATIC,
                             SQLITE_UTF8));
  }
  return *this;
}

SqliteQuery& SqliteQuery::bind_borrowed_bytes(const char* name, std::string_view bytes) {
  const char* const data = bytes.data() == nullptr ? "" : bytes.data();
  if (!error_) {
    keep(sqlite3_bind_blob64(statement_, index_of(name), data, bytes.size(), SQLITE_STATIC));
  }
  return *this;
}

bool SqliteQuery::next() {
  if (error_) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) keep(code);
  return false;
}

Result<void> SqliteQuery::run() {
  while (next()) {
  }
  return result();
}

Result<void> SqliteQuery::result() const {
  if (error_) return *error_;
  return {};
}

bool SqliteQuery::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t SqliteQuery::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::optional<std::int64_t> SqliteQuery::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

double SqliteQuery::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string SqliteQuery::text(int column) const {
  // The order matters: asking for the bytes may convert the value, and with it its size.
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const std::size_t count = size(column);
  return count == 0 ? std::string() : std::string(static_cast<const char*>(bytes), count);
}

std::optional<std::string> SqliteQuery::optional_text(int column) const {
  if (is_null(column)) return std::nullopt;
  return text(column);
}

std::size_t SqliteQuery::size(int column) const {
  return static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
}

void SqliteConnection::CloseDatabase::operator()(sqlite3* database) const noexcept {
  sqlite3_close_v2(database);
}

void SqliteConnection::FinalizeStatement::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

SqliteConnection::SqliteConnection(SqliteOptions options, Access access)
    : options_(std::move(options)),
      access_(access),
      random_(system_random()),
      deadline_(Deadline::after(milliseconds::zero())) {}

SqliteConnection::~SqliteConnection() {
  close();
}

Result<void> SqliteConnection::ready(Deadline deadline) {
  deadline_ = deadline;
  if (final_) return *final_;
  if (auto checked = check_process(); !checked) return checked;
  if (reopen_) close();
  if (database_) return {};
  if (auto checked = check_options(); !checked) return checked;
  return open();
}

Result<void> SqliteConnection::check_process() {
  if (!database_ || process_ == ::getpid()) return {};
  return Error{ErrorCode::invalid_argument, Disposition::stop,
               fmt::format("this object was opened by process {} before a fork. Make a new one in "
                           "the child.",
                           process_),
               "sqlite", ""};
}

Result<void> SqliteConnection::check_options() const {
  if (options_.path.empty() || options_.path == ":memory:") {
    return Error{ErrorCode::config_invalid, Disposition::stop,
                 "the outbox needs a database file that other programs can open. Name one.",
                 "sqlite", ""};
  }
  return validate(options_.names, SchemaSupport::none);
}

Result<void> SqliteConnection::open() {
  if (!options_.create && ::access(options_.path.c_str(), F_OK) != 0) {
    return Error{ErrorCode::not_found, Disposition::stop,
                 fmt::format("there is no database file {}. Check the path, or create it with "
                             "`postrider migrate`.",
                             options_.path),
                 "sqlite", ""};
  }
  int flags = access_ == Access::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (access_ != Access::read_only && options_.create) flags |= SQLITE_OPEN_CREATE;
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(options_.path.c_str(), &opened, flags, nullptr);
  database_.reset(opened);
  process_ = ::getpid();
  if (code != SQLITE_OK) {
    auto error = failure(code, "open the database", Phase::ordinary);
    close();
    return error;
  }
  auto configured = configure();
  if (!configured) close();
  return configured;
}

Result<void> SqliteConnection::configure() {
  sqlite3_busy_handler(database_.get(), &SqliteConnection::wait_for_lock, this);
  constexpr auto doing = "configure the connection";
  if (auto done = execute("PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0;", doing); !done) {
    return done;
  }
  if (access_ == Access::read_only) return {};
  if (auto done = execute("PRAGMA synchronous = FULL;", doing); !done) return done;
  if (auto done = enter_wal(); !done) return done;
  return check_wal();
}

// SQLite does not ask the busy handler for this one: two programs that open a new file at the same
// moment would fail at once.
Result<void> SqliteConnection::enter_wal() {
  for (int waits = 0;; ++waits) {
    auto done = execute("PRAGMA journal_mode = WAL;", "enter WAL mode");
    if (done || done.error().code != ErrorCode::busy || wait_for_lock(this, waits) == 0) {
      return done;
    }
  }
}

Result<void> SqliteConnection::check_wal() {
  // The pragma answers with the mode that it ended in and not with an error.
  auto mode = query("PRAGMA journal_mode");
  if (mode.next() && mode.text(0) == "wal") return {};
  if (auto read = mode.result(); !read) return read;
  return Error{ErrorCode::unsupported, Disposition::stop,
               fmt::format("the database cannot use a write-ahead log where it is ({} instead). "
                           "Put the file on a local disk.",
                           mode.text(0)),
               "sqlite", ""};
}

int SqliteConnection::wait_for_lock(void* self, int waits) noexcept {
  auto& connection = *static_cast<SqliteConnection*>(self);
  const auto remaining = connection.deadline_.remaining();
  if (remaining == milliseconds::zero()) return 0;
  // Chance keeps several processes from meeting at every look.
  const std::uint64_t longest =
      std::min(longest_lock_wait_us, std::uint64_t{500} << std::min(waits, 4));
  const std::chrono::microseconds wait(longest / 2 + connection.random_->next() % longest);
  std::this_thread::sleep_for(std::min<std::chrono::microseconds>(wait, remaining));
  return 1;
}

SqliteQuery SqliteConnection::query(std::string_view statement) {
  POSTRIDER_ASSERT(database_ != nullptr);
  auto& prepared = prepared_[statement.data()];
  if (!prepared) {
    const auto sql = substitute_names(statement, options_.names);
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    if (code != SQLITE_OK)
      return {*this, failure(code, statement_name(statement), Phase::ordinary)};
    prepared.reset(made);
  }
  return {*this, prepared.get(), statement};
}

Result<void> SqliteConnection::run_script(std::string_view sql, std::string_view doing) {
  POSTRIDER_ASSERT(database_ != nullptr);
  return execute(substitute_names(sql, options_.names).c_str(), doing);
}

Result<void> SqliteConnection::execute(const char* sql, std::string_view doing, Phase phase) {
  const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(code, doing, phase);
  return {};
}

std::int64_t SqliteConnection::changes() const {
  return sqlite3_changes64(database_.get());
}

Result<void> SqliteConnection::commit() {
  auto committed = execute("COMMIT", "commit", Phase::commit);
  if (!committed) roll_back();
  return committed;
}

void SqliteConnection::roll_back() noexcept {
  // Some errors have rolled back already, and then this would be one more.
  if (sqlite3_get_autocommit(database_.get()) != 0) return;
  sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<Timestamp> SqliteConnection::now(std::optional<Timestamp> given) {
  if (given) return *given;
  auto reading = query(sql::store_sqlite::clock_now);
  if (!reading.next()) return reading.result().error();
  const auto time = parse_timestamp(reading.text(0));
  POSTRIDER_ASSERT(time.has_value());
  return *time;
}

std::string SqliteConnection::log_path() const {
  return sqlite3_filename_wal(sqlite3_db_filename(database_.get(), "main"));
}

Result<std::int64_t> SqliteConnection::data_version() {
  auto row = query("PRAGMA data_version");
  if (row.next()) return row.integer(0);
  return row.result().error();
}

Error SqliteConnection::failure(int code, std::string_view doing, Phase phase) {
  auto error = sqlite_error(code, doing, sqlite3_errmsg(database_.get()), phase);
  if (is_fsync_failure(code)) final_ = error;
  if (spoils_handle(code)) reopen_ = true;
  return error;
}

void SqliteConnection::close() noexcept {
  reopen_ = false;
  if (database_ && process_ != ::getpid()) {
    // A forked child must not touch the parent's handle: closing it could checkpoint and delete
    // the log under the parent's feet. The memory is left to the end of the process.
    for (auto& [statement, prepared] : prepared_)
      static_cast<void>(prepared.release());
    static_cast<void>(database_.release());
  }
  prepared_.clear();
  database_.reset();
}

}  // namespace postrider::store::sqlite
