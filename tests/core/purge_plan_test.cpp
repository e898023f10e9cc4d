// When a slice of what is old is deleted: the plan alone, and within the relay's core.
#include "core/purge_plan.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <postrider/testing/manual_clock.hpp>

namespace postrider::core {
namespace {

using std::chrono::seconds;

const Retention all_ages{seconds(10), seconds(20), seconds(30), seconds(40)};
constexpr milliseconds off{0};

class PurgePlanTest : public ::testing::Test {
 protected:
  [[nodiscard]] Instant now() const { return clock_.steady(); }

  // The slice that is due now.
  PurgeRequest due(PurgePlan& plan) {
    EXPECT_TRUE(plan.due_at() && *plan.due_at() <= now());
    return plan.ask();
  }
  // Nothing is due for so long, and then something is.
  void pass(PurgePlan& plan, milliseconds wait) {
    ASSERT_TRUE(plan.due_at());
    EXPECT_EQ(*plan.due_at() - now(), wait);
    clock_.advance(wait);
  }
  // Answers the slices of a whole sweep that finds nothing.
  void sweep(PurgePlan& plan, std::size_t kinds) {
    for (std::size_t i = 0; i < kinds; ++i) {
      (void)due(plan);
      EXPECT_FALSE(plan.on_slice({}, now()));
      if (i + 1 < kinds) pass(plan, PurgePlan::slice_pause);
    }
  }

  testing::ManualClock clock_;
};

TEST_F(PurgePlanTest, A_sweep_goes_over_each_kind_by_its_own_age_and_starts_again_later) {
  PurgePlan plan(all_ages);
  for (const auto kept : all_kept) {
    const auto request = due(plan);
    EXPECT_EQ(request.kept, kept);
    EXPECT_EQ(request.older_than, all_ages.of(kept));
    EXPECT_EQ(request.rows, PurgePlan::slice_rows);
    EXPECT_FALSE(plan.on_slice({}, now()));
    if (kept != all_kept.back()) pass(plan, PurgePlan::slice_pause);
  }
  pass(plan, PurgePlan::sweep_interval);
  EXPECT_EQ(due(plan).kept, Kept::events);
}

TEST_F(PurgePlanTest, What_is_kept_for_ever_is_not_asked_for) {
  EXPECT_FALSE(PurgePlan({off, off, off, off}).due_at());
  PurgePlan keys_only({off, seconds(1), off, off});
  EXPECT_EQ(due(keys_only).kept, Kept::keys);
  EXPECT_FALSE(keys_only.on_slice({}, now()));
  pass(keys_only, PurgePlan::sweep_interval);
  EXPECT_EQ(due(keys_only).kept, Kept::keys);
}

TEST_F(PurgePlanTest, One_slice_is_asked_for_at_a_time) {
  PurgePlan plan(all_ages);
  (void)due(plan);
  clock_.advance(seconds(3600));
  EXPECT_FALSE(plan.due_at());
}

TEST_F(PurgePlanTest, Slices_follow_each_other_with_a_pause_and_are_told_of_once) {
  PurgePlan plan(all_ages);
  (void)due(plan);
  EXPECT_FALSE(plan.on_slice({500, Seq(700), true}, now()));
  pass(plan, PurgePlan::slice_pause);
  const auto second = due(plan);
  EXPECT_EQ(second.kept, Kept::events);
  EXPECT_EQ(second.after, Seq(700));

  const auto notice = plan.on_slice({41, Seq(900), false}, now());

  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->kind, NoticeKind::rows_purged);
  EXPECT_EQ(notice->code, "events");
  EXPECT_EQ(notice->rows, 541);
  pass(plan, PurgePlan::slice_pause);
  EXPECT_EQ(due(plan).after, Seq(0)) << "the place is of events";
}

TEST_F(PurgePlanTest, A_long_sweep_tells_of_itself_on_the_way) {
  PurgePlan plan(all_ages);
  std::int64_t told = 0;
  for (int slice = 0; slice < 400; ++slice) {
    (void)due(plan);
    if (const auto notice = plan.on_slice({500, Seq(slice), true}, now())) {
      EXPECT_EQ(notice->rows, PurgePlan::most_untold);
      told += *notice->rows;
    }
    pass(plan, PurgePlan::slice_pause);
  }
  EXPECT_EQ(told, 200'000);
}

TEST_F(PurgePlanTest, A_failure_is_told_once_in_a_row_and_costs_the_others_nothing) {
  const Error down{ErrorCode::unavailable, Disposition::retry, "the server is gone.", "test", ""};
  PurgePlan plan({seconds(1), seconds(1), off, off});
  (void)due(plan);
  const auto first = plan.on_failure(down, now());
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, NoticeKind::purge_failed);
  EXPECT_EQ(first->code, to_string(ErrorCode::unavailable));
  EXPECT_EQ(first->detail, "events: the server is gone.");
  EXPECT_EQ(first->wait, PurgePlan::sweep_interval);
  pass(plan, PurgePlan::slice_pause);
  EXPECT_EQ(due(plan).kept, Kept::keys);
  EXPECT_FALSE(plan.on_slice({}, now()));
  pass(plan, PurgePlan::sweep_interval);

  (void)due(plan);
  EXPECT_FALSE(plan.on_failure(down, now())) << "it was told before";
  pass(plan, PurgePlan::slice_pause);
  (void)due(plan);
  EXPECT_TRUE(plan.on_failure(down, now())) << "the first of the keys";
  pass(plan, PurgePlan::sweep_interval);
  sweep(plan, 2);
  pass(plan, PurgePlan::sweep_interval);
  (void)due(plan);
  EXPECT_TRUE(plan.on_failure(down, now())) << "it had worked in between";
}

TEST_F(PurgePlanTest, What_was_deleted_before_a_failure_is_told_with_it) {
  PurgePlan plan(all_ages);
  for (int i = 0; i < 2; ++i) {
    (void)due(plan);
    EXPECT_FALSE(plan.on_slice({500, Seq(1), true}, now()));
    pass(plan, PurgePlan::slice_pause);
    (void)due(plan);
    const auto notice = plan.on_failure({}, now());
    ASSERT_TRUE(notice) << i;
    EXPECT_EQ(notice->rows, 500);
    pass(plan, PurgePlan::slice_pause);
    sweep(plan, all_kept.size() - 1);
    pass(plan, PurgePlan::sweep_interval);
  }
}

}  // namespace
}  // namespace postrider::core
