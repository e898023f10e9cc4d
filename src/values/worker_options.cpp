#include <postrider/worker_values.hpp>

#include <set>

#include <fmt/format.h>

#include "values/job_check.hpp"
#include "values/range_check.hpp"

namespace postrider {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

// The take asks for each of them.
constexpr std::size_t most_queues = 100;
constexpr int most_weight = 100;
// One heartbeat that comes late, or two, must not look like a death.
constexpr int heartbeats_until_dead = 4;

void check_queues(std::vector<std::string>& faults, const std::vector<QueueShare>& queues) {
  if (queues.size() > most_queues) {
    faults.push_back(
        fmt::format("queues has {} entries. Give at most {}, and the rest to another "
                    "worker.",
                    queues.size(), most_queues));
  }
  std::set<std::string_view> seen;
  for (const auto& [queue, weight] : queues) {
    check_queue_name(faults, queue);
    check_number(faults, fmt::format("the weight of queue '{}'", queue), weight, 1, most_weight);
    if (!seen.insert(queue).second) {
      faults.push_back(
          fmt::format("the queue '{}' is named twice. Name it once and raise its "
                      "weight.",
                      queue));
    }
  }
}

void check_heartbeat(std::vector<std::string>& faults, const WorkerOptions& options) {
  const auto before = faults.size();
  check_duration(faults, "heartbeat", options.heartbeat, milliseconds(50), minutes(10));
  check_duration(faults, "dead_after", options.dead_after, milliseconds(200), hours(1));
  if (faults.size() > before) return;
  if (options.heartbeat * heartbeats_until_dead <= options.dead_after) return;
  faults.push_back(fmt::format(
      "heartbeat is {} ms and dead_after is {} ms. Give a heartbeat of at most a quarter of "
      "dead_after, or one that comes late looks like a death.",
      options.heartbeat.count(), options.dead_after.count()));
}

}  // namespace

std::vector<std::string> validate(const WorkerOptions& options, bool has_source) {
  std::vector<std::string> faults;
  check_count(faults, "the length of name", options.name.size(), 1, 64);
  if (options.queues.empty() && !has_source) {
    faults.emplace_back("queues is empty. Name at least one queue that this worker serves.");
  }
  check_queues(faults, options.queues);
  check_count(faults, "concurrency", options.concurrency, 1, 1000);
  check_heartbeat(faults, options);
  check_duration(faults, "poll", options.poll, milliseconds(1), hours(1));
  check_duration(faults, "grace", options.grace, milliseconds(0), hours(24));
  check_duration(faults, "hard_grace", options.hard_grace, milliseconds(0), hours(1));
  check_duration(faults, "kill_grace", options.kill_grace, milliseconds(0), hours(1));
  check_duration(faults, "ageing", options.ageing, milliseconds(0), hours(24 * 7));
  check_duration(faults, "store_timeout", options.store_timeout, milliseconds(100), minutes(10));
  return faults;
}

}  // namespace postrider
