#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include <postrider/store/mariadb.hpp>

#include "store/mariadb/mariadb_connection.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider {
namespace store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

/// The two statements of what goes by its age alone.
struct ByAge {
  std::string_view purgeable;
  std::string_view purge;
};

ByAge by_age(Kept kept) {
  if (kept == Kept::keys) return {statements::keys_purgeable, statements::keys_purge};
  return {statements::inbox_purgeable, statements::inbox_purge};
}

/// What one slice works on.
struct Slice {
  const PurgeRequest& request;
  Timestamp now;
  std::int64_t last = 0;  ///< events only: where it ends

  [[nodiscard]] Timestamp before() const { return now - request.older_than; }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(request.rows); }
};

/// Looks without a lock and, only if there is something to delete, takes it and looks again.
class MariadbPurger final : public Purger {
 public:
  explicit MariadbPurger(const MariadbOptions& options) : reader_(options), writer_(options) {}

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

    const auto seqs = purgeable(reader_, slice, "");
    if (!seqs) return seqs.error();
    return PurgeSlice{std::ssize(*seqs), Seq(slice.last), full && old};
  }

  Result<PurgeSlice> look_by_age(const Slice& slice) {
    const bool all = slice.request.dry_run;
    auto count = reader_.query(by_age(slice.request.kept).purgeable);
    count.bind(":before", slice.before())
        .bind(":limit", all ? std::numeric_limits<std::int64_t>::max() : slice.rows());
    if (!count.next()) return failure_of(count);
    return PurgeSlice{count.integer(0), {}, !all && count.integer(0) == slice.rows()};
  }

  Result<std::int64_t> apply(const Slice& slice, const std::optional<Operator>& who) {
    auto deleted = slice.request.kept == Kept::events ? delete_events(slice) : delete_by_age(slice);
    if (!deleted || !who || *deleted == 0) return deleted;
    const auto kept = to_string(slice.request.kept);
    auto row = writer_.query(statements::audit_insert);
    row.bind(":now", slice.now).bind(":who", who->name);
    row.bind(":action", "purge").bind(":object", kept).bind(":reason", who->reason);
    row.bind(":detail", fmt::format("{} {}", *deleted, kept));
    if (auto written = row.run(); !written) return written.error();
    return deleted;
  }

  /// Locks what looks as if it could go, and looks again: from then on nobody can give these events
  /// a delivery, as its foreign key would need a lock on the event.
  Result<std::int64_t> delete_events(const Slice& slice) {
    const auto locked = purgeable(writer_, slice, "FOR UPDATE SKIP LOCKED");
    if (!locked) return locked.error();
    const auto seen_again = purgeable(writer_, slice, "");
    if (!seen_again) return seen_again.error();
    std::vector<std::int64_t> seqs;
    std::set_intersection(locked->begin(), locked->end(), seen_again->begin(), seen_again->end(),
                          std::back_inserter(seqs));
    if (seqs.empty()) return std::int64_t{0};
    for (const auto statement : {statements::deliveries_delete, statements::events_delete}) {
      auto rows = writer_.query(statement);
      rows.bind_list(":seqs", seqs);
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

  static Result<std::vector<std::int64_t>> purgeable(MariadbConnection& connection,
                                                     const Slice& slice, std::string lock) {
    auto rows = connection.query(statements::events_purgeable);
    rows.bind(":after", slice.request.after.value()).bind(":last", slice.last);
    rows.bind(":before", slice.before()).bind_sql(":lock", std::move(lock));
    return integers_of(rows);
  }

  // Each of these statements gives a row, or failed.
  static Error failure_of(const MariadbQuery& query) { return query.result().error(); }

  MariadbConnection reader_;
  MariadbConnection writer_;
};

}  // namespace
}  // namespace store::mariadb

std::unique_ptr<Purger> make_mariadb_purger(MariadbOptions options) {
  return std::make_unique<store::mariadb::MariadbPurger>(options);
}

}  // namespace postrider
