#include "conformance/schedule_store_builders.hpp"

#include <ostream>

namespace postrider::testing {

void PrintTo(const AuditedScheduleChange& change, std::ostream* out) {
  *out << change.action << " " << change.object << " by " << change.who << ": " << change.reason;
}

void PrintTo(const ScheduleStoreCase& store_case, std::ostream* out) {
  *out << store_case.name;
}

std::string schedule_case_name(const ::testing::TestParamInfo<ScheduleStoreCase>& info) {
  return info.param.name;
}

void ScheduleStoreConformance::SetUp() {
  harness_ = GetParam().make();
  if (IsSkipped() || HasFailure()) return;  // by a harness whose server is not there
  ASSERT_NE(harness_, nullptr);
  store_ = harness_->open_schedule_store();
}

void ScheduleStoreConformance::TearDown() {
  store_.reset();
  harness_.reset();
}

Schedule ScheduleStoreConformance::hourly(const ScheduleChange& change) {
  Schedule schedule;
  schedule.name = "hourly";
  schedule.cron = "0 * * * *";
  schedule.type = "tick";
  if (change) change(schedule);
  return schedule;
}

void ScheduleStoreConformance::register_one(const Schedule& schedule) {
  expect_ok(store_->register_all({{schedule}, now()}, soon()));
}

std::vector<ScheduleState> ScheduleStoreConformance::states() {
  return value_of(store_->states(now(), soon())).schedules;
}

ScheduleState ScheduleStoreConformance::state(const std::string& name) {
  for (const auto& state : states()) {
    if (state.name == name) return state;
  }
  ADD_FAILURE() << "there is no schedule " << name;
  return {};
}

FireRequest ScheduleStoreConformance::fire_request(const std::vector<Timestamp>& slots,
                                                   const Schedule& schedule) {
  FireRequest request;
  request.name = schedule.name;
  request.definition_hash = definition_hash(schedule);
  request.decided_until = state(schedule.name).decided_until;
  request.now = now();
  for (const auto slot : slots)
    request.slots.push_back({slot, event_of(schedule, slot)});
  request.decide_until = slots.empty() ? now() : slots.back();
  return request;
}

FireAnswer ScheduleStoreConformance::fire(const FireRequest& request) {
  return value_of(store_->fire(request, soon()));
}

std::vector<EventSummary> ScheduleStoreConformance::events() {
  EventFilter all;
  all.limit = most_listed;
  return value_of(harness_->open_operations()->events(all, now(), soon())).events;
}

Timestamp ScheduleStoreConformance::hour(int number) {
  return ManualClock().wall() + std::chrono::hours(number);
}

}  // namespace postrider::testing
