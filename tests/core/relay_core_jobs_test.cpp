// Jobs in the relay: rows from the start, that wait for no destination.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/job_route.hpp"
#include "core/relay_core.hpp"
#include "core/script.hpp"

namespace postrider::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

Route shipping(const std::string& name = "ship") {
  JobPolicy policy;
  policy.job = "ReserveStock";
  policy.queue = "shipping";
  policy.on_worker_death = OnWorkerDeath::retry;
  policy.max_deaths = 5;
  policy.priority = -3;
  policy.serial_key = "{aggregate_id}";
  policy.serial_limit = 2;
  policy.unique_key = "{type}/{aggregate_id}";
  policy.timeout_limit = hours(2);
  auto route = job_route(name, {"order.*"}, policy);
  route.retry_delays = {seconds(60), seconds(120)};
  route.timeout = seconds(600);
  return route;
}

Event order_placed() {
  Event event;
  event.seq = Seq(7);
  event.type = "order.placed";
  event.aggregate = Aggregate{"order", "17"};
  event.headers = {{"tenant", "north"}};
  return event;
}

void claim(Script& script, ClaimedEvent event) {
  (void)script.take<action::Claim>();
  ClaimedBatch batch;
  batch.events.push_back(std::move(event));
  batch.mark = ReadMark("1");
  script.give(input::Claimed{std::move(batch)});
}

ClaimedEvent claimed_event(Event event = order_placed()) {
  return {std::make_shared<Event>(std::move(event)), Partition(0), std::nullopt, ""};
}

/// Answers everything else until the core settles rows or results, in due time.
SettleRequest next_settle(Script& script) {
  for (int steps = 0; steps < 100; ++steps) {
    if (script.wants<action::Settle>()) {
      auto settle = script.take<action::Settle>();
      if (!settle.request.mark) return settle.request;
      script.give(input::Settled{});
    } else if (script.wants<action::Lease>()) {
      (void)script.take<action::Lease>();
      script.give(script.leased());
    } else if (script.wants<action::TakeDue>()) {
      (void)script.take<action::TakeDue>();
      script.give(input::TookDue{});
    } else if (script.wants<action::Claim>()) {
      (void)script.take<action::Claim>();
      script.give(Script::claimed({}));
    } else {
      script.clock_.advance(milliseconds(25));
      script.give(input::Tick{});
    }
  }
  ADD_FAILURE() << "nothing was settled";
  return {};
}

TEST(JobRoute, R_162_a_job_carries_the_policy_of_its_route) {
  const DeliveryId id(Uuid{});
  const auto route = shipping();

  const auto delivery = JobRoute(route).delivery_of(order_placed(), id);

  EXPECT_EQ(delivery.id, id);
  EXPECT_EQ(delivery.event_seq, Seq(7));
  EXPECT_EQ(delivery.route, "ship");
  EXPECT_EQ(delivery.status, DeliveryStatus::pending);
  EXPECT_EQ(delivery.ordering_key, std::nullopt);
  EXPECT_EQ(delivery.on_failed, OnFailed::skip);
  EXPECT_EQ(delivery.retry_delays, route.retry_delays);
  EXPECT_EQ(delivery.timeout, seconds(600));
  ASSERT_TRUE(delivery.job);
  EXPECT_EQ(delivery.job->transport, JobTransport::database);
  auto filled_in = *route.job;
  filled_in.serial_key = "17";
  filled_in.unique_key = "order.placed/17";
  EXPECT_EQ(delivery.job->policy, filled_in);
}

TEST(JobRoute, With_a_destination_it_goes_by_a_broker) {
  auto route = shipping();
  route.destination = "amqp://localhost";
  EXPECT_EQ(JobRoute(route).delivery_of(order_placed(), {}).job->transport, JobTransport::broker);
}

