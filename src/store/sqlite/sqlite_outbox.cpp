#include <utility>

#include <postrider/sqlite.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/common/sql_names.hpp"
#include "store/sqlite/sqlite_borrowed.hpp"
#include "store/sqlite/sqlite_keys.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace {

namespace statements = sql::store_sqlite;
using store::sqlite::BorrowedSqlite;

}  // namespace

class SqliteOutbox::Impl {
 public:
  explicit Impl(OutboxOptions options)
      : options_(std::move(options)),
        names_checked_(store::validate(options_.names, store::SchemaSupport::none)) {}

  Result<EventId> add(sqlite3* database, const NewEvent& event) {
    if (auto checked = check_values({&event, 1}); !checked) return checked.error();
    BorrowedSqlite connection(database, options_.names);
    if (auto checked = connection.check_transaction(); !checked) return checked.error();
    return insert(connection, event, ids_.id_of(event));
  }

  Result<EventId> add(sqlite3* database, const NewEvent& event, const IdempotencyKey& key) {
    if (auto checked = check_values({&event, 1}); !checked) return checked.error();
    if (auto checked = check(key); !checked) return checked.error();
    BorrowedSqlite connection(database, options_.names);
    if (auto checked = connection.check_transaction(); !checked) return checked.error();
    return connection.all_or_nothing([&] {
      const auto id = ids_.id_of(event);
      return store::sqlite::insert_once(connection, event, id, key,
                                        [&] { return insert(connection, event, id); });
    });
  }

  Result<std::vector<EventId>> add_all(sqlite3* database, std::span<const NewEvent> events) {
    if (auto checked = check_values(events); !checked) return checked.error();
    BorrowedSqlite connection(database, options_.names);
    if (auto checked = connection.check_transaction(); !checked) return checked.error();
    return connection.all_or_nothing([&]() -> Result<std::vector<EventId>> {
      std::vector<EventId> ids;
      ids.reserve(events.size());
      for (const auto& event : events) {
        auto written = insert(connection, event, ids_.id_of(event));
        if (!written) return written.error();
        ids.push_back(*written);
      }
      return ids;
    });
  }

 private:
  [[nodiscard]] Result<void> check_values(std::span<const NewEvent> events) const {
    if (!names_checked_) return names_checked_;
    for (const auto& event : events) {
      if (auto checked = check(event, options_.limits); !checked) return checked;
    }
    return {};
  }

  static Result<EventId> insert(BorrowedSqlite& connection, const NewEvent& event,
                                const EventId& id) {
    auto row = connection.query(statements::events_insert);
    if (auto bound = store::sqlite::bind_event(row, event, id); !bound) return bound.error();
    if (auto written = row.run(); !written) return written.error();
    if (connection.changes() != 1) return store::nothing_written("sqlite");
    return id;
  }

  OutboxOptions options_;
  Result<void> names_checked_;
  store::OutboxIds ids_;
};

SqliteOutbox::SqliteOutbox(OutboxOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
SqliteOutbox::~SqliteOutbox() = default;
SqliteOutbox::SqliteOutbox(SqliteOutbox&&) noexcept = default;
SqliteOutbox& SqliteOutbox::operator=(SqliteOutbox&&) noexcept = default;

Result<EventId> SqliteOutbox::add(sqlite3* database, const NewEvent& event) const {
  return impl_->add(database, event);
}

Result<EventId> SqliteOutbox::add(sqlite3* database, const NewEvent& event,
                                  const IdempotencyKey& key) const {
  return impl_->add(database, event, key);
}

Result<std::vector<EventId>> SqliteOutbox::add_all(sqlite3* database,
                                                   std::span<const NewEvent> events) const {
  return impl_->add_all(database, events);
}

}  // namespace postrider
