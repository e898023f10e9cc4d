#include "core/reading.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace postrider::core {

void Reading::gain(Partition partition, ReadMark mark) {
  partitions_[partition] = {std::move(mark), first_ + batches_.size()};
}

void Reading::lose(Partition partition) {
  partitions_.erase(partition);
}

std::vector<ReadMark> Reading::after() const {
  const auto next = first_ + batches_.size();
  std::vector<ReadMark> marks;
  if (read_) marks.push_back(*read_);
  for (const auto& [partition, coverage] : partitions_) {
    if (coverage.first_batch != next) continue;
    if (std::find(marks.begin(), marks.end(), coverage.gained_at) == marks.end()) {
      marks.push_back(coverage.gained_at);
    }
  }
  if (marks.empty()) marks.emplace_back();
  return marks;
}

Reading::BatchNumber Reading::on_claimed(ReadMark mark, std::size_t events) {
  read_ = mark;
  const auto number = first_ + batches_.size();
  batches_.push_back({std::move(mark), events});
  pop_settled();
  return number;
}

void Reading::on_settled(BatchNumber batch) {
  POSTRIDER_ASSERT(batch >= first_ && batch < first_ + batches_.size());
  auto& open = batches_[static_cast<std::size_t>(batch - first_)].open;
  POSTRIDER_ASSERT(open > 0);
  --open;
  pop_settled();
}

void Reading::pop_settled() {
  while (!batches_.empty() && batches_.front().open == 0) {
    stored_ = stored_ && is_stored(batches_.front().mark);
    settled_ = std::move(batches_.front().mark);
    batches_.pop_front();
    ++first_;
  }
}

bool Reading::is_stored(const ReadMark& mark) const {
  if (settled_) return *settled_ == mark;
  return std::all_of(partitions_.begin(), partitions_.end(),
                     [&](const auto& partition) { return partition.second.gained_at == mark; });
}

std::optional<Reading::Storable> Reading::storable() const {
  if (stored_ || !settled_) return std::nullopt;
  Storable storable{*settled_, {}};
  for (const auto& [partition, coverage] : partitions_) {
    if (coverage.first_batch < first_) storable.partitions.push_back(partition);
  }
  if (storable.partitions.empty()) return std::nullopt;
  return storable;
}

void Reading::on_stored(const Storable& stored) {
  if (settled_ == stored.mark) stored_ = true;
}

void Reading::rewind() {
  // Partitions whose first batch was not settled through are read again from where they were
  // gained.
  const auto next = first_ + batches_.size();
  for (auto& [partition, coverage] : partitions_) {
    if (coverage.first_batch >= first_) coverage.first_batch = next;
  }
  first_ = next;
  batches_.clear();
  read_ = settled_;
}

}  // namespace postrider::core
