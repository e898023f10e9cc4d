#include "core/job_hooks.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <postrider/codec.hpp>

#include "base/utf8.hpp"

namespace postrider::core {
namespace {

FieldValue json_text(std::string_view value) {
  return {clean_text(value, EventLimits{}.name_bytes)};
}

template <class Id>
FieldValue json_id(const Id& value) {
  return {value.value().to_string()};
}

FieldValue json_number(std::int64_t value) {
  return {value};
}

/// Writes the events of one transition.
class HookWriter {
 public:
  HookWriter(const Job& job, const JobUpdate& update, const AttemptEnd& end)
      : job_(job), update_(update), death_(std::get_if<WorkerDeath>(&end)) {}

  std::vector<NewEvent> write() {
    const auto& hooks = job_.hooks->hooks;
    if (job_.hooks->depth >= JobHooks::most_depth) return {};
    switch (update_.status) {
      case DeliveryStatus::completed:
        add("completed", hooks.completed_event);
        break;
      case DeliveryStatus::failed:
        if (death_ != nullptr) add("death", hooks.death_event);
        add("failed", hooks.failed_event);
        break;
      case DeliveryStatus::pending:
        if (death_ != nullptr) add("death", hooks.death_event);
        if (update_.keeps_failure) add("retry", hooks.retry_event);
        break;
      default:
        break;
    }
    return std::move(events_);
  }

 private:
  void add(std::string_view transition, const std::string& type) {
    if (type.empty()) return;
    NewEvent event;
    event.type = type;
    event.aggregate = job_.hooks->aggregate;
    event.payload = json_codec().encode({members(transition)}).value();
    event.headers.emplace(JobHooks::causation_header, job_.event_id.value().to_string());
    event.headers.emplace(JobHooks::depth_header, std::to_string(job_.hooks->depth + 1));
    // What a row that was damaged by hand holds must not keep the end from being recorded.
    if (!check(event)) event.aggregate.reset();
    events_.push_back(std::move(event));
  }

  // All of them always, so that a receiver need not ask which are there.
  [[nodiscard]] FieldMembers members(std::string_view transition) const {
    const bool waits = update_.status == DeliveryStatus::pending;
    return {
        {"transition", json_text(transition)},
        {"delivery_id", json_id(job_.delivery_id)},
        {"event_id", json_id(job_.event_id)},
        {"event_type", json_text(job_.hooks->event_type)},
        {"route", json_text(job_.route)},
        {"job", json_text(job_.job)},
        {"queue", json_text(job_.queue)},
        {"attempt", json_number(job_.attempts + 1)},
        {"last_attempt", {job_.last_attempt()}},
        {"dispatch_id", json_id(update_.dispatch_id)},
        {"worker", update_.worker ? json_id(*update_.worker) : FieldValue()},
        {"code", json_text(update_.failure_code)},
        {"detail", json_text(update_.failure_detail)},
        {"signal",
         death_ != nullptr && death_->signal != 0 ? json_number(death_->signal) : FieldValue()},
        {"retry_in_ms", waits ? json_number(update_.available_in.count()) : FieldValue()},
    };
  }

  const Job& job_;
  const JobUpdate& update_;
  const WorkerDeath* death_;
  std::vector<NewEvent> events_;
};

}  // namespace

std::vector<NewEvent> hook_events(const Job& job, const JobUpdate& update, const AttemptEnd& end) {
  if (!job.hooks) return {};
  return HookWriter(job, update, end).write();
}

}  // namespace postrider::core
