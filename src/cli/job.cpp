#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/given.hpp"
#include "cli/given_event.hpp"
#include "cli/job_view.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

/// How many pages of a search without a find are read before the person is asked to go on.
constexpr int most_empty_pages = 10;

Result<std::vector<milliseconds>> delays_of(const std::string& given) {
  std::vector<milliseconds> delays;
  if (given == "none") return delays;
  for (std::size_t begin = 0; begin <= given.size();) {
    const auto end = std::min(given.find(',', begin), given.size());
    const auto delay = duration_of(given.substr(begin, end - begin), "an entry of --retry-delays");
    if (!delay) return delay.error();
    delays.push_back(*delay);
    begin = end + 1;
  }
  return delays;
}

/// What is not given stays as it is.
Result<void> read_duration(const std::optional<std::string>& given, std::string_view option,
                           milliseconds& value) {
  if (!given) return {};
  const auto duration = duration_of(*given, option);
  if (!duration) return duration.error();
  value = *duration;
  return {};
}

Result<void> read_policy(const JobOptions& options, EnqueueRequest& request) {
  auto& policy = request.policy;
  policy.job = options.name;
  policy.queue = options.queue;
  policy.priority = options.priority.value_or(policy.priority);
  policy.serial_key = options.serial_key;
  policy.serial_limit = options.serial_limit.value_or(policy.serial_limit);
  policy.unique_key = options.unique_key;
  policy.max_deaths = options.max_deaths.value_or(policy.max_deaths);
  policy.hooks = options.hooks;
  if (const auto word = parse_on_worker_death(options.on_worker_death)) {
    policy.on_worker_death = *word;
  }
  request.timeout = JobPolicy::default_timeout;
  if (auto read = read_duration(options.timeout, "--timeout", request.timeout); !read) return read;
  policy.timeout_limit = std::max(policy.timeout_limit, request.timeout);
  return read_duration(options.timeout_limit, "--timeout-limit", policy.timeout_limit);
}

/// An event without a type is called as its job.
Result<EnqueueRequest> enqueue_request_of(const JobOptions& options) {
  EnqueueRequest request;
  auto given = options.event;
  if (given.type.empty()) given.type = options.name;
  const auto due = due_of(given.available_at, given.delay);
  if (!due) return due.error();
  request.due = *due;
  given.available_at.reset();
  given.delay.reset();
  if (auto read = read_policy(options, request); !read) return read.error();
  if (options.retry_delays) {
    auto delays = delays_of(*options.retry_delays);
    if (!delays) return delays.error();
    request.retry_delays = std::move(delays).value();
  }
  // Names and bounds first: what is said of a job without a name is that it has none.
  request.event.type = "any";
  if (auto checked = check(request); !checked) return checked.error();
  auto event = event_of(given);
  if (!event) return event.error();
  request.event = std::move(event).value();
  return request;
}

std::string answer_json(const EnqueueAnswer& answer) {
  return printed({{"id", answer.delivery_id.value().to_string()},
                  {"event_id", answer.event_id.value().to_string()},
                  {"inserted", answer.inserted}});
}

Result<JobFilter> job_filter_of(const JobOptions& options) {
  JobFilter filter;
  filter.queue = if_given(options.queue);
  filter.job = if_given(options.name);
  if (!options.status.empty()) filter.status = parse_delivery_status(options.status);
  filter.limit = static_cast<std::size_t>(options.limit);
  if (options.after.empty()) return filter;
  const auto id = id_of(options.after, "a job");
  if (!id) return id.error();
  filter.after = DeliveryId(*id);
  return filter;
}

/// The next page that holds anything.
Result<JobPage> find_jobs(JobFilter filter, const Session& session) {
  const auto operations = session.backend().job_operations();
  auto page = operations->jobs(filter, session.deadline());
  for (int i = 1; i < most_empty_pages && page && page->jobs.empty() && page->next; ++i) {
    filter.after = page->next;
    page = operations->jobs(filter, session.deadline());
  }
  return page;
}

std::string job_page_json(const JobPage& page) {
  nlohmann::ordered_json json;
  json["jobs"] = nlohmann::ordered_json::array();
  for (const auto& job : page.jobs)
    json["jobs"].push_back(job_json(job));
  json["next"] = page.next ? nlohmann::ordered_json(page.next->value().to_string())
                           : nlohmann::ordered_json(nullptr);
  return printed(json);
}

/// What one change of a job is called, and says when it was made.
struct JobChange {
  std::string command;
  std::string done;
  std::string not_possible;  // "cannot be cancelled any more"
};