TEST(JobRoute, An_event_without_a_part_of_a_key_has_no_key) {
  auto lone = order_placed();
  lone.aggregate.reset();

  const auto delivery = JobRoute(shipping()).delivery_of(lone, {});

  EXPECT_EQ(delivery.status, DeliveryStatus::pending);
  EXPECT_EQ(delivery.job->policy.serial_key, "");
  EXPECT_EQ(delivery.job->policy.unique_key, "");
}

TEST(JobRoute, A_key_may_have_255_bytes_and_a_longer_one_makes_the_job_fail_with_the_reason) {
  auto route = shipping();
  route.job->serial_key = "{header:tenant}";
  route.job->unique_key = "";
  auto event = order_placed();
  event.headers["tenant"].assign(255, 'x');
  EXPECT_EQ(JobRoute(route).delivery_of(event, {}).job->policy.serial_key.size(), 255U);
  event.headers["tenant"] += 'x';

  const auto delivery = JobRoute(route).delivery_of(event, {});

  EXPECT_EQ(delivery.status, DeliveryStatus::failed);
  EXPECT_EQ(delivery.failure_code, job_code::key_too_long);
  EXPECT_THAT(delivery.failure_detail, HasSubstr("serial_key has 256 bytes and may have 255"));
  EXPECT_EQ(delivery.job->policy.serial_key, "");
}

TEST(JobRoute, Hooks_go_with_the_job_until_too_many_stand_in_a_row) {
  auto route = shipping();
  route.job->hooks.failed_event = "shipping.failed";
  const JobRoute jobs(route);
  auto event = order_placed();
  EXPECT_EQ(jobs.delivery_of(event, {}).job->policy.hooks, route.job->hooks);
  EXPECT_FALSE(jobs.drops_hooks(event));

  event.headers[std::string(JobHooks::depth_header)] = std::to_string(JobHooks::most_depth - 1);
  EXPECT_EQ(jobs.delivery_of(event, {}).job->policy.hooks, route.job->hooks);
  event.headers[std::string(JobHooks::depth_header)] = std::to_string(JobHooks::most_depth);
  EXPECT_TRUE(jobs.delivery_of(event, {}).job->policy.hooks.empty());
  EXPECT_TRUE(jobs.drops_hooks(event));
  EXPECT_FALSE(JobRoute(shipping()).drops_hooks(event)) << "there are none";
}

TEST(RelayCoreJobs, Of_a_job_whose_hooks_are_dropped_a_warning_tells_once_it_is_stored) {
  auto route = shipping();
  route.job->hooks.failed_event = "shipping.failed";
  Script script({route});
  script.begin();
  auto event = order_placed();
  event.headers[std::string(JobHooks::depth_header)] = std::to_string(JobHooks::most_depth);
  claim(script, claimed_event(event));
  const auto before = script.notices_.size();
  const auto settle = next_settle(script);
  ASSERT_EQ(settle.deliveries.size(), 1U);
  EXPECT_TRUE(settle.deliveries[0].job->policy.hooks.empty());
  script.give(input::Settled{});

  ASSERT_EQ(script.notices_.size(), before + 1);
  const auto& notice = script.notices_.back();
  EXPECT_EQ(notice.kind, NoticeKind::hooks_dropped);
  EXPECT_EQ(notice.route, "ship");
  EXPECT_EQ(notice.delivery_id, settle.deliveries[0].id);
}

TEST(RelayCoreJobs, R_167_an_event_of_job_routes_alone_is_settled_at_once_with_its_jobs) {
  Script script({shipping(), [] {
                   auto other = shipping("pack");
                   other.job->job = "Pack";
                   return other;
                 }()});
  script.begin();
  EXPECT_FALSE(script.wants<action::TakeDue>()) << "no row of a job is the relay's to send";
  claim(script, claimed_event());

  EXPECT_FALSE(script.wants<action::Submit>());
  const auto settle = next_settle(script);
  ASSERT_EQ(settle.routed.size(), 1U);
  ASSERT_EQ(settle.deliveries.size(), 2U);
  EXPECT_EQ(settle.deliveries[0].job->policy.job, "ReserveStock");
  EXPECT_EQ(settle.deliveries[1].job->policy.job, "Pack");
  EXPECT_NE(settle.deliveries[0].id, settle.deliveries[1].id);
  script.give(input::Settled{});
  script.give(input::Settled{});
  const auto report = script.take<action::Done>().report;
  EXPECT_EQ(report.jobs, 2U);
  EXPECT_EQ(report.failed, 0U);
}

