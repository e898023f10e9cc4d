#pragma once
/// \file
/// Which queues a worker looks at next, and how it shares its free slots among them.
///
/// While several queues have work each gets slots by its weight, over time also when only one slot
/// is free at a time. A queue that had nothing at its last look *lends* its share: others may use
/// it in the same take, but the lender comes first, so that new work in it is not kept waiting.

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/worker_values.hpp>

namespace postrider::core {

class TakePlan {
 public:
  /// The pause after a look that found nothing although something is due: another worker is just
  /// taking it, or waits for its serial key.
  static constexpr milliseconds least_wait{10};

  /// Requires: `queues` and `poll` pass `validate(WorkerOptions)`. Without a queue nothing is ever
  /// to be taken.
  TakePlan(const std::vector<QueueShare>& queues, milliseconds poll);

  /// What to take now into `free` slots; empty when no queue is to be looked at yet.
  [[nodiscard]] std::vector<QueueTake> ask(std::size_t free, Instant now);

  /// What `ask` led to.
  void on_taken(const TaskBatch& batch, Instant now);
  void on_failed() noexcept { asked_.clear(); }

  /// Something may have become due in any of them.
  void wake(Instant now);

  /// When the next look is due.
  [[nodiscard]] Instant next_at() const;

 private:
  struct Queue {
    std::string name;
    int weight = 1;
    int credit = 0;  // its claim on the next slot
    bool lends = false;
    Instant look_at{};
  };
  struct Asked {
    std::size_t queue = 0;
    std::size_t share = 0;
    std::size_t at_most = 0;
    std::size_t taken = 0;
  };

  [[nodiscard]] std::vector<std::size_t> due(Instant now) const;
  [[nodiscard]] std::vector<Asked> share_out(const std::vector<std::size_t>& due, std::size_t free);
  void arrange(std::vector<Asked> shares);
  void count(const TaskBatch& batch);
  void judge_cut_batch(bool limit_reached, Instant empty_until, Instant now);

  milliseconds poll_;
  std::vector<Queue> queues_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<Asked> asked_;  // of the open take, in its order
  std::size_t limit_ = 0;     // of the open take
  std::size_t first_ = 0;     // whose turn it is to use what others lend
  bool woken_ = false;        // since the take was asked for
};

}  // namespace postrider::core
