#include <postrider/job.hpp>

#include <algorithm>
#include <array>

#include <postrider/job_store_values.hpp>

#include "base/utf8.hpp"
#include "values/parse_word.hpp"

namespace postrider {
namespace {

JobOutcome make_job_outcome(JobOutcome::Kind kind, std::string_view code, std::string_view detail) {
  JobOutcome outcome;
  outcome.kind = kind;
  outcome.code = clean_text(code.empty() ? job_code::handler_error : code, JobOutcome::code_bytes);
  outcome.detail = clean_text(detail, JobOutcome::detail_bytes);
  return outcome;
}

milliseconds within_bounds(milliseconds delay) {
  return std::clamp(delay, milliseconds(1), JobOutcome::most_delay);
}

}  // namespace

std::string_view to_string(OnWorkerDeath on_worker_death) noexcept {
  return on_worker_death == OnWorkerDeath::fail ? "fail" : "retry";
}

std::string_view to_string(JobTransport transport) noexcept {
  return transport == JobTransport::database ? "database" : "broker";
}

std::string_view to_string(JobOutcome::Kind kind) noexcept {
  switch (kind) {
    case JobOutcome::Kind::done:
      return "done";
    case JobOutcome::Kind::retry:
      return "retry";
    case JobOutcome::Kind::fail:
      return "fail";
    case JobOutcome::Kind::snooze:
      return "snooze";
    case JobOutcome::Kind::cancelled:
      return "cancelled";
  }
  return "done";
}

std::string_view to_string(WorkerState state) noexcept {
  switch (state) {
    case WorkerState::running:
      return "running";
    case WorkerState::quiet:
      return "quiet";
    case WorkerState::stopping:
      return "stopping";
    case WorkerState::stopped:
      return "stopped";
    case WorkerState::dead:
      return "dead";
  }
  return "running";
}

std::optional<OnWorkerDeath> parse_on_worker_death(std::string_view text) noexcept {
  return parse_word(text, std::array{OnWorkerDeath::fail, OnWorkerDeath::retry});
}

std::optional<JobTransport> parse_job_transport(std::string_view text) noexcept {
  return parse_word(text, std::array{JobTransport::database, JobTransport::broker});
}

std::optional<WorkerState> parse_worker_state(std::string_view text) noexcept {
  return parse_word(text,
                    std::array{WorkerState::running, WorkerState::quiet, WorkerState::stopping,
                               WorkerState::stopped, WorkerState::dead});
}

JobOutcome JobOutcome::done() {
  return {};
}

JobOutcome JobOutcome::retry(std::string_view code, std::string_view detail) {
  return make_job_outcome(Kind::retry, code, detail);
}

JobOutcome JobOutcome::retry_in(milliseconds delay, std::string_view code,
                                std::string_view detail) {
  auto outcome = retry(code, detail);
  outcome.delay = within_bounds(delay);
  return outcome;
}

JobOutcome JobOutcome::fail(std::string_view code, std::string_view detail) {
  return make_job_outcome(Kind::fail, code, detail);
}

JobOutcome JobOutcome::snooze(milliseconds delay) {
  JobOutcome outcome;
  outcome.kind = Kind::snooze;
  outcome.delay = within_bounds(delay);
  return outcome;
}

JobOutcome JobOutcome::cancelled() {
  return make_job_outcome(Kind::cancelled, job_code::cancelled, {});
}

}  // namespace postrider
