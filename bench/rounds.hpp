#pragma once
/// \file
/// One run of `make bench`: its sizes, its servers, and the programs that it starts.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/figures.hpp"
#include "servers/postgres_server.hpp"
#include "servers/rabbitmq_server.hpp"

namespace postrider::bench {

/// How much is measured.
struct Sizes {
  std::int64_t small = 200'000;
  std::int64_t large = 1'000'000;
  int pairs = 5;
  int large_broker_pairs = 5;  ///< they take longest
  int writer_ms = 3000;
  std::int64_t jobs = 20'000;
  std::int64_t latency_jobs = 250;  ///< at 50 a second
  std::vector<std::string> only;    ///< blocks; empty: all
};

/// What `Sizes::only` may name, in the order in which they run.
[[nodiscard]] inline std::vector<std::string> block_names() {
  return {"writer", "jobs", "held_writer", "rabbitmq_small", "memory", "rabbitmq_large"};
}

class Run {
 public:
  /// `programs` is the folder of bench-drain and the others.
  Run(Sizes sizes, std::string programs);
  ~Run();

  /// What is given the result file's content.
  using Keep = std::function<void(const nlohmann::ordered_json&)>;

  /// Measures everything and returns the result file's content. `keep` gets it after each block,
  /// too: a run is long, and one that is cut off has still measured something.
  [[nodiscard]] nlohmann::ordered_json measure(const Keep& keep);

 private:
  struct Drained {
    double rate = 0;
    double tail_rate = 0;
    double idle_look_ms = 0;
  };

  void block(const std::string& name, const std::function<void()>& measure);
  /// Starts a program and reads the JSON line that it prints. Throws when it fails.
  nlohmann::json run_program(const std::vector<std::string>& arguments);
  void report(const Figure& figure);
  void say(const std::string& line) const;

  // drain_block.cpp
  void migrate(const std::string& database);
  void fill(const std::string& database, std::int64_t events);
  [[nodiscard]] std::string copy_of(const std::string& database);
  void drop(const std::string& database);
  double bare_loop(const std::string& source, std::int64_t events);
  Drained drain(const std::string& source, std::int64_t events,
                const std::vector<std::string>& holder = {});
  double bare_publish(std::int64_t events);
  double drain_to_queue(const std::string& source, std::int64_t events);
  void measure_memory();
  void measure_held_writer();
  void measure_rabbitmq(const std::string& figure, const std::string& source, std::int64_t events,
                        int pairs);
  // writer_block.cpp
  void measure_writer();
  // jobs_block.cpp
  void plant_jobs(const std::string& database, std::int64_t jobs);
  double complete_jobs(const std::string& source, std::vector<std::string> program);
  void measure_job_rate(const std::string& source, const std::string& workers);
  void measure_job_limit(const std::string& source, const std::string& figure,
                         const std::vector<std::string>& changes);
  void measure_job_latency();
  void measure_jobs();

  const Sizes sizes_;
  const std::string programs_;
  testing::TemporaryFolder folder_;
  testing::PostgresServer postgres_;
  std::unique_ptr<testing::Rabbitmq> rabbitmq_;
  std::string small_;  ///< databases that are copied for each run
  std::string large_;
  double most_resident_mib_ = 0;
  nlohmann::ordered_json results_;
  Keep keep_;
};

}  // namespace postrider::bench
