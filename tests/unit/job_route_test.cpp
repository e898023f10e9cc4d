#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/route.hpp>

namespace postrider {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Route shipping() {
  JobPolicy policy;
  policy.job = "ReserveStock";
  policy.queue = "shipping";
  return job_route("ship", {"order.placed"}, policy);
}

struct JobRouteCase {
  std::string field;
  std::function<void(Route&)> change;
};

TEST(JobRoute, Defaults_with_a_job_and_a_queue_can_be_used) {
  const auto route = shipping();

  EXPECT_THAT(validate(route), IsEmpty());
  EXPECT_EQ(route.destination, "");
  EXPECT_EQ(route.order, Order::none);
  EXPECT_EQ(route.on_failed, OnFailed::skip);
  EXPECT_EQ(route.timeout, JobPolicy::default_timeout);
}

TEST(JobRoute, Values_at_their_bounds_can_be_used) {
  const std::vector<JobRouteCase> rows = {
      {"job", [](auto& r) { r.job->job = "azAZ09_-."; }},
      {"job", [](auto& r) { r.job->job.assign(64, 'A'); }},
      {"queue", [](auto& r) { r.job->queue.assign(64, 'a'); }},
      {"destination", [](auto& r) { r.destination = "amqp://localhost"; }},
      {"retry_delays", [](auto& r) { r.retry_delays.clear(); }},
      {"timeout", [](auto& r) { r.timeout = milliseconds(100); }},
      {"timeout_limit", [](auto& r) { r.job->timeout_limit = r.timeout; }},
      {"timeout_limit", [](auto& r) { r.timeout = r.job->timeout_limit = hours(24 * 7); }},
      {"priority", [](auto& r) { r.job->priority = -100; }},
      {"priority", [](auto& r) { r.job->priority = 100; }},
      {"max_deaths", [](auto& r) { r.job->max_deaths = 0; }},
      {"max_deaths", [](auto& r) { r.job->max_deaths = 100; }},
      {"serial_limit",
       [](auto& r) {
         r.job->serial_key = "{aggregate_id}";
         r.job->serial_limit = 1000;
       }},
      {"unique_key", [](auto& r) { r.job->unique_key = "{type}/{header:tenant}"; }},
      {"failed_event", [](auto& r) { r.job->hooks.failed_event.assign(255, 'a'); }},
      {"window", [](auto& r) { r.window = 0; }},  // says nothing on a job route
  };
  for (const auto& row : rows) {
    auto route = shipping();
    row.change(route);
    EXPECT_THAT(validate(route), IsEmpty()) << row.field;
  }
}

TEST(JobRoute, Every_broken_rule_is_one_fault_that_names_what_is_wrong) {
  const std::vector<JobRouteCase> rows = {
      {"the name", [](auto& r) { r.name.clear(); }},
      {"events", [](auto& r) { r.events.clear(); }},
      {"the job ''", [](auto& r) { r.job->job.clear(); }},
      {"the job", [](auto& r) { r.job->job.assign(65, 'a'); }},
      {"the job 'a b'", [](auto& r) { r.job->job = "a b"; }},
      {"the job 'a/b'", [](auto& r) { r.job->job = "a/b"; }},
      {"the queue ''", [](auto& r) { r.job->queue.clear(); }},
      {"the queue", [](auto& r) { r.job->queue.assign(65, 'a'); }},
      {"the queue 'Shipping'", [](auto& r) { r.job->queue = "Shipping"; }},
      {"serial_key", [](auto& r) { r.order = Order::aggregate; }},
      {"order", [](auto& r) { r.order = Order::global; }},
      {"on_failed", [](auto& r) { r.on_failed = OnFailed::halt; }},
      {"on_failed", [](auto& r) { r.on_failed = OnFailed::stop; }},
      {"retry_delays", [](auto& r) { r.retry_delays = {milliseconds(0)}; }},
      {"timeout", [](auto& r) { r.timeout = milliseconds(99); }},
      {"timeout",
       [](auto& r) {
         r.timeout = hours(24 * 7) + milliseconds(1);
         r.job->timeout_limit = hours(24 * 7);
       }},
      {"timeout_limit", [](auto& r) { r.job->timeout_limit = r.timeout - milliseconds(1); }},
      {"timeout_limit", [](auto& r) { r.job->timeout_limit = hours(24 * 7) + milliseconds(1); }},
      {"timeout_limit", [](auto& r) { r.job->timeout_limit = milliseconds(0); }},
      {"priority", [](auto& r) { r.job->priority = -101; }},
      {"priority", [](auto& r) { r.job->priority = 101; }},
      {"max_deaths", [](auto& r) { r.job->max_deaths = -1; }},
      {"max_deaths", [](auto& r) { r.job->max_deaths = 101; }},
      {"serial_key", [](auto& r) { r.job->serial_key = "{aggregate"; }},
      {"serial_key", [](auto& r) { r.job->serial_key.assign(256, 'a'); }},
      {"serial_limit", [](auto& r) { r.job->serial_limit = 0; }},
      {"serial_limit",
       [](auto& r) {
         r.job->serial_key = "all";
         r.job->serial_limit = 1001;
       }},
      {"serial_limit is 2 without a serial_key", [](auto& r) { r.job->serial_limit = 2; }},
      {"unique_key", [](auto& r) { r.job->unique_key = "{id}"; }},
      {"completed_event", [](auto& r) { r.job->hooks.completed_event.assign(256, 'a'); }},
      {"retry_event is ship.*, a pattern", [](auto& r) { r.job->hooks.retry_event = "ship.*"; }},
      {"failed_event", [](auto& r) { r.job->hooks.failed_event = "a\nb"; }},
      {"death_event", [](auto& r) { r.job->hooks.death_event = "\xff"; }},
  };
  for (const auto& row : rows) {
    auto route = shipping();
    row.change(route);
    const auto faults = validate(route);
    ASSERT_THAT(faults, SizeIs(1)) << row.field << ": " << ::testing::PrintToString(faults);
    EXPECT_THAT(faults[0], HasSubstr(row.field));
    EXPECT_TRUE(faults[0].ends_with('.')) << faults[0];
  }
}

TEST(JobRoute, Two_routes_conflict_when_one_event_would_make_the_same_job_twice) {
  const struct {
    std::vector<std::string> one;
    std::vector<std::string> other;
    bool conflict;
  } rows[] = {
      {{"*"}, {"order.placed"}, true},
      {{"order.placed"}, {"order.placed"}, true},
      {{"order.placed"}, {"order.paid"}, false},
      {{"order.*"}, {"order.paid"}, true},
      {{"order.*"}, {"order.item.*"}, true},
      {{"order.item.*"}, {"order.*"}, true},
      {{"order.*"}, {"orders.*"}, false},
      {{"order.*"}, {"order"}, false},
      {{"a", "b"}, {"c", "b"}, true},
  };
  for (const auto& row : rows) {
    auto one = shipping();
    auto other = shipping();
    other.name = "ship-too";
    one.events = row.one;
    other.events = row.other;
    EXPECT_EQ(conflict(one, other), row.conflict) << ::testing::PrintToString(row.one);
    EXPECT_EQ(conflict(other, one), row.conflict) << ::testing::PrintToString(row.other);
  }
}

TEST(JobRoute, Other_jobs_other_queues_and_publish_routes_may_share_events) {
  auto other = shipping();
  other.name = "ship-too";
  other.job->job = "Pack";
  EXPECT_FALSE(conflict(shipping(), other));

  other = shipping();
  other.name = "ship-too";
  other.job->queue = "slow";
  EXPECT_FALSE(conflict(shipping(), other));

  Route publish;
  publish.name = "publish";
  EXPECT_FALSE(conflict(shipping(), publish));
  publish.name = shipping().name;
  EXPECT_TRUE(conflict(shipping(), publish)) << "one name";
}

}  // namespace
}  // namespace postrider
