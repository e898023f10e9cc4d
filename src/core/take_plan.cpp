#include "core/take_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/assert.hpp"

namespace postrider::core {

TakePlan::TakePlan(const std::vector<QueueShare>& queues, milliseconds poll) : poll_(poll) {
  queues_.reserve(queues.size());
  for (const auto& share : queues) {
    by_name_.emplace(share.queue, queues_.size());
    queues_.push_back({share.queue, share.weight, 0, false, Instant::min()});
  }
}

std::vector<QueueTake> TakePlan::ask(std::size_t free, Instant now) {
  POSTRIDER_ASSERT(asked_.empty());
  const auto queues = due(now);
  if (queues.empty() || free == 0) return {};
  arrange(share_out(queues, free));
  limit_ = free;
  woken_ = false;
  first_ = (first_ + 1) % queues_.size();
  std::vector<QueueTake> takes;
  takes.reserve(asked_.size());
  for (const auto& asked : asked_)
    takes.push_back({queues_[asked.queue].name, asked.at_most});
  return takes;
}

// In turns: a queue is offered what others lend first once in every round.
std::vector<std::size_t> TakePlan::due(Instant now) const {
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const auto queue = (first_ + i) % queues_.size();
    if (queues_[queue].look_at <= now) due.push_back(queue);
  }
  return due;
}

// Whole rounds first, then one slot after the other to whom most is owed ("smooth weighted round
// robin"). Debts are remembered from take to take.
std::vector<TakePlan::Asked> TakePlan::share_out(const std::vector<std::size_t>& due,
                                                 std::size_t free) {
  const int total = std::accumulate(due.begin(), due.end(), 0, [&](int sum, std::size_t queue) {
    return sum + queues_[queue].weight;
  });
  const auto rounds = free / static_cast<std::size_t>(total);
  std::vector<Asked> shares;
  shares.reserve(due.size());
  for (const auto queue : due)
    shares.push_back({queue, rounds * static_cast<std::size_t>(queues_[queue].weight), 0, 0});
  for (auto left = free % static_cast<std::size_t>(total); left > 0; --left) {
    for (const auto queue : due)
      queues_[queue].credit += queues_[queue].weight;
    const auto next =
        std::max_element(shares.begin(), shares.end(), [&](const Asked& a, const Asked& b) {
          return queues_[a.queue].credit < queues_[b.queue].credit;
        });
    queues_[next->queue].credit -= total;
    ++next->share;
  }
  return shares;
}

// The whole take is limited to what is free, so its parts may add up to more.
void TakePlan::arrange(std::vector<Asked> shares) {
  std::size_t lent = 0;
  for (const auto& share : shares)
    if (queues_[share.queue].lends) lent += share.share;
  std::vector<Asked> users;
  std::vector<Asked> without_share;
  for (auto& share : shares) {
    const bool lends = queues_[share.queue].lends;
    share.at_most = lends ? std::max<std::size_t>(share.share, 1) : share.share + lent;
    if (share.at_most == 0) continue;
    auto& list = !lends ? users : share.share > 0 ? asked_ : without_share;
    list.push_back(share);
  }
  asked_.insert(asked_.end(), users.begin(), users.end());
  asked_.insert(asked_.end(), without_share.begin(), without_share.end());
}

void TakePlan::on_taken(const TaskBatch& batch, Instant now) {
  count(batch);
  const auto wait =
      std::clamp(batch.next_in.value_or(poll_), least_wait, std::max(least_wait, poll_));
  const bool nothing_but_more = batch.more && batch.tasks.empty();
  const auto empty_until = now + (nothing_but_more ? least_wait : wait);
  if (batch.more && !nothing_but_more) {
    judge_cut_batch(batch.tasks.size() >= limit_, empty_until, now);
  } else {
    for (const auto& asked : asked_) {
      queues_[asked.queue].look_at = empty_until;
      queues_[asked.queue].lends = asked.taken < std::max<std::size_t>(asked.share, 1);
    }
  }
  asked_.clear();
  if (std::exchange(woken_, false)) wake(now);
}

void TakePlan::count(const TaskBatch& batch) {
  std::vector<std::size_t> taken(queues_.size(), 0);
  for (const auto& task : batch.tasks) {
    const auto found = by_name_.find(task.job.queue);
    if (found != by_name_.end()) ++taken[found->second];
  }
  for (auto& asked : asked_)
    asked.taken = taken[asked.queue];
}

// Something is left in one of the queues. When the limit of the whole take cut the batch, only
// those that came first are known to be empty.
void TakePlan::judge_cut_batch(bool limit_reached, Instant empty_until, Instant now) {
  for (const auto& asked : asked_) {
    auto& queue = queues_[asked.queue];
    const bool asked_first = queue.lends && asked.share > 0;
    const bool empty =
        limit_reached ? asked_first && asked.taken < asked.share : asked.taken < asked.at_most;
    queue.look_at = empty ? empty_until : now;
    if (empty) {
      queue.lends = true;
    } else if (asked.taken > 0 && asked.taken >= asked.share) {
      queue.lends = false;
    }
  }
}

void TakePlan::wake(Instant now) {
  woken_ = woken_ || !asked_.empty();
  for (auto& queue : queues_)
    queue.look_at = std::min(queue.look_at, now);
}

Instant TakePlan::next_at() const {
  if (queues_.empty()) return Instant::max();
  return std::min_element(queues_.begin(), queues_.end(),
                          [](const Queue& a, const Queue& b) { return a.look_at < b.look_at; })
      ->look_at;
}

}  // namespace postrider::core