TEST(RelayCoreJobs, R_154_jobs_and_publish_deliveries_of_an_event_are_settled_together) {
  Script script({shipping(), route_named("all")});
  script.begin();
  script.read({1});
  const auto submit = script.take<action::Submit>();
  EXPECT_EQ(submit.route, 1U);
  EXPECT_FALSE(script.wants<action::Settle>());

  script.give(Script::confirmed(submit));

  const auto settle = next_settle(script);
  EXPECT_EQ(settle.routed.size(), 1U);
  ASSERT_EQ(settle.deliveries.size(), 1U) << "the confirmed delivery is no row";
  EXPECT_TRUE(settle.deliveries[0].job);
}

TEST(RelayCoreJobs, A_slow_destination_delays_jobs_for_settle_patience_only) {
  Script script({route_named("slow"), shipping()});
  script.begin(true);
  script.read({1});
  const auto slow = script.take<action::Submit>();
  const auto begun = script.clock_.steady();

  const auto settle = next_settle(script);

  EXPECT_GE(script.clock_.steady(), begun + RelayOptions().settle_patience);
  EXPECT_LE(script.clock_.steady(), begun + RelayOptions().settle_patience + milliseconds(50));
  EXPECT_EQ(settle.routed.size(), 1U);
  ASSERT_EQ(settle.deliveries.size(), 2U);
  EXPECT_TRUE(settle.deliveries[0].job);
  EXPECT_EQ(settle.deliveries[1].status, DeliveryStatus::dispatched);
}

// All of one aggregate: only the first is in flight, the others stand behind it.
TEST(RelayCoreJobs, Jobs_do_not_wait_for_events_that_queue_behind_a_slow_one) {
  Script script({route_named("slow"), shipping()});
  script.begin(true);
  (void)script.take<action::TakeDue>();
  script.give(input::TookDue{});
  (void)script.take<action::Claim>();
  ClaimedBatch batch;
  for (const int seq : {1, 2, 3}) {
    auto event = order_placed();
    event.seq = Seq(seq);
    // The first one makes no job, so nothing but what stands behind it is in a hurry.
    if (seq == 1) event.type = "cart.filled";
    batch.events.push_back(claimed_event(event));
  }
  batch.mark = ReadMark("3");
  script.give(input::Claimed{std::move(batch)});
  const auto slow = script.take<action::Submit>();
  ASSERT_EQ(slow.messages.size(), 1U);

  const auto settle = next_settle(script);
  EXPECT_EQ(settle.routed.size(), 3U);
  std::vector<DeliveryStatus> published;
  std::size_t jobs = 0;
  for (const auto& delivery : settle.deliveries) {
    jobs += delivery.job ? 1U : 0U;
    if (!delivery.job) published.push_back(delivery.status);
  }
  EXPECT_EQ(jobs, 2U);
  EXPECT_EQ(published, (std::vector{DeliveryStatus::dispatched, DeliveryStatus::pending,
                                    DeliveryStatus::pending}));

  script.give(input::Settled{});
  script.give(Script::confirmed(slow));  // the late outcome completes its row
  const auto late = next_settle(script);
  ASSERT_EQ(late.updates.size(), 1U);
  EXPECT_EQ(late.updates[0].status, DeliveryStatus::completed);
}

