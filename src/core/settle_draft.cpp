#include "core/settle_draft.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace postrider::core {
namespace {

template <class T>
void move_behind(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <class T>
void erase_of(std::vector<T>& things, Partition partition) {
  std::erase_if(things, [&](const T& thing) { return thing.partition == partition; });
}

template <class T>
std::vector<T> take_of(std::vector<T>& things, Partition partition) {
  const auto others = std::stable_partition(
      things.begin(), things.end(), [&](const T& thing) { return thing.partition == partition; });
  std::vector<T> taken(std::make_move_iterator(things.begin()), std::make_move_iterator(others));
  things.erase(things.begin(), others);
  return taken;
}

}  // namespace

void SettleDraft::put(const std::vector<PartitionSuspicion>& changes) {
  for (const auto& change : changes)
    erase_of(suspicions, change.partition);
  suspicions.insert(suspicions.end(), changes.begin(), changes.end());
}

void SettleDraft::append(SettleDraft later) {
  move_behind(routed, later.routed);
  move_behind(deliveries, later.deliveries);
  move_behind(updates, later.updates);
  move_behind(released, later.released);
  move_behind(stopped_routes, later.stopped_routes);
  move_behind(events, later.events);
  move_behind(lane_rows, later.lane_rows);
  move_behind(notices, later.notices);
  put(later.suspicions);
}

SettleDraft::Removed SettleDraft::remove(Partition partition) {
  Removed removed{take_of(events, partition), take_of(lane_rows, partition)};
  erase_of(routed, partition);
  erase_of(deliveries, partition);
  erase_of(updates, partition);
  erase_of(suspicions, partition);
  erase_of(released, partition);
  std::erase_if(notices, [&](const Notice& notice) { return notice.partition == partition; });
  if (mark) std::erase(mark->partitions, partition);
  return removed;
}

std::vector<Partition> SettleDraft::partitions() const {
  std::set<Partition> found;
  for (const auto& event : routed)
    found.insert(event.partition);
  for (const auto& delivery : deliveries)
    found.insert(delivery.partition);
  for (const auto& update : updates)
    found.insert(update.partition);
  for (const auto& row : released)
    found.insert(row.partition);
  for (const auto& change : suspicions)
    found.insert(change.partition);
  if (mark) found.insert(mark->partitions.begin(), mark->partitions.end());
  return {found.begin(), found.end()};
}

SettleRequest SettleDraft::request() const {
  SettleRequest request;
  request.routed = routed;
  request.deliveries = deliveries;
  request.updates = updates;
  for (const auto& row : released)
    request.released.push_back(row.id);
  request.stopped_routes = stopped_routes;
  request.suspicions = suspicions;
  if (mark) request.mark = mark->mark;
  return request;
}

}  // namespace postrider::core
