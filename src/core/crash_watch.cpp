#include "core/crash_watch.hpp"

#include <algorithm>

namespace postrider::core {

void CrashWatch::gain(Partition partition, const Suspicion& stored) {
  partitions_[partition] = {stored, stored.probe_seq};
}

void CrashWatch::refresh(Partition partition, const Suspicion& stored) {
  partitions_[partition].stored = stored;
}

void CrashWatch::lose(Partition partition) {
  partitions_.erase(partition);
}

int CrashWatch::crashes() const {
  int most = 0;
  for (const auto& [partition, state] : partitions_)
    most = std::max(most, state.stored.crashes);
  return most;
}

bool CrashWatch::suspects(Partition partition, Seq seq) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() && found->second.left == seq;
}

bool CrashWatch::blames(Partition partition, Seq seq) const {
  return suspects(partition, seq) && partitions_.at(partition).stored.crashes >= blamed_from;
}

std::vector<PartitionSuspicion> CrashWatch::to_probe(const std::optional<Probe>& probe) const {
  std::vector<PartitionSuspicion> changes;
  for (const auto& [partition, state] : partitions_) {
    auto wanted = state.stored;
    wanted.probe_seq.reset();
    if (probe && probe->partition == partition) {
      wanted.probe_seq = probe->seq;
      if (wanted.probe_seq != state.stored.probe_seq) wanted.crashes = alone_from;
    }
    if (wanted != state.stored) changes.push_back({partition, wanted});
  }
  return changes;
}

std::vector<PartitionSuspicion> CrashWatch::to_clear() const {
  std::vector<PartitionSuspicion> changes;
  for (const auto& [partition, state] : partitions_) {
    if (state.stored != Suspicion{}) changes.push_back({partition, {}});
  }
  return changes;
}

void CrashWatch::on_stored(const std::vector<PartitionSuspicion>& stored) {
  for (const auto& [partition, suspicion] : stored) {
    const auto found = partitions_.find(partition);
    if (found != partitions_.end()) found->second = {suspicion, std::nullopt};
  }
}

}  // namespace postrider::core
