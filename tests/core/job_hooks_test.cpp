// What a job tells of its transitions, and what joins its history.
#include "core/job_hooks.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/codec.hpp>

#include "core/job_verdict.hpp"
#include "values/job_hooks.hpp"

namespace postrider::core {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const DispatchId this_dispatch(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8059").value());
const WorkerId this_worker(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8060").value());
const JobHooks all_hooks{"ship.completed", "ship.retry", "ship.failed", "ship.death"};
const WorkerDeath signal_9{9, std::nullopt, false};

std::shared_ptr<const HookContext> context(int depth = 0) {
  HookContext made;
  made.hooks = all_hooks;
  made.event_type = "order.placed";
  made.aggregate = Aggregate{"order", "17"};
  made.depth = depth;
  return std::make_shared<const HookContext>(std::move(made));
}

Job shipping(int attempts = 0) {
  Job job;
  job.delivery_id = DeliveryId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8058").value());
  job.event_id = EventId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057").value());
  job.route = "ship";
  job.job = "ReserveStock";
  job.queue = "shipping";
  job.retry_delays = {seconds(60)};
  job.attempts = attempts;
  job.max_deaths = 1;
  job.hooks = context();
  return job;
}

Job forgiving() {
  auto job = shipping();
  job.on_worker_death = OnWorkerDeath::retry;
  return job;
}

std::vector<std::string> types_of(const JobUpdate& update) {
  std::vector<std::string> types;
  for (const auto& event : update.events)
    types.push_back(event.type);
  return types;
}

std::vector<std::string> told(const Job& job, const AttemptEnd& end) {
  return types_of(judge_job(job, this_dispatch, end));
}

FieldValue member(const NewEvent& event, std::string_view name) {
  const auto decoded = json_codec().decode(event.payload).value();
  for (const auto& each : std::get<FieldMembers>(decoded.content)) {
    if (each.name == name) return each.value;
  }
  ADD_FAILURE() << "no member " << name;
  return {};
}

std::string text_of(const NewEvent& event, std::string_view name) {
  const auto value = member(event, name);
  const auto* text = std::get_if<std::string>(&value.content);
  return text == nullptr ? "(no text)" : *text;
}

TEST(JobHooks, J_22_each_transition_tells_of_itself) {
  EXPECT_THAT(told(shipping(), JobOutcome::done()), ElementsAre("ship.completed"));
  EXPECT_THAT(told(shipping(), JobOutcome::retry("down")), ElementsAre("ship.retry"));
  EXPECT_THAT(told(shipping(), TimedOut{}), ElementsAre("ship.retry"));
  EXPECT_THAT(told(shipping(), SendRefused{"full", ""}), ElementsAre("ship.retry"));
  EXPECT_THAT(told(shipping(1), JobOutcome::retry("down")), ElementsAre("ship.failed"));
  EXPECT_THAT(told(shipping(1), TimedOut{}), ElementsAre("ship.failed"));
  EXPECT_THAT(told(shipping(), JobOutcome::fail("no_such_order")), ElementsAre("ship.failed"));
}

TEST(JobHooks, J_22_a_death_is_told_beside_what_becomes_of_the_job) {
  EXPECT_THAT(told(shipping(), signal_9), ElementsAre("ship.death", "ship.failed"));
  EXPECT_THAT(told(forgiving(), signal_9), ElementsAre("ship.death", "ship.retry"));
}

TEST(JobHooks, What_is_no_failure_and_no_completion_tells_nothing) {
  EXPECT_THAT(told(shipping(), JobOutcome::snooze(seconds(1))), IsEmpty());
  EXPECT_THAT(told(shipping(), Interrupted{}), IsEmpty());
  EXPECT_THAT(told(shipping(), JobOutcome::cancelled()), IsEmpty());
}

TEST(JobHooks, A_job_that_a_person_cancels_tells_nothing_and_keeps_no_failure) {
  auto asked = shipping();
  asked.cancel_requested = true;
  for (const AttemptEnd& end : {AttemptEnd(signal_9), AttemptEnd(JobOutcome::fail("x")),
                                AttemptEnd(JobOutcome::retry("x"))}) {
    EXPECT_THAT(told(asked, end), IsEmpty());
    EXPECT_FALSE(judge_job(asked, this_dispatch, end).keeps_failure);
  }

  const auto instead = cancelled_instead(judge_job(shipping(), this_dispatch, TimedOut{}));
  EXPECT_THAT(instead.events, IsEmpty());
  EXPECT_FALSE(instead.keeps_failure);
}

TEST(JobHooks, Only_hooks_that_are_named_tell) {
  auto job = shipping();
  HookContext only = *context();
  only.hooks = {"", "", "", "ship.death"};
  job.hooks = std::make_shared<const HookContext>(only);
  EXPECT_THAT(told(job, signal_9), ElementsAre("ship.death"));
  EXPECT_THAT(told(job, JobOutcome::done()), IsEmpty());
  job.hooks = nullptr;
  EXPECT_THAT(told(job, signal_9), IsEmpty());
}

TEST(JobHooks, The_event_stands_in_the_aggregate_of_the_jobs_own_and_names_its_cause) {
  const auto update = judge_job(shipping(), this_dispatch, JobOutcome::done());
  ASSERT_THAT(update.events, SizeIs(1));
  const auto& event = update.events[0];
  EXPECT_EQ(event.id, std::nullopt);
  EXPECT_EQ(event.aggregate, (Aggregate{"order", "17"}));
  EXPECT_EQ(event.content_type, "application/json");
  EXPECT_EQ(event.headers, (Headers{{"causation-id", "01890a5d-ac96-774b-bcce-b302099a8057"},
                                    {"postrider-hook-depth", "1"}}));
  EXPECT_TRUE(check(event).ok());
}

TEST(JobHooks, The_payload_says_what_happened_to_whom) {
  const auto update = judge_job(shipping(1), this_dispatch, signal_9, this_worker);
  ASSERT_THAT(update.events, SizeIs(2));

  EXPECT_EQ(update.events[1].payload,
            R"({"transition":"failed","delivery_id":"01890a5d-ac96-774b-bcce-b302099a8058",)"
            R"("event_id":"01890a5d-ac96-774b-bcce-b302099a8057","event_type":"order.placed",)"
            R"("route":"ship","job":"ReserveStock","queue":"shipping","attempt":2,)"
            R"("last_attempt":true,"dispatch_id":"01890a5d-ac96-774b-bcce-b302099a8059",)"
            R"("worker":"01890a5d-ac96-774b-bcce-b302099a8060","code":"worker_died",)"
            R"("detail":"signal 9","signal":9,"retry_in_ms":null})");
  EXPECT_EQ(text_of(update.events[0], "transition"), "death");
}

TEST(JobHooks, A_retry_says_when_and_a_completion_has_no_code) {
  const auto retried = judge_job(shipping(), this_dispatch, JobOutcome::retry("down", "at night"));
  ASSERT_THAT(retried.events, SizeIs(1));
  EXPECT_EQ(text_of(retried.events[0], "detail"), "at night");
  const auto wait = member(retried.events[0], "retry_in_ms");
  EXPECT_EQ(std::get<std::uint64_t>(wait.content), 60'000U);
  const auto done = judge_job(shipping(), this_dispatch, JobOutcome::done());
  EXPECT_EQ(text_of(done.events.at(0), "code"), "");
  EXPECT_EQ(member(done.events.at(0), "signal"), FieldValue());
}

TEST(JobHooks, At_the_bound_of_their_depth_hooks_end) {
  auto job = shipping();
  job.hooks = context(JobHooks::most_depth - 1);
  const auto last = judge_job(job, this_dispatch, JobOutcome::done());
  ASSERT_THAT(last.events, SizeIs(1));
  EXPECT_EQ(hook_depth(last.events[0].headers), JobHooks::most_depth);

  job.hooks = context(JobHooks::most_depth);
  EXPECT_THAT(told(job, JobOutcome::done()), IsEmpty());
}

TEST(JobHooks, A_row_that_was_damaged_by_hand_keeps_no_end_from_being_recorded) {
  auto job = shipping();
  HookContext damaged = *context();
  damaged.aggregate = Aggregate{"", "\xff"};
  damaged.event_type = "\xff\n";
  job.hooks = std::make_shared<const HookContext>(damaged);
  job.route = "\xff";

  const auto update = judge_job(job, this_dispatch, JobOutcome::done());

  ASSERT_THAT(update.events, SizeIs(1));
  EXPECT_TRUE(check(update.events[0]).ok());
  EXPECT_EQ(update.events[0].aggregate, std::nullopt);
}

TEST(HookDepth, Is_read_from_our_header_and_bounded) {
  const auto depth = [](std::string text) {
    return hook_depth({{std::string(JobHooks::depth_header), std::move(text)}});
  };
  EXPECT_EQ(hook_depth({}), 0);
  EXPECT_EQ(depth("3"), 3);
  EXPECT_EQ(depth("-3"), 0);
  EXPECT_EQ(depth("three"), 0);
  EXPECT_EQ(depth("3 "), 0);
  EXPECT_EQ(depth("99"), JobHooks::most_depth);
  EXPECT_EQ(depth("99999999999999999999"), JobHooks::most_depth);
}

TEST(JobHistory, J_21_what_uses_an_attempt_joins_it_with_who_ran_it) {
  const std::vector<AttemptEnd> failures = {signal_9, TimedOut{}, SendRefused{"full", ""},
                                            JobOutcome::retry("down"), JobOutcome::fail("down")};
  for (const auto& end : failures) {
    const auto update = judge_job(shipping(), this_dispatch, end, this_worker);
    EXPECT_TRUE(update.keeps_failure) << update.result;
    EXPECT_EQ(update.attempts, 1) << update.result;
    EXPECT_EQ(update.worker, this_worker);
    EXPECT_NE(update.failure_code, "");
  }
  for (const AttemptEnd& end : {AttemptEnd(JobOutcome::done()), AttemptEnd(Interrupted{}),
                                AttemptEnd(JobOutcome::snooze(seconds(1)))}) {
    EXPECT_FALSE(judge_job(shipping(), this_dispatch, end).keeps_failure);
  }
}

}  // namespace
}  // namespace postrider::core
