#include <algorithm>
#include <utility>

#include "store/memory/memory_database.hpp"

namespace postrider::testing {
namespace {

/// When the last thing of the event ended; none while something has not.
std::optional<Timestamp> completed_at(const Tables& tables, Seq seq, const EventRow& row) {
  if (!row.routed_at) return std::nullopt;
  auto last = *row.routed_at;
  auto delivery = tables.deliveries().lower_bound({seq, "", 0});
  for (; delivery != tables.deliveries().end() && delivery->first.event_seq == seq; ++delivery) {
    if (tables.is_open(delivery->first)) return std::nullopt;
    last = std::max(last, delivery->second.finished_at.value_or(last));
  }
  return last;
}

class MemoryPurger final : public Purger {
 public:
  explicit MemoryPurger(std::shared_ptr<MemoryDatabase> database)
      : database_(std::move(database)) {}

  Result<PurgeSlice> purge(const PurgeRequest& request, const std::optional<Operator>& who,
                           Deadline /*deadline*/) override {
    if (auto checked = check(request); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    const auto now = database_->time_of(request.now);
    const auto before = now - request.older_than;
    const auto slice = request.kept == Kept::events ? purge_events(tables, request, before)
                       : request.kept == Kept::keys ? purge_keys(tables, request, before)
                                                    : PurgeSlice{};
    if (who && slice.rows > 0 && !request.dry_run) {
      tables.audit().push_back({now, "purge", std::string(to_string(request.kept)), *who});
    }
    return slice;
  }

 private:
  static PurgeSlice purge_events(Tables& tables, const PurgeRequest& request, Timestamp before) {
    PurgeSlice slice{0, request.after, false};
    std::vector<Seq> old;
    std::size_t looked_at = 0;
    bool may_be_old = false;
    for (auto row = tables.events().upper_bound(request.after);
         row != tables.events().end() && looked_at < request.rows; ++row, ++looked_at) {
      slice.last = row->first;
      const auto created = row->second.event->created_at;
      may_be_old |= std::min(created, row->second.routed_at.value_or(created)) <= before;
      const auto completed = completed_at(tables, row->first, row->second);
      if (completed && *completed <= before) old.push_back(row->first);
    }
    slice.more = looked_at == request.rows && may_be_old;
    slice.rows = static_cast<std::int64_t>(old.size());
    if (request.dry_run) return slice;
    for (const auto seq : old)
      tables.erase_event(seq);
    return slice;
  }

  // In the order of their names and not of their age: all that are old go in the end.
  static PurgeSlice purge_keys(Tables& tables, const PurgeRequest& request, Timestamp before) {
    PurgeSlice slice;
    auto& keys = tables.keys();
    for (auto key = keys.begin(); key != keys.end();) {
      const bool old = key->second.created_at <= before;
      const bool room = slice.rows < static_cast<std::int64_t>(request.rows);
      if (old && (request.dry_run || room)) ++slice.rows;
      key = old && room && !request.dry_run ? keys.erase(key) : std::next(key);
    }
    slice.more = !request.dry_run && slice.rows == static_cast<std::int64_t>(request.rows);
    return slice;
  }

  std::shared_ptr<MemoryDatabase> database_;
};

}  // namespace

std::unique_ptr<Purger> make_memory_purger(std::shared_ptr<MemoryDatabase> database) {
  return std::make_unique<MemoryPurger>(std::move(database));
}

}  // namespace postrider::testing
