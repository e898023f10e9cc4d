// One job, or several, as people and scripts see them.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/job_view.hpp"
#include "cli/json_text.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

struct HookName {
  const char* name;
  std::string JobHooks::*member;
};
constexpr std::array hook_names{
    HookName{"completed_event", &JobHooks::completed_event},
    HookName{"retry_event", &JobHooks::retry_event},
    HookName{"failed_event", &JobHooks::failed_event},
    HookName{"death_event", &JobHooks::death_event},
};

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

std::string hooks_text(const JobHooks& hooks) {
  std::vector<std::string> texts;
  for (const auto& [name, member] : hook_names) {
    if (!(hooks.*member).empty()) texts.push_back(fmt::format("{} = {}", name, hooks.*member));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Json hooks_json(const JobHooks& hooks) {
  Json json;
  for (const auto& [name, member] : hook_names)
    json[name] = (hooks.*member).empty() ? Json(nullptr) : Json(hooks.*member);
  return json;
}

std::string failures_text(const std::vector<JobFailure>& failures, const Console& console) {
  Table table({{"attempt", true}, {"failed_at"}, {"code"}, {"detail"}, {"worker"}});
  for (const auto& failure : failures) {
    table.add({{std::to_string(failure.attempt)},
               {observe::time_text(failure.failed_at)},
               {failure.code},
               {failure.detail},
               {failure.worker ? failure.worker->value().to_string() : ""}});
  }
  return table.text(console);
}

Json failure_json(const JobFailure& failure) {
  Json json;
  json["attempt"] = failure.attempt;
  json["failed_at"] = observe::time_text(failure.failed_at);
  json["dispatch_id"] = failure.dispatch_id.value().to_string();
  json["code"] = failure.code;
  json["detail"] = failure.detail;
  json["worker"] = failure.worker ? Json(failure.worker->value().to_string()) : Json(nullptr);
  return json;
}

}  // namespace

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
  add("hooks", hooks_text(job.hooks));
  auto text = table.text(console);
  if (!job.failures.empty()) text += "\n" + failures_text(job.failures, console);
  return text;
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
  json["hooks"] = hooks_json(job.hooks);
  return json;
}

Json shown_job_json(const JobDetail& job) {
  auto json = job_json(job);
  json["failures"] = Json::array();
  for (const auto& failure : job.failures)
    json["failures"].push_back(failure_json(failure));
  return json;
}

}  // namespace postrider::cli
