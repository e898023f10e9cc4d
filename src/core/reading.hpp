#pragma once
/// \file
/// How far the table has been read, and how far everything that was read is settled.
///
/// Reading runs ahead of settling. A mark may be stored, and a restart may begin from it, only when
/// each event of its batch and of all batches before it is settled.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include <postrider/ids.hpp>
#include <postrider/store_values.hpp>

namespace postrider::core {

class Reading {
 public:
  using BatchNumber = std::uint64_t;

  /// A partition was gained: what it has not read since `mark` belongs to the next batch.
  void gain(Partition partition, ReadMark mark);
  void lose(Partition partition);

  /// The marks that the next claim has to read from.
  [[nodiscard]] std::vector<ReadMark> after() const;

  /// A claim brought `events` events up to `mark`.
  BatchNumber on_claimed(ReadMark mark, std::size_t events);
  /// One event of the batch is settled, or is not ours any more.
  void on_settled(BatchNumber batch);

  /// The mark to store, when there is one that was not stored yet, and the partitions it is true
  /// for.
  struct Storable {
    ReadMark mark;
    std::vector<Partition> partitions;
  };
  [[nodiscard]] std::optional<Storable> storable() const;
  void on_stored(const Storable& stored);

  /// Forgets what was read and not settled: the next claim reads it again.
  void rewind();

 private:
  struct Batch {
    ReadMark mark;
    std::size_t open = 0;
  };
  struct Coverage {
    ReadMark gained_at;
    BatchNumber first_batch = 0;  // the first one whose claim read from `gained_at`
  };

  void pop_settled();
  [[nodiscard]] bool is_stored(const ReadMark& mark) const;

  std::map<Partition, Coverage> partitions_;
  std::deque<Batch> batches_;        // batches_[i] has number first_ + i
  BatchNumber first_ = 1;            // number of batches_.front(), or of the next batch
  std::optional<ReadMark> read_;     // mark of the newest batch
  std::optional<ReadMark> settled_;  // mark of the last batch up to which all is settled
  bool stored_ = true;               // settled_ is in the database
};

}  // namespace postrider::core