ExitCode tell(const JobChange& change, const JobAnswer& answer, const JobOptions& options,
              Console& console) {
  const auto status = answer.status ? to_string(*answer.status) : "unknown";
  switch (answer.kind) {
    case JobAnswer::Kind::changed:
    case JobAnswer::Kind::requested: {
      const bool asked = answer.kind == JobAnswer::Kind::requested;
      const std::string text =
          asked ? "runs. Its worker is asked to stop it, and is told with its next heartbeat."
                : change.done;
      console.print(options.json ? printed({{"id", options.id},
                                            {"answer", to_string(answer.kind)},
                                            {"status", status}})
                                 : fmt::format("{} {}\n", options.id, text));
      return ExitCode::ok;
    }
    case JobAnswer::Kind::refused:
      console.complain(change.command,
                       fmt::format("the job is {} and {}. `postrider job show {}` tells more.",
                                   status, change.not_possible, options.id));
      return ExitCode::data;
    case JobAnswer::Kind::unknown:
      console.complain(change.command,
                       "there is no such job. Give the id that `postrider job list` shows.");
      return ExitCode::data;
  }
  return ExitCode::software;
}

/// `apply` makes the change of one job.
template <class Apply>
ExitCode run_job_change(const JobChange& change, const Options& options, Console& console,
                        Apply apply) {
  const auto& job = options.job;
  const auto id = id_of(job.id, "a job");
  if (!id) return console.fail(change.command, id.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const Operator who{operator_name(job.operator_name), job.reason};
  const Result<JobAnswer> answer =
      apply(*session.backend().job_operations(), DeliveryId(*id), who, session.deadline());
  if (!answer) return console.fail(change.command, answer.error());
  return tell(change, *answer, job, console);
}

}  // namespace

ExitCode run_job_enqueue(const Options& options, Console& console) {
  const auto& job = options.job;
  const auto request = enqueue_request_of(job);
  if (!request) return console.fail("job enqueue", request.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const Operator who{operator_name(job.operator_name), job.reason};
  const auto answer =
      session.backend().job_operations()->enqueue(*request, who, std::nullopt, session.deadline());
  if (!answer) return console.fail("job enqueue", answer.error());
  console.print(job.json ? answer_json(*answer) : answer->delivery_id.value().to_string() + "\n");
  if (!answer->inserted && !job.json) {
    console.note("A job with this unique key waits or runs already; nothing was written.\n");
  }
  return ExitCode::ok;
}

ExitCode run_job_list(const Options& options, Console& console) {
  const auto filter = job_filter_of(options.job);
  if (!filter) return console.fail("job list", filter.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto page = find_jobs(*filter, session);
  if (!page) return console.fail("job list", page.error());
  if (options.job.json) {
    console.print(job_page_json(*page));
    return ExitCode::ok;
  }
  if (!page->jobs.empty()) console.print(jobs_text(page->jobs, console));
  if (page->jobs.empty() && !page->next) console.print("No job fits.\n");
  if (page->next) {
    console.note(fmt::format("Go on with --after {}.\n", page->next->value().to_string()));
  }
  return ExitCode::ok;
}

ExitCode run_job_show(const Options& options, Console& console) {
  const auto id = id_of(options.job.id, "a job");
  if (!id) return console.fail("job show", id.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto job = session.backend().job_operations()->job(DeliveryId(*id), session.deadline());
  if (!job) return console.fail("job show", job.error());
  if (!*job) {
    console.complain("job show",
                     "there is no such job. Give the id that `postrider job list` shows.");
    return ExitCode::data;
  }
  console.print(options.job.json ? printed(shown_job_json(**job)) : job_text(**job, console));
  return ExitCode::ok;
}

ExitCode run_job_cancel(const Options& options, Console& console) {
  return run_job_change(
      {"job cancel", "is cancelled.", "cannot be cancelled any more"}, options, console,
      [](JobOperations& operations, const DeliveryId& id, const Operator& who, Deadline deadline) {
        return operations.cancel(id, who, std::nullopt, deadline);
      });
}

ExitCode run_job_reschedule(const Options& options, Console& console) {
  const auto due = due_of(options.job.event.available_at, options.job.event.delay);
  if (!due) return console.fail("job reschedule", due.error());
  return run_job_change(
      {"job reschedule", "has a new due time.", "only a waiting one can be moved"}, options,
      console,
      [&](JobOperations& operations, const DeliveryId& id, const Operator& who, Deadline deadline) {
        return operations.reschedule(id, *due, who, std::nullopt, deadline);
      });
}

}  // namespace postrider::cli
