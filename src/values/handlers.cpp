#include <postrider/handlers.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>

#include "values/job_check.hpp"

namespace postrider {
namespace {

/// As it stands in the source: "shop::CardDeclined".
std::string readable_name(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return readable ? readable.get() : name;
}

// Short enough for the text to need no memory of its own, which there may be none of.
JobOutcome out_of_memory() {
  JobOutcome outcome;
  outcome.kind = JobOutcome::Kind::fail;
  outcome.code = job_code::handler_error;
  outcome.detail = "std::bad_alloc";
  return outcome;
}

JobOutcome failed_with(const std::type_info* type) {
  return JobOutcome::fail(job_code::handler_error,
                          type == nullptr ? std::string() : readable_name(type->name()));
}

JobOutcome no_handler_here() {
  auto outcome = JobOutcome::snooze(Handlers::no_handler_delay);
  outcome.code = job_code::no_handler;
  outcome.detail = "this worker has no handler for the job";
  return outcome;
}

JobOutcome unreadable(const Task& task) {
  return JobOutcome::fail(job_code::undecodable,
                          task.malformed.empty() ? "the event is missing" : task.malformed);
}

bool has_route_for(const std::vector<Route>& routes, const std::string& job) {
  return std::any_of(routes.begin(), routes.end(),
                     [&](const Route& route) { return route.job && route.job->job == job; });
}

}  // namespace

// The one place where something thrown by a handler becomes an outcome.
JobOutcome job_outcome_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const RetryableError& error) {
    return error.delay() ? JobOutcome::retry_in(*error.delay(), error.code())
                         : JobOutcome::retry(error.code());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return failed_with(&typeid(error));
  } catch (...) {
    return failed_with(abi::__cxa_current_exception_type());
  }
}

JobOutcome job_outcome_of(const Result<void>& result) {
  if (result) return JobOutcome::done();
  const auto& error = result.error();
  const bool may_succeed =
      error.disposition == Disposition::retry || error.disposition == Disposition::in_doubt;
  return may_succeed ? JobOutcome::retry(to_string(error.code), error.message)
                     : JobOutcome::fail(to_string(error.code), error.message);
}

JobOutcome handler_parts::undecodable(const Error& error) {
  return JobOutcome::fail(job_code::undecodable, error.message);
}

std::vector<std::string> Handlers::validate() const {
  auto faults = faults_;
  for (const auto& [job, binding] : bindings_) {
    for (const auto& need : binding.needs) {
      if (need.met(services_)) continue;
      faults.push_back(
          "the handler of job '" + job +
          "' asks for a service that nobody injected: " + readable_name(need.type.name()) +
          ". Call inject<" + readable_name(need.type.name()) + ">(…) before the worker starts.");
    }
  }
  return faults;
}

std::vector<std::string> Handlers::disagreements(const std::vector<Route>& routes,
                                                 const std::vector<std::string>& queues) const {
  std::vector<std::string> found;
  for (const auto& route : routes) {
    if (!route.job || bindings_.contains(route.job->job)) continue;
    if (std::find(queues.begin(), queues.end(), route.job->queue) == queues.end()) continue;
    found.push_back("route '" + route.name + "' makes job '" + route.job->job + "' in queue '" +
                    route.job->queue +
                    "', and no handler is bound to it. Bind one, or let another worker serve the "
                    "queue.");
  }
  for (const auto& [job, binding] : bindings_) {
    if (has_route_for(routes, job)) continue;
    found.push_back("a handler is bound to job '" + job +
                    "', and no route makes this job. Correct the name, or add the route.");
  }
  return found;
}

Result<void> Handlers::check_job(std::string_view job) const {
  if (bindings_.find(job) != bindings_.end()) return {};
  return Error{ErrorCode::invalid_argument, Disposition::reject,
               "no handler is bound to job '" + std::string(job) + "'. Bind one.", "worker", ""};
}

std::vector<std::string> Handlers::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, binding] : bindings_)
    names.push_back(job);
  return names;
}

JobOutcome Handlers::run(const Task& task, Attempt& attempt) const noexcept {
  const auto bound = bindings_.find(task.job.job);
  if (bound == bindings_.end()) return no_handler_here();
  if (!task.event || !task.malformed.empty()) return unreadable(task);
  try {
    return bound->second.call({task, attempt, services_, *codec_});
  } catch (...) {
    return judge(std::current_exception());
  }
}

void Handlers::bind_call(const std::string& job, Call call,
                         std::vector<handler_parts::Need> needs) {
  const auto faults_before = faults_.size();
  check_job_name(faults_, job);
  if (faults_.size() > faults_before) return;
  if (bindings_.contains(job)) {
    faults_.push_back("two handlers are bound to job '" + job + "'. Leave one of them out.");
  } else {
    bindings_.emplace(job, Binding{std::move(call), std::move(needs)});
  }
}

JobOutcome Handlers::judge(const std::exception_ptr& thrown) const {
  if (!classifier_) return job_outcome_of(thrown);
  try {
    if (auto outcome = classifier_(thrown)) return *std::move(outcome);
  } catch (...) {  // a classifier that rethrows what it does not know
  }
  return job_outcome_of(thrown);
}

}  // namespace postrider
