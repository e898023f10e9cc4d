#include <stdexcept>

#include "bench/job_rows.hpp"
#include "bench/jobs.hpp"

namespace postrider::bench {

nlohmann::json measure_throughput(const std::string& conninfo, std::int64_t jobs,
                                  std::size_t workers, std::size_t concurrency) {
  Handlers handlers;
  handlers.bind(job_name, [](const Event& /*event*/) {});
  CompletionCount count(jobs);
  const auto begun = system_clock().steady();
  Instant ended = begun;
  WorkerGroup group(conninfo, handlers, workers, concurrency, count);
  count.call([&] {
    ended = system_clock().steady();
    group.request_stop();
  });
  group.start();
  group.join();
  if (!count.done()) throw std::runtime_error("the workers ended before all jobs were completed");
  return {{"seconds", std::chrono::duration<double>(ended - begun).count()}};
}

}  // namespace postrider::bench
