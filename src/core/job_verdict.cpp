#include "core/job_verdict.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "core/job_hooks.hpp"

namespace postrider::core {
namespace {

constexpr milliseconds least_delay{1};

// What went wrong, in words that are safe to store.
struct Failure {
  std::string_view code;
  std::string detail;
};

// Equal for equal results and different for different ones; details are for people only.
std::string result_of(const JobOutcome& outcome) {
  std::string result(to_string(outcome.kind));
  const bool has_code =
      outcome.kind == JobOutcome::Kind::retry || outcome.kind == JobOutcome::Kind::fail;
  if (has_code) result += ":" + clean_text(outcome.code, JobOutcome::code_bytes);
  if (outcome.delay) result += ":" + std::to_string(outcome.delay->count());
  return result;
}

Failure failure_of(const WorkerDeath& death) {
  if (death.out_of_memory) return {job_code::out_of_memory, "the worker ran out of memory"};
  if (death.signal != 0) {
    return {job_code::worker_died, "signal " + std::to_string(death.signal)};
  }
  if (!death.exit_code) return {job_code::worker_died, {}};
  return {job_code::exited_without_result, "exit code " + std::to_string(*death.exit_code)};
}

/// Judges one end of one job; `update` begins as the row stands, with nothing used.
class Judgement {
 public:
  Judgement(const Job& job, const DispatchId& dispatch) : job_(&job) {
    POSTRIDER_ASSERT(job.attempts >= 0);
    update_.delivery_id = job.delivery_id;
    update_.dispatch_id = dispatch;
    update_.attempts = job.attempts;
    update_.deaths = job.deaths;
    update_.snoozes = job.snoozes;
    update_.interruptions = job.interruptions;
  }

  void judge(const JobOutcome& outcome) {
    update_.result = result_of(outcome);
    const std::string_view code = outcome.code;
    const Failure failure{code.empty() ? job_code::handler_error : code, outcome.detail};
    switch (outcome.kind) {
      case JobOutcome::Kind::done:
        update_.status = DeliveryStatus::completed;
        return;
      case JobOutcome::Kind::retry:
        return use_attempt(failure, outcome.delay);
      case JobOutcome::Kind::fail:
        return fail(failure);
      case JobOutcome::Kind::snooze:
        return snooze(outcome.delay.value_or(least_delay), {outcome.code, outcome.detail});
      case JobOutcome::Kind::cancelled:
        return cancel();
    }
  }

  void judge(const WorkerDeath& death) {
    const auto failure = failure_of(death);
    update_.result = std::string(failure.code);
    if (!failure.detail.empty()) update_.result += ":" + failure.detail;
    ++update_.deaths;
    const bool may_retry =
        job_->on_worker_death == OnWorkerDeath::retry && job_->deaths < job_->max_deaths;
    if (may_retry) return use_attempt(failure, std::nullopt);
    fail(failure);
  }

  void judge(const TimedOut&) {
    update_.result = job_code::timed_out;
    use_attempt({job_code::timed_out, "no result before the deadline"}, std::nullopt);
  }

  void judge(const Interrupted&) {
    update_.result = job_code::interrupted;
    if (job_->cancel_requested) return cancel();
    ++update_.interruptions;
    wait(milliseconds::zero(), {job_code::interrupted, "given back by its worker"});
  }

  void judge(const SendRefused& refused) {
    update_.result = std::string(job_code::send_refused) + ":" +
                     clean_text(refused.code, JobOutcome::code_bytes);
    auto detail = refused.code;
    if (!refused.detail.empty()) detail += ": " + refused.detail;
    use_attempt({job_code::send_refused, std::move(detail)}, std::nullopt);
  }

  [[nodiscard]] JobUpdate take() && { return std::move(update_); }

 private:
  // Only the number of retry delays limits attempts, however each one's delay came about.
  void use_attempt(const Failure& failure, std::optional<milliseconds> own_delay) {
    if (job_->cancel_requested) return cancel();
    if (job_->last_attempt()) return fail(failure);
    const auto next = job_->retry_delays[static_cast<std::size_t>(job_->attempts)];
    ++update_.attempts;
    update_.keeps_failure = true;
    wait(own_delay ? bounded(*own_delay) : next, failure);
  }

  void snooze(milliseconds delay, const Failure& why) {
    if (job_->cancel_requested) return cancel();
    if (job_->snoozes >= JobOutcome::most_snoozes) {
      return fail({job_code::snoozed_too_often,
                   std::to_string(job_->snoozes) + " times; use retry, or longer delays"});
    }
    ++update_.snoozes;
    wait(bounded(delay), why);
  }

  void wait(milliseconds delay, const Failure& failure) {
    update_.status = DeliveryStatus::pending;
    update_.available_in = delay;
    set_failure(failure);
  }

  void fail(const Failure& failure) {
    if (job_->cancel_requested) return cancel();
    update_.status = DeliveryStatus::failed;
    update_.keeps_failure = true;
    ++update_.attempts;
    set_failure(failure);
  }

  void cancel() {
    update_.status = DeliveryStatus::cancelled;
    set_failure({job_code::cancelled, {}});
  }

  void set_failure(const Failure& failure) {
    update_.failure_code = clean_text(failure.code, JobOutcome::code_bytes);
    update_.failure_detail = clean_text(failure.detail, JobOutcome::detail_bytes);
  }

  static milliseconds bounded(milliseconds delay) {
    return std::clamp(delay, least_delay, JobOutcome::most_delay);
  }

  const Job* job_;
  JobUpdate update_;
};

}  // namespace

JobUpdate judge_job(const Job& job, const DispatchId& dispatch, const AttemptEnd& end,
                    const std::optional<WorkerId>& worker) {
  Judgement judgement(job, dispatch);
  std::visit([&](const auto& given) { judgement.judge(given); }, end);
  auto update = std::move(judgement).take();
  update.worker = worker;
  update.events = hook_events(job, update, end);
  return update;
}

JobUpdate cancelled_instead(JobUpdate update) {
  update.status = DeliveryStatus::cancelled;
  update.available_in = milliseconds::zero();
  update.failure_code = job_code::cancelled;
  update.failure_detail.clear();
  update.keeps_failure = false;
  update.events.clear();
  return update;
}

}  // namespace postrider::core
