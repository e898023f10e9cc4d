#pragma once
/// \file
/// A hand that answers what the worker's core asks for, one step at a time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/testing/manual_clock.hpp>

#include "core/worker_core.hpp"

namespace postrider::core {

inline Uuid numbered_uuid(std::uint8_t kind, std::uint64_t number) {
  std::array<std::uint8_t, 16> bytes{};
  bytes[0] = kind;
  for (std::size_t i = 0; i < 8; ++i)
    bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
  return Uuid(bytes);
}
inline DispatchId dispatch_numbered(std::uint64_t number) {
  return DispatchId(numbered_uuid(0xD1, number));
}
inline DeliveryId delivery_numbered(std::uint64_t number) {
  return DeliveryId(numbered_uuid(0xDE, number));
}

/// A job of queue "shipping" with two retries that may run for ten minutes.
inline Task task_numbered(std::uint64_t number) {
  Task task;
  task.job.delivery_id = delivery_numbered(number);
  task.job.job = "ship_order";
  task.job.queue = "shipping";
  task.job.retry_delays = {std::chrono::seconds(60), std::chrono::seconds(120)};
  task.dispatch_id = dispatch_numbered(number);
  task.until_timeout = std::chrono::minutes(10);
  auto event = std::make_shared<Event>();
  event->type = "order.placed";
  task.event = std::move(event);
  return task;
}

inline WorkerOptions four_slots() {
  WorkerOptions options;
  options.queues = {{"shipping", 1}};
  options.concurrency = 4;
  return options;
}

inline const WorkerDeath killed{9, std::nullopt, false};
inline const WorkerDeath terminated{15, std::nullopt, false};

/// Answers the core's calls as a healthy store with the given tasks would, one at a time.
class WorkerScript {
 public:
  explicit WorkerScript(WorkerOptions options = four_slots(), bool can_kill = true,
                        bool calls_overlap = false)
      : options_(options),
        core_({WorkerId(numbered_uuid(0xF0, 1)), "worker", "", 0, "", {}, WorkerState::running},
              options, {100, can_kill, calls_overlap}, ids_, *random_) {}

