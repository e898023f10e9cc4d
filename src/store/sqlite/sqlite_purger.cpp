#include <fmt/format.h>

#include <utility>

#include <postrider/store/sqlite.hpp>

#include "base/timestamp_text.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// The two statements of what goes by its age alone.
struct ByAge {
  std::string_view purgeable;
  std::string_view purge;
};

ByAge by_age(Kept kept) {
  switch (kept) {
    case Kept::keys:
      return {statements::keys_purgeable, statements::keys_purge};
    case Kept::workers:
      return {statements::workers_purgeable, statements::workers_purge};
    default:
      return {statements::inbox_purgeable, statements::inbox_purge};
  }
}

/// What one slice works on.
struct Slice {
  const PurgeRequest& request;
  Timestamp now;
  std::int64_t last = 0;  ///< events only: where it ends

  [[nodiscard]] std::string before() const { return timestamp_text(now - request.older_than); }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(request.rows); }
};

/// Looks without a lock and, only if there is something to delete, takes it and looks again.
class SqlitePurger final : public Purger {
 public:
  explicit SqlitePurger(const SqliteOptions& options)
      : reader_(without_create(options), Access::read_only),
        writer_(without_create(options), Access::read_write) {}

  Result<PurgeSlice> purge(const PurgeRequest& request, const std::optional<Operator>& who,
                           Deadline deadline) override {
    if (auto checked = check(request); !checked) return checked.error();
    Slice slice{request, {}};
    auto found = reader_.read(deadline, [&]() -> Result<PurgeSlice> {
      const auto now = reader_.now(request.now);
      if (!now) return now.error();
      slice.now = *now;
      return request.kept == Kept::events ? look_at_events(slice) : look_by_age(slice);
    });
    if (!found || request.dry_run || found->rows == 0) return found;
    const auto deleted = writer_.write(deadline, [&] { return apply(slice, who); });
    if (!deleted) return deleted.error();
    found->rows = *deleted;
    return found;
  }

 private:
  Result<PurgeSlice> look_at_events(Slice& slice) {
    auto reach = reader_.query(statements::events_slice);
    reach.bind(":after", slice.request.after.value()).bind(":limit", slice.rows());
    reach.bind(":before", slice.before());
    if (!reach.next()) return failure_of(reach);
    slice.last = reach.integer(0);
    const bool full = reach.integer(1) == slice.rows();
    const bool old = reach.integer(2) != 0;

    auto count = reader_.query(statements::events_purgeable);
    bind_range(count, slice);
    if (!count.next()) return failure_of(count);
    return PurgeSlice{count.integer(0), Seq(slice.last), full && old};
  }

  Result<PurgeSlice> look_by_age(const Slice& slice) {
    const bool all = slice.request.dry_run;
    auto count = reader_.query(by_age(slice.request.kept).purgeable);
    count.bind(":before", slice.before()).bind(":limit", all ? std::int64_t{-1} : slice.rows());
    if (!count.next()) return failure_of(count);
    return PurgeSlice{count.integer(0), {}, !all && count.integer(0) == slice.rows()};
  }

  Result<std::int64_t> apply(const Slice& slice, const std::optional<Operator>& who) {
    auto deleted = slice.request.kept == Kept::events ? delete_events(slice) : delete_by_age(slice);
    if (!deleted || !who || *deleted == 0) return deleted;
    const auto kept = to_string(slice.request.kept);
    auto row = writer_.query(statements::audit_insert);
    row.bind(":now", timestamp_text(slice.now)).bind(":who", who->name);
    row.bind(":action", "purge").bind(":object", kept).bind(":reason", who->reason);
    row.bind(":detail", fmt::format("{} {}", *deleted, kept));
    if (auto written = row.run(); !written) return written.error();
    return deleted;
  }

  Result<std::int64_t> delete_events(const Slice& slice) {
    for (const auto statement : {statements::deliveries_delete, statements::events_delete}) {
      auto rows = writer_.query(statement);
      bind_range(rows, slice);
      if (auto done = rows.run(); !done) return done.error();
    }
    return writer_.changes();
  }

  Result<std::int64_t> delete_by_age(const Slice& slice) {
    auto rows = writer_.query(by_age(slice.request.kept).purge);
    rows.bind(":before", slice.before()).bind(":limit", slice.rows());
    if (auto done = rows.run(); !done) return done.error();
    return writer_.changes();
  }

  static void bind_range(SqliteQuery& query, const Slice& slice) {
    query.bind(":after", slice.request.after.value()).bind(":last", slice.last);
    query.bind(":before", slice.before());
  }

  // Each of these statements gives a row, or failed.
  static Error failure_of(const SqliteQuery& query) { return query.result().error(); }

  SqliteConnection reader_;
  SqliteConnection writer_;
};

}  // namespace
}  // namespace store::sqlite

std::unique_ptr<Purger> make_sqlite_purger(SqliteOptions options) {
  return std::make_unique<store::sqlite::SqlitePurger>(options);
}

}  // namespace postrider
