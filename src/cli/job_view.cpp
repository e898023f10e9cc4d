#include "cli/job_view.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/json_text.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

// The columns of a queue's job, in the order of a job's life.
struct JobCount {
  const char* name;
  std::int64_t JobCounts::*member;
  Style alarm;  // when it is not zero
};
constexpr std::array job_counts{
    JobCount{"due", &JobCounts::due, Style::plain},
    JobCount{"delayed", &JobCounts::delayed, Style::plain},
    JobCount{"dispatched", &JobCounts::dispatched, Style::plain},
    JobCount{"overdue", &JobCounts::overdue, Style::yellow},
    JobCount{"completed", &JobCounts::completed, Style::plain},
    JobCount{"failed", &JobCounts::failed, Style::red},
    JobCount{"discarded", &JobCounts::discarded, Style::plain},
    JobCount{"cancelled", &JobCounts::cancelled, Style::plain},
    JobCount{"retries", &JobCounts::retries, Style::plain},
    JobCount{"deaths", &JobCounts::deaths, Style::yellow},
    JobCount{"snoozes", &JobCounts::snoozes, Style::plain},
    JobCount{"interruptions", &JobCounts::interruptions, Style::plain},
};

std::optional<milliseconds> later(std::optional<milliseconds> a, std::optional<milliseconds> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

Json age_or_null(std::optional<milliseconds> age) {
  return age ? Json(age->count()) : Json(nullptr);
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Style style_of_status(DeliveryStatus status) {
  return status == DeliveryStatus::failed ? Style::red : Style::plain;
}

std::string status_of_job(const JobDetail& job) {
  std::string status(to_string(job.delivery.status));
  const bool asked =
      job.cancel_requested_at.has_value() && job.delivery.status == DeliveryStatus::dispatched;
  return asked ? status + " (cancel requested)" : status;
}

// The one time that matters in this status.
std::string time_of_job(const Delivery& delivery) {
  if (delivery.finished_at) return observe::time_text(*delivery.finished_at);
  if (delivery.status == DeliveryStatus::dispatched) return text_if(delivery.delivery_timeout_at);
  return observe::time_text(delivery.available_at);
}

std::string progress_text(const JobDetail& job) {
  return job.percent ? fmt::format("{}%", *job.percent) : "";
}

std::string aggregate_or_empty(const JobDetail& job) {
  return job.aggregate ? aggregate_key(*job.aggregate) : "";
}

std::string worker_text(const JobDetail& job) {
  if (!job.worker) return "";
  const auto id = job.worker->value().to_string();
  return job.worker_name.empty()
             ? id
             : fmt::format("{} ({} on {})", id, job.worker_name, job.worker_host);
}

std::string delays_text(const std::vector<milliseconds>& delays) {
  if (delays.empty()) return "none";
  std::vector<std::string> texts;
  std::transform(delays.begin(), delays.end(), std::back_inserter(texts), config::duration_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<Table::Cell> cells_of_counts(const JobCounts& row) {
  std::vector<Table::Cell> cells{{row.queue}, {row.job}};
  for (const auto& count : job_counts) {
    const auto value = row.*count.member;
    cells.push_back({std::to_string(value), value == 0 ? Style::plain : count.alarm});
  }
  cells.push_back({age_text(row.oldest_due_age)});
  cells.push_back({age_text(row.oldest_dispatched_age)});
  return cells;
}

std::string counts_text(const std::vector<JobCounts>& jobs, const Console& console) {
  std::vector<Table::Column> columns{{"queue"}, {"job"}};
  for (const auto& count : job_counts)
    columns.push_back({count.name, true});
  columns.push_back({"oldest due", true});
  columns.push_back({"oldest dispatched", true});
  Table table(std::move(columns));
  for (const auto& row : jobs)
    table.add(cells_of_counts(row));
  return table.text(console);
}

// One queue with the sums of its jobs.
struct QueueRow {
  QueueState state;
  JobCounts counts;
};

std::vector<QueueRow> queue_rows(const JobStatus& status) {
  std::map<std::string, QueueRow> rows;
  for (const auto& state : status.queues)
    rows[state.queue].state = state;
  for (const auto& job : status.jobs) {
    auto& counts = rows[job.queue].counts;
    for (const auto& count : job_counts)
      counts.*count.member += job.*count.member;
    counts.oldest_due_age = later(counts.oldest_due_age, job.oldest_due_age);
    counts.oldest_dispatched_age = later(counts.oldest_dispatched_age, job.oldest_dispatched_age);
  }
  std::vector<QueueRow> sorted;
  for (auto& [name, row] : rows) {
    row.state.queue = name;
    sorted.push_back(std::move(row));
  }
  return sorted;
}

Json state_json(const QueueState& state) {
  Json json;
  json["queue"] = state.queue;
  json["paused"] = state.paused_at.has_value();
  json["paused_at"] = json_if(state.paused_at);
  json["paused_by"] = state.paused_at ? Json(state.paused_by) : Json(nullptr);
  json["reason"] = state.reason;
  json["rate_limit"] = state.rate_limit ? Json(state.rate_limit->limit) : Json(nullptr);
  json["rate_period_ms"] =
      state.rate_limit ? Json(state.rate_limit->period.count()) : Json(nullptr);
  return json;
}

Json counts_json(const JobCounts& row) {
  Json json;
  json["queue"] = row.queue;
  json["job"] = row.job;
  for (const auto& count : job_counts)
    json[count.name] = row.*count.member;
  json["oldest_due_age_ms"] = age_or_null(row.oldest_due_age);
  json["oldest_dispatched_age_ms"] = age_or_null(row.oldest_dispatched_age);
  return json;
}

}  // namespace

std::string rate_text(const RateLimit& rate_limit) {
  return fmt::format("{}/{}", rate_limit.limit, config::duration_text(rate_limit.period));
}

std::string jobs_text(const std::vector<JobDetail>& jobs, const Console& console) {
  Table table({{"id"},
               {"queue"},
               {"job"},
               {"status"},
               {"attempts", true},
               {"progress", true},
               {"due, deadline or end"},
               {"worker"},
               {"code"}});
  for (const auto& job : jobs) {
    const auto& delivery = job.delivery;
    table.add({{delivery.id.value().to_string()},
               {job.queue},
               {job.job},
               {status_of_job(job), style_of_status(delivery.status)},
               {std::to_string(delivery.attempts)},
               {progress_text(job)},
               {time_of_job(delivery)},
               {job.worker_name},
               {delivery.failure_code}});
  }
  return table.text(console);
}

std::string job_text(const JobDetail& job, const Console& console) {
  const auto& delivery = job.delivery;
  Table table({{"field"}, {"value"}});
  const auto add = [&table](const char* field, std::string value) {
    table.add({{field}, {std::move(value)}});
  };
  add("id", delivery.id.value().to_string());
  add("job", job.job);
  add("queue", job.queue);
  table.add({{"status"}, {status_of_job(job), style_of_status(delivery.status)}});
  add("event_id", delivery.event_id.value().to_string());
  add("event_type", job.event_type);
  add("aggregate", aggregate_or_empty(job));
  add("route", delivery.route);
  add("transport", std::string(to_string(job.transport)));
  add("attempts", std::to_string(delivery.attempts));
  add("retry_delays", delays_text(delivery.retry_delays));
  add("timeout", config::duration_text(delivery.timeout));
  add("timeout_limit", config::duration_text(job.timeout_limit));
  add("priority", std::to_string(job.priority));
  add("serial_key", job.serial_key.value_or(""));
  add("serial_limit", job.serial_key ? std::to_string(job.serial_limit) : "");
  add("unique_key", job.unique_key.value_or(""));
  add("on_worker_death", std::string(to_string(job.on_worker_death)));
  add("deaths", fmt::format("{} of {}", job.deaths, job.max_deaths));
  add("snoozes", std::to_string(job.snoozes));
  add("interruptions", std::to_string(job.interruptions));
  add("available_at", observe::time_text(delivery.available_at));
  add("dispatched_at", text_if(delivery.dispatched_at));
  add("delivery_timeout_at", text_if(delivery.delivery_timeout_at));
  add("finished_at", text_if(delivery.finished_at));
  add("worker", worker_text(job));
  add("percent", progress_text(job));
  add("note", job.note);
  add("checkpoint", counted(job.checkpoint_bytes, "byte"));
  add("cancel_requested_at", text_if(job.cancel_requested_at));
  add("failure_code", delivery.failure_code);
  add("failure_detail", delivery.failure_detail);
  return table.text(console);
}

Json job_json(const JobDetail& job) {
  const auto& delivery = job.delivery;
  Json json;
  json["id"] = delivery.id.value().to_string();
  json["job"] = job.job;
  json["queue"] = job.queue;
  json["status"] = to_string(delivery.status);
  json["event_id"] = delivery.event_id.value().to_string();
  json["event_seq"] = std::to_string(delivery.event_seq.value());
  json["event_type"] = job.event_type;
  json["aggregate"] = job.aggregate ? Json(aggregate_key(*job.aggregate)) : Json(nullptr);
  json["route"] = delivery.route;
  json["transport"] = to_string(job.transport);
  json["generation"] = delivery.generation;
  json["attempts"] = delivery.attempts;
  json["retry_delays_ms"] = Json::array();
  for (const auto delay : delivery.retry_delays)
    json["retry_delays_ms"].push_back(delay.count());
  json["timeout_ms"] = delivery.timeout.count();
  json["timeout_limit_ms"] = job.timeout_limit.count();
  json["priority"] = job.priority;
  json["serial_key"] = text_or_null(job.serial_key);
  json["serial_limit"] = job.serial_key ? Json(job.serial_limit) : Json(nullptr);
  json["unique_key"] = text_or_null(job.unique_key);
  json["on_worker_death"] = to_string(job.on_worker_death);
  json["max_deaths"] = job.max_deaths;
  json["deaths"] = job.deaths;
  json["snoozes"] = job.snoozes;
  json["interruptions"] = job.interruptions;
  json["available_at"] = observe::time_text(delivery.available_at);
  json["dispatched_at"] = json_if(delivery.dispatched_at);
  json["delivery_timeout_at"] = json_if(delivery.delivery_timeout_at);
  json["finished_at"] = json_if(delivery.finished_at);
  json["dispatch_id"] =
      delivery.dispatch_id ? Json(delivery.dispatch_id->value().to_string()) : Json(nullptr);
  json["worker"] = job.worker ? Json(job.worker->value().to_string()) : Json(nullptr);
  json["worker_name"] = job.worker ? Json(job.worker_name) : Json(nullptr);
  json["percent"] = job.percent ? Json(*job.percent) : Json(nullptr);
  json["note"] = job.note;
  json["checkpoint_bytes"] = job.checkpoint_bytes;
  json["cancel_requested_at"] = json_if(job.cancel_requested_at);
  json["failure_code"] = delivery.failure_code;
  json["failure_detail"] = delivery.failure_detail;
  return json;
}

std::string job_status_text(const JobStatus& status, const Console& console) {
  std::string text;
  if (!status.jobs.empty()) text += counts_text(status.jobs, console);
  for (const auto& queue : status.queues) {
    if (queue.paused_at) {
      text += fmt::format("queue {} is paused. See `postrider queue resume`.\n", queue.queue);
    }
    if (queue.rate_limit) {
      text += fmt::format("queue {} is limited to {}\n", queue.queue, rate_text(*queue.rate_limit));
    }
  }
  return text;
}

Json job_status_json(const JobStatus& status) {
  Json json;
  json["jobs"] = Json::array();
  for (const auto& row : status.jobs)
    json["jobs"].push_back(counts_json(row));
  json["queues"] = Json::array();
  for (const auto& state : status.queues)
    json["queues"].push_back(state_json(state));
  return json;
}

std::string queues_text(const JobStatus& status, const Console& console) {
  Table table({{"queue"},
               {"state"},
               {"rate"},
               {"due", true},
               {"delayed", true},
               {"dispatched", true},
               {"failed", true},
               {"oldest due", true},
               {"reason"}});
  for (const auto& [state, counts] : queue_rows(status)) {
    const bool paused = state.paused_at.has_value();
    table.add({{state.queue},
               {paused ? "paused" : "active", paused ? Style::yellow : Style::green},
               {state.rate_limit ? rate_text(*state.rate_limit) : ""},
               {std::to_string(counts.due)},
               {std::to_string(counts.delayed)},
               {std::to_string(counts.dispatched)},
               {std::to_string(counts.failed), counts.failed == 0 ? Style::plain : Style::red},
               {age_text(counts.oldest_due_age)},
               {state.reason}});
  }
  return table.empty() ? "" : table.text(console);
}

Json queues_json(const JobStatus& status) {
  auto json = Json::array();
  for (const auto& [state, counts] : queue_rows(status)) {
    auto each = state_json(state);
    for (const auto& count : job_counts)
      each[count.name] = counts.*count.member;
    each["oldest_due_age_ms"] = age_or_null(counts.oldest_due_age);
    each["oldest_dispatched_age_ms"] = age_or_null(counts.oldest_dispatched_age);
    json.push_back(std::move(each));
  }
  return json;
}

std::string workers_text(const std::vector<ListedWorker>& workers, const Console& console) {
  Table table({{"id"},
               {"name"},
               {"state"},
               {"queues"},
               {"running", true},
               {"last seen", true},
               {"started_at"},
               {"host"},
               {"pid", true},
               {"version"}});
  for (const auto& worker : workers) {
    const auto& info = worker.info;
    table.add({{info.id.value().to_string()},
               {info.name},
               {std::string(to_string(info.state)),
                info.state == WorkerState::dead ? Style::red : Style::plain},
               {fmt::format("{}", fmt::join(info.queues, ", "))},
               {std::to_string(worker.running)},
               {age_text(worker.last_seen_age)},
               {observe::time_text(worker.started_at)},
               {info.host},
               {std::to_string(info.pid)},
               {info.version}});
  }
  return table.text(console);
}

Json workers_json(const std::vector<ListedWorker>& workers) {
  auto json = Json::array();
  for (const auto& worker : workers) {
    const auto& info = worker.info;
    json.push_back({{"id", info.id.value().to_string()},
                    {"name", info.name},
                    {"state", to_string(info.state)},
                    {"queues", info.queues},
                    {"running", worker.running},
                    {"last_seen_age_ms", worker.last_seen_age.count()},
                    {"started_at", observe::time_text(worker.started_at)},
                    {"host", info.host},
                    {"pid", info.pid},
                    {"version", info.version}});
  }
  return json;
}

}  // namespace postrider::cli