  template <class Wanted>
  Wanted take() {
    for (auto action = pending_.begin(); action != pending_.end(); ++action) {
      if (auto* found = std::get_if<Wanted>(&*action)) {
        auto taken = std::move(*found);
        pending_.erase(action);
        return taken;
      }
    }
    ADD_FAILURE() << "the core did not ask for it";
    return {};
  }
  template <class Wanted>
  [[nodiscard]] bool wants() const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [](const auto& action) { return std::holds_alternative<Wanted>(action); });
  }
  /// Of one attempt: was this asked for? Taken off the list.
  template <class Wanted>
  bool asked(std::uint64_t number) {
    return std::erase_if(pending_, [&](const WorkerAction& action) {
             const auto* found = std::get_if<Wanted>(&action);
             return found != nullptr && found->dispatch_id == dispatch_numbered(number);
           }) == 1;
  }
  [[nodiscard]] std::size_t starts() {
    return std::erase_if(pending_, [](const WorkerAction& action) {
      return std::holds_alternative<worker_action::Start>(action);
    });
  }

  void give(WorkerInput input) { keep(core_.step(std::move(input), clock_.steady())); }
  void give(std::vector<WorkerInput> inputs) {
    keep(core_.step(std::move(inputs), clock_.steady()));
  }
  void advance(milliseconds by) {
    clock_.advance(by);
    give(worker_input::Tick{});
  }

  [[nodiscard]] worker_input::Beaten alive(HeartbeatAnswer answer = {}) const {
    return {std::move(answer), clock_.steady()};
  }
  void beat() {
    (void)take<worker_action::Beat>();
    give(alive());
  }
  /// Up to the first take.
  void begin() {
    give(worker_input::Begin{});
    beat();
  }
  [[nodiscard]] worker_input::Taken taken(const std::vector<Task>& tasks, bool more = false) const {
    return {{tasks, more, std::nullopt}, clock_.steady()};
  }
  void answer_take(const std::vector<Task>& tasks, bool more = false) {
    (void)take<worker_action::Take>();
    give(taken(tasks, more));
  }
  /// Begins, and has these running.
  void run(const std::vector<std::uint64_t>& numbers) {
    begin();
    std::vector<Task> tasks;
    for (const auto number : numbers)
      tasks.push_back(task_numbered(number));
    answer_take(tasks);
    EXPECT_EQ(starts(), numbers.size());
  }
  void end(std::uint64_t number, AttemptEnd how = JobOutcome::done()) {
    give(worker_input::Ended{dispatch_numbered(number), std::move(how)});
  }
  /// What is to be recorded, answered with `answer`; a take that is in the way brings nothing.
  std::vector<JobUpdate> record(RecordAnswer answer = RecordAnswer::recorded) {
    if (!wants<worker_action::Record>()) settle_takes();
    const auto updates = take<worker_action::Record>().request.updates;
    give(worker_input::Recorded{std::vector(updates.size(), answer)});
    return updates;
  }
  /// Answers takes with nothing and heartbeats with success, if there are such.
  void settle() {
    if (wants<worker_action::Take>()) answer_take({});
    if (wants<worker_action::Beat>()) beat();
  }
  void settle_takes() {
    if (wants<worker_action::Take>()) answer_take({});
  }
  void settle_beats() {
    if (wants<worker_action::Beat>()) beat();
  }
  /// Time passes while the store answers: takes bring nothing, heartbeats succeed.
  void live_for(milliseconds time) {
    const auto until = clock_.steady() + time;
    while (clock_.steady() < until) {
      settle();
      const auto next = std::min(core_.wake_at().value_or(until), until);
      const auto step = std::max<Instant::duration>(next - clock_.steady(), milliseconds(1));
      advance(std::chrono::ceil<milliseconds>(step));
    }
    settle();
  }
  /// Time passes while no heartbeat gets through.
  void cut_off_for(milliseconds time) {
    const auto until = clock_.steady() + time;
    while (clock_.steady() < until) {
      if (wants<worker_action::Beat>()) fail_beat();
      settle_takes();
      advance(
          std::min(milliseconds(100), std::chrono::ceil<milliseconds>(until - clock_.steady())));
    }
  }
  void wait_until_recording() {
    for (int i = 0; i < 2000 && !wants<worker_action::Record>(); ++i) {
      settle_beats();
      advance(milliseconds(10));
    }
  }
  void beat_until_done() {
    for (int i = 0; i < 5 && !wants<worker_action::Done>(); ++i)
      settle_beats();
  }
  WorkerReport stop_and_report() {
    give(worker_input::Stop{});
    settle();
    settle();
    return take<worker_action::Done>().report;
  }
  void fail_take(Disposition disposition = Disposition::retry) {
    give(worker_input::TakeFailed{error(disposition)});
  }
  void fail_record(Disposition disposition = Disposition::retry) {
    give(worker_input::RecordFailed{error(disposition)});
  }
  void fail_beat(Disposition disposition = Disposition::retry) {
    (void)take<worker_action::Beat>();
    give(worker_input::BeatFailed{error(disposition)});
  }
  static Error error(Disposition disposition) {
    return {ErrorCode::unavailable, disposition, "planted", "test", ""};
  }
  [[nodiscard]] std::vector<Notice> told(NoticeKind kind) const {
    std::vector<Notice> found;
    std::copy_if(notices_.begin(), notices_.end(), std::back_inserter(found),
                 [&](const Notice& notice) { return notice.kind == kind; });
    return found;
  }

  testing::ManualClock clock_;
  std::unique_ptr<Random> random_ = seeded_random(1);
  IdGenerator ids_{clock_, *random_};
  WorkerOptions options_;
  WorkerCore core_;
  std::vector<WorkerAction> pending_;
  std::vector<Notice> notices_;

 private:
  void keep(std::vector<WorkerAction> actions) {
    for (auto& action : actions) {
      if (auto* notify = std::get_if<worker_action::Notify>(&action)) {
        notices_.push_back(notify->notice);
      } else {
        pending_.push_back(std::move(action));
      }
    }
  }
};

}  // namespace postrider::core
