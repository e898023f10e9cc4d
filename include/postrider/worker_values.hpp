#pragma once
/// \file
/// Options of a worker and how it ended.

#include <cstddef>
#include <string>
#include <vector>

#include <postrider/clock.hpp>

namespace postrider {

/// A queue that a worker serves.
struct QueueShare {
  std::string queue;
  int weight = 1;  ///< 1 to 100: its share of free slots while several queues have work
};

struct WorkerOptions {
  std::string name = "worker";         ///< a label for people; at most 64 characters
  std::vector<QueueShare> queues;      ///< at least one, or a source of tasks
  std::size_t concurrency = 10;        ///< attempts at once, 1 to 1000; bounded by the runner, too
  milliseconds heartbeat{5000};        ///< 50 ms to 10 min
  milliseconds dead_after{30'000};     ///< at least 4 heartbeats; the same for all workers
  milliseconds poll{1000};             ///< longest wait before the queues are looked at again
  milliseconds grace{20'000};          ///< how long a stop waits for running jobs
  milliseconds hard_grace{5000};       ///< and then for those that were asked to stop
  milliseconds kill_grace{5000};       ///< from the stop request at a deadline to the kill
  milliseconds ageing{0};              ///< see `TakeRequest::ageing`
  milliseconds store_timeout{10'000};  ///< patience of one call of the store
};

/// Every fault of `options` at once, one sentence each; empty when they can be used. A worker with
/// a source of tasks need not have queues.
[[nodiscard]] std::vector<std::string> validate(const WorkerOptions& options,
                                                bool has_source = false);

/// How a run of a worker ended.
struct WorkerReport {
  std::size_t completed = 0;
  std::size_t retried = 0;
  std::size_t failed = 0;
  std::size_t deaths = 0;
  std::size_t snoozed = 0;
  std::size_t cancelled = 0;
  std::size_t stale = 0;
  std::size_t released = 0;    ///< given back unfinished by the stop
  std::size_t unrecorded = 0;  ///< ends that could not be written: their deadlines will tell
  [[nodiscard]] bool clean() const noexcept { return released == 0 && unrecorded == 0; }
};

}  // namespace postrider
