#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <postrider/runner/http.hpp>

#include "base/assert.hpp"
#include "base/bounded_queue.hpp"
#include "base/http_fields.hpp"
#include "base/http_url.hpp"
#include "runner/http/http_exchange.hpp"
#include "values/event_line.hpp"

namespace postrider {
namespace {

bool is_ours(std::string_view name) {
  constexpr std::array ours{"host",       "content-length", "content-type", "transfer-encoding",
                            "connection", "user-agent",     "expect",       "idempotency-key"};
  const auto lower = lower_case(name);
  return lower.starts_with("postrider-") ||
         std::find(ours.begin(), ours.end(), lower) != ours.end();
}

runner::HttpSettings settings_of(const HttpRunnerOptions& options) {
  return {parse_http_url(options.url).value(), options.connect_timeout, options.answer_timeout,
          options.ca_file};
}

class HttpRunner final : public JobRunner {
 public:
  explicit HttpRunner(HttpRunnerOptions options)
      : options_(std::move(options)),
        reports_(options_.slots),
        exchanges_(settings_of(options_), [this](const DispatchId& dispatch, AttemptEnd end) {
          report(dispatch, std::move(end));
        }) {}

  JobRunnerTraits traits() const override { return {"http", options_.slots, false, false}; }

  /// The endpoint gets the name of the job and knows itself what it can do.
  Result<void> check_job(std::string_view) const override { return {}; }

  void start(Task task) override {
    const auto open = ++open_;
    POSTRIDER_ASSERT(open <= options_.slots);
    if (!task.event || !task.malformed.empty()) {
      return report(task.dispatch_id, JobOutcome::fail(job_code::undecodable, task.malformed));
    }
    auto line = event_line(*task.event);
    if (!line) {
      return report(task.dispatch_id,
                    JobOutcome::fail(job_code::undecodable, line.error().message));
    }
    exchanges_.start({task.dispatch_id, headers_of(task), std::move(line).value()});
  }

  void request_stop(const DispatchId& dispatch) override { exchanges_.stop(dispatch); }
  void kill(const DispatchId& dispatch) override { exchanges_.stop(dispatch); }

  std::vector<RunnerReport> poll(Deadline deadline) override {
    auto reports = reports_.pop_all(deadline.remaining());
    open_ -= reports.size();
    return reports;
  }
  void wake() noexcept override { reports_.interrupt(); }
  void close() override { exchanges_.close(); }

 private:
  /// The delivery is what stays the same over all attempts, so it is the key of their effect.
  std::map<std::string, std::string> headers_of(const Task& task) const {
    auto headers = options_.headers;
    const auto delivery = task.job.delivery_id.value().to_string();
    headers["Content-Type"] = "application/json";
    headers["Idempotency-Key"] = delivery;
    headers["Postrider-Job"] = task.job.job;
    headers["Postrider-Queue"] = task.job.queue;
    headers["Postrider-Delivery-Id"] = delivery;
    headers["Postrider-Event-Id"] = task.job.event_id.value().to_string();
    headers["Postrider-Dispatch-Id"] = task.dispatch_id.value().to_string();
    headers["Postrider-Last-Attempt"] = task.job.last_attempt() ? "true" : "false";
    return headers;
  }

  void report(const DispatchId& dispatch, AttemptEnd end) {
    std::vector<RunnerReport> reports;
    reports.push_back({dispatch, std::move(end)});
    reports_.push(std::move(reports));
  }

  const HttpRunnerOptions options_;
  std::atomic<std::size_t> open_{0};  ///< started, and their ends not taken by `poll`
  BoundedQueue<RunnerReport> reports_;
  runner::HttpExchanges exchanges_;  // ends before what it uses
};

void check_headers(const HttpRunnerOptions& options, std::vector<std::string>& faults) {
  for (const auto& [name, value] : options.headers) {
    if (!is_http_token(name) || !is_http_field_value(value)) {
      faults.emplace_back("headers has a name or value that HTTP does not allow; correct it.");
    } else if (is_ours(name)) {
      faults.push_back(
          fmt::format("headers has {}, which is set for every request; remove it.", name));
    }
  }
}

void check_bounds(const HttpRunnerOptions& options, std::vector<std::string>& faults) {
  if (options.slots < 1 || options.slots > HttpRunnerOptions::most_slots) {
    faults.push_back(fmt::format("slots is {}; it must be 1 to {}.", options.slots,
                                 HttpRunnerOptions::most_slots));
  }
  if (options.connect_timeout < milliseconds(1) ||
      options.connect_timeout > HttpRunnerOptions::most_connect_timeout) {
    faults.push_back(fmt::format("connect_timeout is {} ms; it must be 1 ms to 5 minutes.",
                                 options.connect_timeout.count()));
  }
  if (options.answer_timeout < milliseconds::zero()) {
    faults.push_back(fmt::format("answer_timeout is {} ms; it must be 0 (none) or more.",
                                 options.answer_timeout.count()));
  }
}

}  // namespace

std::vector<std::string> validate(const HttpRunnerOptions& options) {
  std::vector<std::string> faults;
  if (const auto url = parse_http_url(options.url); !url) {
    faults.push_back(url.error().message);
  }
  check_bounds(options, faults);
  check_headers(options, faults);
  if (!options.ca_file.empty() && !runner::is_ca_file(options.ca_file)) {
    faults.emplace_back("ca_file cannot be used; check that it is a readable PEM file.");
  }
  return faults;
}

std::unique_ptr<JobRunner> make_http_runner(HttpRunnerOptions options) {
  return std::make_unique<HttpRunner>(std::move(options));
}

}  // namespace postrider
