#include "core/take_plan.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

using std::chrono::seconds;
using Amounts = std::map<std::string, std::size_t>;

/// A store with a number of due jobs in each queue, which obeys the limits of a take.
class TakeDesk {
 public:
  explicit TakeDesk(const std::vector<QueueShare>& queues) : plan_(queues, seconds(1)) {}

  /// What a take into `free` slots brings; `asked_` holds what was asked for.
  Amounts take(std::size_t free) {
    Amounts taken;
    asked_ = plan_.ask(free, now_);
    if (asked_.empty()) return taken;
    TaskBatch batch;
    for (const auto& ask : asked_) {
      auto& waiting = waiting_[ask.queue];
      for (std::size_t i = 0; i < ask.at_most && waiting > 0; ++i) {
        if (batch.tasks.size() == free) break;
        --waiting;
        ++taken[ask.queue];
        batch.tasks.emplace_back().job.queue = ask.queue;
      }
      batch.more = batch.more || waiting > 0;
    }
    plan_.on_taken(batch, now_);
    return taken;
  }

  Instant now_ = Instant(seconds(1'000'000));
  Amounts waiting_;
  std::vector<QueueTake> asked_;
  TakePlan plan_;
};

TEST(TakePlan, J_23_queues_with_work_share_slots_by_weight) {
  TakeDesk desk({{"high", 3}, {"low", 1}});
  desk.waiting_ = {{"high", 1000}, {"low", 1000}};
  EXPECT_EQ(desk.take(8), (Amounts{{"high", 6}, {"low", 2}}));
}

TEST(TakePlan, J_23_one_slot_at_a_time_is_shared_by_weight_too) {
  TakeDesk desk({{"high", 3}, {"low", 1}, {"lowest", 1}});
  desk.waiting_ = {{"high", 1000}, {"low", 1000}, {"lowest", 1000}};
  Amounts taken;
  for (int i = 0; i < 100; ++i) {
    for (const auto& [queue, count] : desk.take(1))
      taken[queue] += count;
  }
  EXPECT_EQ(taken, (Amounts{{"high", 60}, {"low", 20}, {"lowest", 20}}));
}

TEST(TakePlan, What_one_queue_does_not_use_goes_to_others_at_the_next_take) {
  TakeDesk desk({{"busy", 1}, {"idle", 1}});
  desk.waiting_ = {{"busy", 1000}};
  EXPECT_EQ(desk.take(10), (Amounts{{"busy", 5}}));
  EXPECT_LE(desk.plan_.next_at(), desk.now_) << "five slots are free and there is work";
  EXPECT_EQ(desk.take(5), (Amounts{{"busy", 5}}));
}

TEST(TakePlan, A_queue_that_is_usually_empty_lends_its_share_and_comes_first_when_it_has_work) {
  TakeDesk desk({{"busy", 1}, {"idle", 1}});
  desk.waiting_ = {{"busy", 1000}};
  (void)desk.take(10);
  desk.plan_.wake(desk.now_);
  EXPECT_EQ(desk.take(10), (Amounts{{"busy", 10}})) << "one take fills all slots";
  ASSERT_EQ(desk.asked_.size(), 2U);
  EXPECT_EQ(desk.asked_[0].queue, "idle");
  desk.waiting_["idle"] = 1000;
  desk.plan_.wake(desk.now_);
  EXPECT_EQ(desk.take(10), (Amounts{{"busy", 5}, {"idle", 5}}));
}

TEST(TakePlan, J_23_a_hot_queue_does_not_starve_one_that_was_empty_for_long) {
  TakeDesk desk({{"hot", 100}, {"rare", 1}});
  desk.waiting_ = {{"hot", 1'000'000}};
  for (int i = 0; i < 500; ++i)
    (void)desk.take(1);
  desk.waiting_["rare"] = 1;
  desk.now_ += seconds(1);
  int takes = 0;
  while (desk.waiting_["rare"] > 0 && takes < 1000) {
    (void)desk.take(1);
    ++takes;
  }
  EXPECT_LE(takes, 101) << "its turn comes once in a round of weights";
}

TEST(TakePlan, Empty_queues_are_looked_at_again_when_something_is_due_or_after_the_poll) {
  TakeDesk desk({{"a", 1}, {"b", 1}});
  (void)desk.take(4);
  EXPECT_EQ(desk.plan_.next_at(), desk.now_ + seconds(1));
  EXPECT_TRUE(desk.plan_.ask(4, desk.now_).empty());
  desk.now_ += seconds(1);
  ASSERT_EQ(desk.plan_.ask(4, desk.now_).size(), 2U);
  TaskBatch soon;
  soon.next_in = milliseconds(300);
  desk.plan_.on_taken(soon, desk.now_);
  EXPECT_EQ(desk.plan_.next_at(), desk.now_ + milliseconds(300));
}

TEST(TakePlan, Every_idle_queue_is_looked_at_even_when_fewer_slots_are_free) {
  TakeDesk desk({{"a", 1}, {"b", 1}, {"c", 1}});
  desk.waiting_ = {{"c", 1}};
  Amounts taken;
  for (int takes = 0; takes < 3 && taken.empty(); ++takes)
    taken = desk.take(1);
  EXPECT_EQ(taken, (Amounts{{"c", 1}})) << "without waiting for the poll";
}

TEST(TakePlan, Being_woken_while_a_take_is_on_its_way_means_to_look_again) {
  TakeDesk desk({{"a", 1}});
  (void)desk.plan_.ask(4, desk.now_);
  desk.plan_.wake(desk.now_);
  desk.plan_.on_taken({}, desk.now_);
  EXPECT_LE(desk.plan_.next_at(), desk.now_);
}

TEST(TakePlan, A_store_that_says_more_and_gives_nothing_is_not_asked_in_a_circle) {
  TakeDesk desk({{"a", 1}});
  (void)desk.plan_.ask(4, desk.now_);
  TaskBatch locked;
  locked.more = true;
  desk.plan_.on_taken(locked, desk.now_);
  EXPECT_EQ(desk.plan_.next_at(), desk.now_ + TakePlan::least_wait);
  (void)desk.plan_.ask(4, desk.plan_.next_at());
  TaskBatch due_at_once;
  due_at_once.next_in = milliseconds(0);
  desk.plan_.on_taken(due_at_once, desk.now_);
  EXPECT_EQ(desk.plan_.next_at(), desk.now_ + TakePlan::least_wait);
}

TEST(TakePlan, After_a_take_that_failed_the_same_queues_are_asked) {
  TakeDesk desk({{"a", 1}, {"b", 1}});
  const auto first = desk.plan_.ask(2, desk.now_);
  desk.plan_.on_failed();
  EXPECT_EQ(desk.plan_.ask(2, desk.now_).size(), first.size());
}

}  // namespace
}  // namespace postrider::core
