#include "engine/schedule_engine.hpp"

#include <algorithm>
#include <utility>

namespace postrider::engine {
namespace {

constexpr milliseconds first_store_wait{100};
constexpr milliseconds longest_store_wait{10'000};
// A schedule whose event cannot be written is tried again, without filling the log of the database.
constexpr milliseconds first_schedule_wait{1'000};
constexpr milliseconds longest_schedule_wait{60'000};

// Whether no other schedule would fare better.
bool concerns_the_store(const Error& error) {
  switch (error.code) {
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
    case ErrorCode::busy:
    case ErrorCode::commit_unknown:
    case ErrorCode::auth_failed:
    case ErrorCode::permission_denied:
    case ErrorCode::primary_not_writable:
    case ErrorCode::schema_mismatch:
    case ErrorCode::storage_failed:
      return true;
    default:
      return false;
  }
}

// With a time that lies ahead, a wait of at least a millisecond.
milliseconds wait_until(const std::optional<Timestamp>& next, Timestamp now, milliseconds period) {
  if (!next) return period;
  return std::clamp(std::chrono::ceil<milliseconds>(*next - now), milliseconds(1), period);
}

}  // namespace

ScheduleEngine::ScheduleEngine(std::unique_ptr<ScheduleStore> store,
                               std::vector<Schedule> schedules, const RelayOptions& options,
                               const Clock& clock, Random& random, Observer& observer)
    : store_(std::move(store)),
      core_(std::move(schedules)),
      period_(options.sleep),
      store_timeout_(options.store_timeout),
      clock_(clock),
      random_(random),
      observer_(observer),
      store_backoff_(first_store_wait, longest_store_wait, random) {}

void ScheduleEngine::run_once() {
  static_cast<void>(look());
}

void ScheduleEngine::run() {
  while (!stops_within(milliseconds(0)) && !stops_within(look())) {
  }
}

// Woken early it says no, and the look that follows costs little.
bool ScheduleEngine::stops_within(milliseconds patience) {
  const MutexLock lock(mutex_);
  if (!stop_requested_ && patience > milliseconds(0)) stopped_.wait_for(mutex_, patience);
  return stop_requested_;
}

void ScheduleEngine::request_stop() noexcept {
  const MutexLock lock(mutex_);
  stop_requested_ = true;
  stopped_.notify_all();
}

milliseconds ScheduleEngine::look() {
  if (!registered_) {
    if (auto done = register_all(core_.schedules()); !done) return note_store_failed(done.error());
    registered_ = true;
  }
  const auto states = store_->states(clock_.database_override(), deadline());
  if (!states) return note_store_failed(states.error());
  if (auto done = register_unknown(*states); !done) return note_store_failed(done.error());
  const auto plan = core_.plan(*states);
  if (auto done = fire_all(plan); !done) return note_store_failed(done.error());
  note_store_works();
  return wait_until(plan.next, states->now, period_);
}

// Another database has taken over that never heard of them, or somebody forgot one that is
// configured. What another relay has changed since our start stays as it is: that one is newer.
Result<void> ScheduleEngine::register_unknown(const ScheduleStates& states) {
  std::vector<Schedule> unknown;
  for (const auto& schedule : core_.schedules()) {
    const bool known =
        std::any_of(states.schedules.begin(), states.schedules.end(),
                    [&](const ScheduleState& state) { return state.name == schedule.name; });
    if (!known) unknown.push_back(schedule);
  }
  if (unknown.empty()) return {};
  return register_all(std::move(unknown));
}

Result<void> ScheduleEngine::register_all(std::vector<Schedule> schedules) {
  return store_->register_all({std::move(schedules), clock_.database_override()}, deadline());
}

// One that fails leaves the others alone, unless all would.
Result<void> ScheduleEngine::fire_all(const core::SchedulePlan& plan) {
  for (const auto& planned : plan.fires) {
    const auto& name = planned.request.name;
    if (waits(name)) continue;
    auto fired = fire(planned);
    if (fired) {
      troubles_.erase(name);
    } else if (concerns_the_store(fired.error())) {
      return fired;
    } else {
      note_failed(name, fired.error());
    }
  }
  return {};
}

Result<void> ScheduleEngine::fire(const core::PlannedFire& planned) {
  auto request = planned.request;
  request.now = clock_.database_override();
  const auto answer = store_->fire(request, deadline());
  if (!answer) return answer.error();
  if (answer->fired) note_fired(planned, *answer);
  return {};
}

bool ScheduleEngine::waits(const std::string& schedule) const {
  const auto found = troubles_.find(schedule);
  return found != troubles_.end() && clock_.steady() < found->second.again_at;
}

void ScheduleEngine::note_fired(const core::PlannedFire& planned, const FireAnswer& answer) {
  if (planned.passed_over > 0) {
    Notice notice;
    notice.kind = NoticeKind::schedule_missed;
    notice.schedule = planned.request.name;
    notice.rows = planned.passed_over;
    observer_.notice(notice);
  }
  const auto& slots = planned.request.slots;
  for (std::size_t i = 0; i < slots.size() && i < answer.event_ids.size(); ++i) {
    if (!answer.event_ids[i]) continue;
    Notice notice;
    notice.kind = NoticeKind::schedule_fired;
    notice.schedule = planned.request.name;
    notice.slot_at = slots[i].at;
    notice.event_id = answer.event_ids[i];
    notice.event_type = slots[i].event.type;
    observer_.notice(notice);
  }
}

void ScheduleEngine::note_failed(const std::string& schedule, const Error& error) {
  const auto [trouble, first] = troubles_.try_emplace(
      schedule,
      Trouble{core::Backoff(first_schedule_wait, longest_schedule_wait, random_), Instant{}});
  trouble->second.again_at = clock_.steady() + trouble->second.backoff.next();
  if (!first) return;
  Notice notice;
  notice.kind = NoticeKind::schedule_failed;
  notice.schedule = schedule;
  notice.code = to_string(error.code);
  notice.detail = error.message;
  observer_.notice(notice);
}

milliseconds ScheduleEngine::note_store_failed(const Error& error) {
  if (!store_backoff_.failing()) {
    Notice notice;
    notice.kind = NoticeKind::store_failed;
    notice.code = to_string(error.code);
    notice.detail = "schedules: " + error.message;
    observer_.notice(notice);
  }
  return store_backoff_.next();
}

void ScheduleEngine::note_store_works() {
  if (!store_backoff_.failing()) return;
  store_backoff_.reset();
  Notice notice;
  notice.kind = NoticeKind::store_recovered;
  notice.detail = "schedules";
  observer_.notice(notice);
}

}  // namespace postrider::engine
