#pragma once
/// \file
/// What bench-jobs measures, and the workers that it measures.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <postrider/clock.hpp>
#include <postrider/handlers.hpp>
#include <postrider/observer.hpp>
#include <postrider/result.hpp>
#include <postrider/worker.hpp>

namespace postrider::bench {

/// Counts jobs whose completion is recorded, for all workers at once. A job that fails ends the
/// count, as it would never be reached.
class CompletionCount final : public Observer {
 public:
  explicit CompletionCount(std::int64_t jobs) : jobs_(jobs) {}

  /// `on_done` is called when all jobs are recorded, in a worker's thread.
  void call(std::function<void()> on_done) { on_done_ = std::move(on_done); }
  [[nodiscard]] bool done() const { return completed_ >= jobs_; }
  void notice(const Notice& notice) override;

 private:
  const std::int64_t jobs_;
  std::atomic<std::int64_t> completed_ = 0;
  std::function<void()> on_done_;
};

/// Workers of one process, each with its own connections and threads.
class WorkerGroup {
 public:
  /// `handlers` and `observer` are borrowed.
  WorkerGroup(const std::string& conninfo, const Handlers& handlers, std::size_t workers,
              std::size_t concurrency, Observer& observer);
  ~WorkerGroup();

  void start();
  void request_stop() noexcept;
  /// Waits until all have ended; throws what ended one of them.
  void join();

 private:
  struct Member {
    std::unique_ptr<Random> random = system_random();
    std::unique_ptr<Worker> worker;
    Result<WorkerReport> report = WorkerReport{};
    std::thread thread;
  };
  std::vector<std::unique_ptr<Member>> members_;
};

/// {"seconds"}: from before the workers are made until the last completion is recorded.
[[nodiscard]] nlohmann::json measure_throughput(const std::string& conninfo, std::int64_t jobs,
                                                std::size_t workers, std::size_t concurrency);

/// {"median_ms", "p99_ms"} from the moment at which the writer of a job has the answer to its
/// commit until its handler begins, of so many jobs after a few that do not count: `rate` a second,
/// whether those before have been handled or not.
[[nodiscard]] nlohmann::json measure_latency(const std::string& conninfo, std::int64_t jobs,
                                             std::int64_t rate, std::size_t concurrency);

}  // namespace postrider::bench