// The head is a stored delivery that is being tried again.
TEST(RelayCoreJobs, Jobs_do_not_wait_for_events_that_queue_behind_a_slow_retry) {
  Script script({route_named("slow"), shipping()});
  script.begin(true);
  (void)script.take<action::TakeDue>();
  DueDelivery due;
  due.delivery.id = DeliveryId(script.ids_.next());
  due.delivery.event_seq = Seq(1);
  due.delivery.route = "slow";
  due.delivery.ordering_key = "order/17";
  due.delivery.timeout = seconds(30);
  auto first = order_placed();
  first.seq = Seq(1);
  due.event = std::make_shared<Event>(first);
  due.partition = Partition(0);
  input::TookDue took;
  took.batch.deliveries.push_back(due);
  script.give(std::move(took));
  const auto slow = script.take<action::Submit>();
  claim(script, claimed_event());

  const auto settle = next_settle(script);
  EXPECT_EQ(settle.routed.size(), 1U);
  EXPECT_EQ(settle.deliveries.size(), 2U);
  EXPECT_TRUE(settle.updates.empty());
  script.give(input::Settled{});
  script.give(Script::confirmed(slow));
  const auto late = next_settle(script);
  ASSERT_EQ(late.updates.size(), 1U);
  EXPECT_EQ(late.updates[0].id, due.delivery.id);
  EXPECT_EQ(late.updates[0].status, DeliveryStatus::completed);
}

// One answer is missing for good, the other says nothing: nobody knows yet who was at fault.
TEST(RelayCoreJobs, Jobs_do_not_wait_for_the_verdict_on_a_doubt) {
  Script script({route_named("slow"), shipping()});
  script.begin(true);
  script.read({1, 2});
  const auto slow = script.take<action::Submit>();
  ASSERT_EQ(slow.messages.size(), 2U);
  script.give(input::Outcomes{{{slow.messages[0].attempt, Outcome::unknown("timed_out", "")}}});

  const auto settle = next_settle(script);

  EXPECT_EQ(settle.routed.size(), 2U);
  ASSERT_EQ(settle.deliveries.size(), 4U);
  for (const auto& delivery : settle.deliveries) {
    const auto expected = delivery.job ? DeliveryStatus::pending : DeliveryStatus::dispatched;
    EXPECT_EQ(delivery.status, expected) << delivery.event_seq.value();
  }
  script.give(input::Settled{});
  script.give(input::Outcomes{{{slow.messages[1].attempt, Outcome::confirmed()}}});
  const auto late = next_settle(script);
  ASSERT_EQ(late.updates.size(), 2U);
  for (const auto& update : late.updates) {
    EXPECT_EQ(update.expected_status, DeliveryStatus::dispatched);
    const bool first = update.expected_dispatch_id == slow.messages[0].dispatch_id;
    EXPECT_EQ(update.status, first ? DeliveryStatus::pending : DeliveryStatus::completed);
    EXPECT_EQ(update.attempts, first ? 1 : 0);
  }
}

TEST(RelayCoreJobs, While_every_destination_is_paused_jobs_are_made_all_the_same) {
  Script script({route_named("all"), shipping()});
  script.give(input::Begin{true});
  (void)script.take<action::Lease>();
  auto leased = script.leased();
  leased.grant.paused_routes = {"all", "ship"};  // a job route has nothing that could be paused
  script.give(std::move(leased));
  (void)script.take<action::TakeHeld>();
  script.give(input::TookHeld{});
  claim(script, claimed_event());

  EXPECT_FALSE(script.wants<action::Submit>());
  const auto settle = next_settle(script);
  ASSERT_EQ(settle.deliveries.size(), 2U);
  EXPECT_TRUE(settle.deliveries[0].job);
  EXPECT_EQ(settle.deliveries[1].status, DeliveryStatus::pending) << "parked";
}

