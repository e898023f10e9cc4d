#include "core/route_queue.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

using Place = RouteQueue::Place;
const RouteQueue::Key a = "a";
const RouteQueue::Key b = "b";

std::vector<ItemId> take_all(RouteQueue& queue) {
  std::vector<ItemId> taken;
  while (queue.has_ready())
    taken.push_back(queue.take_ready());
  return taken;
}

TEST(RouteQueue, Only_the_head_of_a_lane_may_leave) {
  RouteQueue queue;
  EXPECT_EQ(queue.push(1, a), Place::ready);
  EXPECT_EQ(queue.push(2, a), Place::waiting);
  EXPECT_EQ(queue.push(3, b), Place::ready);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{1, 3}));
  EXPECT_EQ(queue.finish(1, a), std::nullopt);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{2}));
}

TEST(RouteQueue, Without_a_key_nobody_waits) {
  RouteQueue queue;
  EXPECT_EQ(queue.push(1, std::nullopt), Place::ready);
  EXPECT_EQ(queue.push(2, std::nullopt), Place::ready);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{1, 2}));
}

TEST(RouteQueue, Heads_that_are_given_back_leave_before_the_others) {
  RouteQueue queue;
  queue.push(1, a);
  queue.push(2, b);
  queue.push(3, std::nullopt);
  const auto first = queue.take_ready();
  const auto second = queue.take_ready();
  queue.give_back({first, second});
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{1, 2, 3}));
}

TEST(RouteQueue, A_blocked_lane_hands_over_one_head_after_the_other) {
  RouteQueue queue;
  for (const ItemId item : {1, 2, 3})
    queue.push(item, a);
  (void)queue.take_ready();
  EXPECT_EQ(queue.block(1, a), 2U);
  EXPECT_FALSE(queue.has_ready());
  EXPECT_EQ(queue.push(4, a), Place::waiting);
  EXPECT_EQ(queue.block(2, a), 3U);
  EXPECT_EQ(queue.block(3, a), 4U);
  EXPECT_EQ(queue.block(4, a), std::nullopt);
}

TEST(RouteQueue, A_lane_stays_blocked_until_its_rows_are_committed) {
  RouteQueue queue;
  queue.push(1, a);
  (void)queue.take_ready();
  queue.on_row_drafted("a");
  EXPECT_EQ(queue.block(1, a), std::nullopt);
  EXPECT_TRUE(queue.blocked(a));
  EXPECT_EQ(queue.push(2, a), Place::behind);
  queue.on_row_drafted("a");
  EXPECT_EQ(queue.block(2, a), std::nullopt);
  queue.on_row_committed("a");
  EXPECT_TRUE(queue.blocked(a));
  queue.on_row_committed("a");
  EXPECT_FALSE(queue.blocked(a));
  EXPECT_EQ(queue.push(3, a), Place::ready);
}

TEST(RouteQueue, When_a_row_stands_in_the_database_the_caller_decides_about_the_next_head) {
  RouteQueue queue;
  queue.push(1, a);  // a stored delivery that is due
  queue.block("a");  // a claim saw rows of this lane
  queue.push(2, a);
  (void)queue.take_ready();
  EXPECT_EQ(queue.finish(1, a), 2U);
  EXPECT_FALSE(queue.has_ready());
  queue.make_ready(2);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{2}));
}

TEST(RouteQueue, When_a_head_is_removed_the_next_one_moves_up) {
  RouteQueue queue;
  queue.push(1, a);
  queue.push(2, a);
  EXPECT_EQ(queue.remove(1, a), std::nullopt);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{2}));
}

TEST(RouteQueue, Removing_one_that_waits_changes_nothing_for_the_others) {
  RouteQueue queue;
  for (const ItemId item : {1, 2, 3})
    queue.push(item, a);
  EXPECT_EQ(queue.remove(2, a), std::nullopt);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{1}));
  EXPECT_EQ(queue.finish(1, a), std::nullopt);
  EXPECT_EQ(take_all(queue), (std::vector<ItemId>{3}));
}

TEST(RouteQueue, One_item_may_be_taken_by_name_only_if_it_is_ready) {
  RouteQueue queue;
  queue.push(1, a);
  queue.push(2, a);
  EXPECT_FALSE(queue.take(2));
  EXPECT_TRUE(queue.take(1));
  EXPECT_FALSE(queue.take(1));
}

}  // namespace
}  // namespace postrider::core
