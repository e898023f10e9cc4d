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
