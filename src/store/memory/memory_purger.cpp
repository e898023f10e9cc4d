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
    const auto slice = purge_slice(tables, request, before);
    if (who && slice.rows > 0 && !request.dry_run) {
      tables.audit().push_back({now, "purge", std::string(to_string(request.kept)), *who});
    }
    return slice;
  }

 private:
  static PurgeSlice purge_slice(Tables& tables, const PurgeRequest& request, Timestamp before) {
    switch (request.kept) {
      case Kept::events:
        return purge_events(tables, request, before);
      case Kept::keys:
        return purge_by_age(tables.keys(), request,
                            [&](const auto& key) { return key.second.created_at <= before; });
      case Kept::workers:
        return purge_by_age(tables.workers(), request, [&](const auto& worker) {
          return has_ended(worker.second) && worker.second.last_seen_at <= before &&
                 !holds_an_attempt(tables, worker.first);
        });
      case Kept::receipts:
        break;
    }
    return {};
  }

  static bool has_ended(const WorkerRow& worker) {
    return worker.info.state == WorkerState::stopped || worker.info.state == WorkerState::dead;
  }

  static bool holds_an_attempt(const Tables& tables, const WorkerId& worker) {
    return std::any_of(tables.jobs().begin(), tables.jobs().end(), [&](const auto& job) {
      return job.second.worker == worker &&
             tables.find_delivery(job.first)->status == DeliveryStatus::dispatched;
    });
  }

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
  template <class Table, class Predicate>
  static PurgeSlice purge_by_age(Table& table, const PurgeRequest& request, Predicate is_old) {
    PurgeSlice slice;
    for (auto row = table.begin(); row != table.end();) {
      const bool old = is_old(*row);
      const bool room = slice.rows < static_cast<std::int64_t>(request.rows);
      if (old && (request.dry_run || room)) ++slice.rows;
      row = old && room && !request.dry_run ? table.erase(row) : std::next(row);
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
