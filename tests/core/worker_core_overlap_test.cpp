// A worker whose store lets a take and a record overlap.
#include <chrono>

#include <gtest/gtest.h>

#include "core/worker_script.hpp"

namespace postrider::core {
namespace {

using std::chrono::seconds;
using worker_action::Record;
using worker_action::Take;

TEST(WorkerCoreOverlap, The_next_jobs_are_taken_while_ends_are_recorded) {
  WorkerScript script(four_slots(), true, true);
  script.run({1, 2});
  script.give(worker_input::Woken{});
  script.advance(milliseconds(1));
  EXPECT_EQ(script.take<Take>().request.limit, 2U);
  script.end(1);
  EXPECT_EQ(script.take<Record>().request.updates.size(), 1U) << "the take is still open";
  script.end(2);
  EXPECT_FALSE(script.wants<Record>()) << "one record at a time";
  script.give(script.taken({task_numbered(3), task_numbered(4)}, true));
  EXPECT_EQ(script.starts(), 2U);
  script.advance(milliseconds(1));
  EXPECT_EQ(script.take<Take>().request.limit, 2U) << "the record is still open";
  script.give(worker_input::Recorded{{RecordAnswer::recorded}});
  script.advance(milliseconds(1));
  EXPECT_EQ(script.take<Record>().request.updates.size(), 1U);
}

TEST(WorkerCoreOverlap, Each_call_waits_a_moment_for_company_while_something_runs) {
  WorkerScript script(four_slots(), true, true);
  script.run({1, 2, 3});
  script.give(worker_input::Woken{});
  EXPECT_FALSE(script.wants<Take>()) << "more may be free in a moment";
  EXPECT_EQ(script.core_.wake_at(), script.clock_.steady() + milliseconds(1));
  script.end(1);
  EXPECT_EQ(script.record().size(), 1U) << "the first one waits for nobody";
  script.end(2);
  EXPECT_FALSE(script.wants<Record>());
  script.end(3);
  EXPECT_EQ(script.record().size(), 2U) << "nothing else can come";
  EXPECT_EQ(script.take<Take>().request.limit, 4U);
}

TEST(WorkerCoreOverlap, A_recorded_end_hurries_no_take_that_failed) {
  WorkerScript script(four_slots(), true, true);
  script.run({1, 2});
  script.give(worker_input::Woken{});
  script.advance(milliseconds(1));
  (void)script.take<Take>();
  script.fail_take();
  script.end(1);
  (void)script.record();
  script.advance(milliseconds(1));
  EXPECT_FALSE(script.wants<Take>());
  EXPECT_TRUE(script.told(NoticeKind::store_recovered).empty()) << "takes fail still";
  script.live_for(seconds(1));
  EXPECT_EQ(script.told(NoticeKind::store_recovered).size(), 1U);
}

TEST(WorkerCoreOverlap, Nothing_is_taken_while_ends_cannot_be_recorded) {
  WorkerScript script(four_slots(), true, true);
  script.run({1, 2});
  script.end(1);
  (void)script.take<Record>();
  script.fail_record();
  script.give(worker_input::Woken{});
  script.advance(milliseconds(1));
  EXPECT_FALSE(script.wants<Take>());
  script.wait_until_recording();
  script.give(worker_input::Woken{});
  EXPECT_FALSE(script.wants<Take>()) << "nor while it is tried again";
  (void)script.record();
  EXPECT_TRUE(script.wants<Take>());
}

TEST(WorkerCoreOverlap, Ends_that_are_not_recorded_bound_what_is_taken) {
  WorkerScript script(four_slots(), true, true);
  script.run({1, 2, 3, 4});
  for (const std::uint64_t number : {1U, 2U, 3U, 4U})
    script.end(number);
  (void)script.take<Record>();  // it takes long
  script.give(worker_input::Woken{});
  EXPECT_EQ(script.take<Take>().request.limit, 4U);
  script.give(script.taken({task_numbered(5), task_numbered(6)}, true));
  script.end(5);
  script.end(6);
  script.give(worker_input::Woken{});
  EXPECT_EQ(script.take<Take>().request.limit, 2U) << "6 of 8 ends are not recorded";
  script.give(script.taken({task_numbered(7), task_numbered(8)}, true));
  script.end(7);
  script.end(8);
  script.give(worker_input::Woken{});
  script.advance(milliseconds(10));
  EXPECT_FALSE(script.wants<Take>()) << "although all slots are free";
  EXPECT_EQ(script.core_.unrecorded(), 8U);
  script.give(worker_input::Recorded{{RecordAnswer::recorded}});
  EXPECT_EQ(script.take<Take>().request.limit, 1U);
}

}  // namespace
}  // namespace postrider::core
