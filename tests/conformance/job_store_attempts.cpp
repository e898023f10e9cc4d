// What `JobStore::touch` promises to a running attempt: the truth, and no write by a stale copy.

#include <functional>

#include "conformance/job_store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST_P(JobStoreConformance, A_running_attempt_is_current_until_it_ends) {
  plant();
  const auto task = take_one();
  clock_.advance(seconds(3));

  const auto running = touch(attempt_of(task));
  EXPECT_TRUE(running.current);
  EXPECT_FALSE(running.cancel_requested);
  EXPECT_EQ(running.until_timeout, seconds(7));
  record(completed(task));

  EXPECT_FALSE(touch(attempt_of(task)).current);
}

TEST_P(JobStoreConformance, A_passed_deadline_leaves_nothing_of_the_time) {
  plant();
  const auto task = take_one();
  clock_.advance(seconds(11));

  EXPECT_EQ(touch(attempt_of(task)).until_timeout, milliseconds(0));
}

TEST_P(JobStoreConformance, A_stale_attempt_writes_nothing) {
  const auto id = plant();
  const auto first = take_one();
  record(retried(first, milliseconds(0)));
  auto update = attempt_of(first);
  update.percent = 90;
  update.note = "nearly there";
  update.checkpoint = "page 90";
  update.extend = hours(1);

  EXPECT_FALSE(touch(update).current) << "pending again";
  const auto second = take_one();
  EXPECT_FALSE(touch(update).current) << "another dispatch";

  const auto stored = row(id);
  EXPECT_EQ(stored.dispatch_id, second.dispatch_id);
  EXPECT_EQ(stored.percent, std::nullopt);
  EXPECT_EQ(stored.note, "");
  EXPECT_EQ(stored.checkpoint, "");
  EXPECT_EQ(stored.delivery_timeout_at, now() + seconds(10));
}

TEST_P(JobStoreConformance, An_unknown_attempt_is_not_current) {
  AttemptUpdate update;
  update.delivery_id = DeliveryId(fresh_uuid());
  update.dispatch_id = DispatchId(fresh_uuid());
  EXPECT_FALSE(touch(update).current);
  update.percent = 5;
  EXPECT_FALSE(touch(update).current);
}

TEST_P(JobStoreConformance, An_extension_counts_from_now) {
  const auto id = plant();
  const auto task = take_one();
  clock_.advance(seconds(8));
  auto update = attempt_of(task);
  update.extend = seconds(20);

  EXPECT_EQ(touch(update).until_timeout, seconds(20));
  EXPECT_EQ(row(id).delivery_timeout_at, now() + seconds(20));
}

TEST_P(JobStoreConformance, An_extension_ends_at_the_routes_limit) {
  const auto id = plant();
  const auto task = take_one();
  const auto dispatched_at = now();
  clock_.advance(seconds(9));
  auto update = attempt_of(task);
  update.extend = hours(5);

  EXPECT_EQ(touch(update).until_timeout, seconds(51)) << "60 s from the dispatch on";
  EXPECT_EQ(row(id).delivery_timeout_at, dispatched_at + seconds(60));
}

TEST_P(JobStoreConformance, An_extension_never_shortens) {
  plant();
  const auto task = take_one();
  auto update = attempt_of(task);
  update.extend = seconds(2);

  EXPECT_EQ(touch(update).until_timeout, seconds(10));
}

TEST_P(JobStoreConformance, Progress_is_kept_and_what_is_not_said_stays) {
  const auto id = plant();
  const auto task = take_one();
  auto update = attempt_of(task);
  update.percent = 40;
  update.note = "\xd0\xbf\xd0\xbe\xd1\x87\xd1\x82\xd0\xb0 4 of 10";
  EXPECT_TRUE(touch(update).current);
  auto more = attempt_of(task);
  more.checkpoint = std::string(AttemptUpdate::most_checkpoint_bytes, '\xff');
  EXPECT_TRUE(touch(more).current);
  auto last = attempt_of(task);
  last.percent = 100;
  EXPECT_TRUE(touch(last).current);

  const auto stored = row(id);
  EXPECT_EQ(stored.percent, 100);
  EXPECT_EQ(stored.note, update.note);
  EXPECT_EQ(stored.checkpoint, more.checkpoint);
  EXPECT_EQ(stored.delivery_timeout_at, now() + seconds(10)) << "nobody asked for more time";
}

TEST_P(JobStoreConformance, A_note_that_no_column_could_hold_is_no_reason_to_fail) {
  plant();
  const auto task = take_one();
  auto update = attempt_of(task);
  update.note = std::string("half \xd0 and a \0", 14);

  EXPECT_TRUE(touch(update).current);
}

TEST_P(JobStoreConformance, What_an_attempt_may_not_write_is_refused_and_changes_nothing) {
  const auto id = plant();
  const auto task = take_one();
  const auto code_of = [&](const std::function<void(AttemptUpdate&)>& change) {
    auto update = attempt_of(task);
    update.now = now();
    change(update);
    const auto refused = jobs_->touch(update, soon());
    EXPECT_FALSE(refused.ok());
    return refused.ok() ? ErrorCode::internal : refused.error().code;
  };

  EXPECT_EQ(code_of([](auto& update) { update.percent = 101; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& update) { update.percent = -1; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& update) { update.extend = milliseconds(0); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& update) {
              update.note = std::string(AttemptUpdate::most_note_bytes + 1, 'x');
            }),
            ErrorCode::limit_exceeded);
  EXPECT_EQ(code_of([](auto& update) {
              update.checkpoint = std::string(AttemptUpdate::most_checkpoint_bytes + 1, 'x');
            }),
            ErrorCode::limit_exceeded);
  EXPECT_EQ(row(id).percent, std::nullopt);
  EXPECT_EQ(row(id).checkpoint, "");
}

TEST_P(JobStoreConformance, A_cancel_request_is_told_to_the_attempt) {
  const auto id = plant();
  const auto task = take_one();
  harness_->cancel_job(id, now());

  EXPECT_TRUE(touch(attempt_of(task)).cancel_requested);
  auto update = attempt_of(task);
  update.percent = 5;
  const auto state = touch(update);
  EXPECT_TRUE(state.current);
  EXPECT_TRUE(state.cancel_requested);
}

}  // namespace
}  // namespace postrider::testing
