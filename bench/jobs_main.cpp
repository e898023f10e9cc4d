// bench-jobs throughput --conninfo C --jobs N --workers W [--concurrency K]
// bench-jobs latency --conninfo C --jobs N --rate R [--concurrency K]
//
// Runs jobs of the queue `bench` as `postrider worker` does, with C++ handlers in threads. Prints
// {"seconds"} until N planted jobs were completed, or {"median_ms", "p99_ms"} from a commit to its
// handler.
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "bench/arguments.hpp"
#include "bench/jobs.hpp"

namespace postrider::bench {
namespace {

nlohmann::json run(const std::string& what, const Arguments& arguments) {
  const auto conninfo = arguments.text("conninfo");
  const auto jobs = arguments.number("jobs", 1);
  const auto concurrency = static_cast<std::size_t>(arguments.number("concurrency", 100));
  if (what == "throughput") {
    const auto workers = static_cast<std::size_t>(arguments.number("workers", 1));
    return measure_throughput(conninfo, jobs, workers, concurrency);
  }
  if (what == "latency") {
    return measure_latency(conninfo, jobs, arguments.number("rate", 50), concurrency);
  }
  throw std::invalid_argument("usage: bench-jobs throughput|latency --conninfo C --jobs N …");
}

}  // namespace
}  // namespace postrider::bench

int main(int count, char** words) {
  using namespace postrider::bench;
  try {
    std::cout << run(count > 1 ? words[1] : "", Arguments(count, words, 2)) << "\n";
    return 0;
  } catch (const std::exception& failure) {
    std::cout << failure.what() << "\n";
    return 1;
  }
}