TEST(RelayCoreJobs, A_scheduled_event_makes_a_job_that_is_due_then) {
  Script script({shipping()});
  script.begin();
  auto event = claimed_event();
  event.delay = hours(2);
  claim(script, std::move(event));

  const auto settle = next_settle(script);
  ASSERT_EQ(settle.deliveries.size(), 1U);
  EXPECT_EQ(settle.deliveries[0].available_in, hours(2));
  EXPECT_EQ(settle.deliveries[0].status, DeliveryStatus::pending);
}

TEST(RelayCoreJobs, An_event_that_cannot_be_read_makes_a_dead_job_and_the_others_go_on) {
  Script script({shipping()});
  script.begin();
  (void)script.take<action::Claim>();
  ClaimedBatch batch;
  batch.events.push_back(claimed_event());
  batch.events.push_back(claimed_event());
  batch.events[0].malformed = "its headers are no JSON";
  batch.mark = ReadMark("8");
  script.give(input::Claimed{std::move(batch)});

  const auto settle = next_settle(script);
  EXPECT_EQ(settle.routed.size(), 2U);
  ASSERT_EQ(settle.deliveries.size(), 2U);
  EXPECT_EQ(settle.deliveries[0].status, DeliveryStatus::failed);
  EXPECT_EQ(settle.deliveries[0].failure_code, job_code::undecodable);
  EXPECT_EQ(settle.deliveries[0].failure_detail, "its headers are no JSON");
  EXPECT_EQ(settle.deliveries[1].status, DeliveryStatus::pending);
  EXPECT_FALSE(script.was_told(NoticeKind::delivery_failed)) << "not before it is committed";
  script.give(input::Settled{});
  EXPECT_TRUE(script.was_told(NoticeKind::delivery_failed));
  script.give(input::Settled{});
  const auto report = script.take<action::Done>().report;
  EXPECT_EQ(report.failed, 1U);
  EXPECT_EQ(report.jobs, 1U);
  ASSERT_EQ(report.errors.size(), 1U);
  EXPECT_EQ(report.errors[0].code, job_code::undecodable);
}

TEST(RelayCoreJobs, A_held_event_becomes_a_job_once_a_route_matches) {
  Script script({shipping()});
  script.give(input::Begin{});
  (void)script.take<action::Lease>();
  script.give(script.leased());
  (void)script.take<action::TakeHeld>();
  const DeliveryId row(script.ids_.next());
  input::TookHeld took;
  took.batch.events.push_back({claimed_event(), row});
  script.give(std::move(took));

  const auto settle = next_settle(script);
  EXPECT_EQ(settle.routed.size(), 1U);
  ASSERT_EQ(settle.deliveries.size(), 1U);
  EXPECT_TRUE(settle.deliveries[0].job);
  EXPECT_EQ(settle.released, std::vector{row});
}

TEST(RelayCoreJobs, What_was_not_settled_makes_its_jobs_again) {
  Script script({shipping()});
  script.begin();
  claim(script, claimed_event());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(next_settle(script).deliveries.size(), 1U);
    script.give(input::StoreFailed{store_error(Disposition::retry)});
  }
  EXPECT_TRUE(script.take<action::Done>().error);

  script.give(input::Begin{});
  (void)script.take<action::Lease>();
  script.give(script.leased());
  claim(script, claimed_event());
  EXPECT_EQ(next_settle(script).deliveries.size(), 1U);
}

TEST(RelayCoreJobs, A_relay_of_job_routes_alone_sleeps_while_nothing_comes) {
  Script script({shipping()});
  script.begin(true);
  (void)script.take<action::Claim>();
  script.give(Script::claimed({}));
  (void)script.take<action::Settle>();  // of the position
  script.give(input::Settled{});

  ASSERT_TRUE(script.core_.wake_at());
  EXPECT_GT(*script.core_.wake_at(), script.clock_.steady());
  script.clock_.advance(RelayOptions().sleep);
  script.give(input::Tick{});
  EXPECT_TRUE(script.wants<action::Lease>() || script.wants<action::Claim>());
}

}  // namespace
}  // namespace postrider::core
