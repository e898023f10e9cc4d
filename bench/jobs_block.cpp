// Jobs through the database: workers against the same row changes, and how soon a handler begins.
#include <stdexcept>

#include "bench/job_rows.hpp"
#include "bench/rounds.hpp"

namespace postrider::bench {
namespace {

/// Attempts at once of a worker, and rows of a batch of the bare loop.
constexpr const char* concurrency = "100";
constexpr const char* latency_rate = "50";

/// What both leave behind of a job: so that they are known to have done the same.
constexpr const char* jobs_done =
    "SELECT count(*) FROM outbox_deliveries WHERE status = 'completed' AND result = 'done' "
    "AND attempts = 0 AND deaths = 0 AND dispatch_id IS NOT NULL AND worker IS NOT NULL "
    "AND dispatched_at IS NOT NULL AND delivery_timeout_at IS NULL AND finished_at IS NOT NULL";

}  // namespace

/// Due jobs with an event each, in one transaction, and vacuumed.
void Run::plant_jobs(const std::string& database, std::int64_t jobs) {
  migrate(database);
  testing::PostgresSession session(postgres_.conninfo(database));
  session.run("SET postrider.ordering = off");
  session.run(
      "WITH event AS (INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) "
      "SELECT 'account', n::text, 'account.changed', "
      "'{\"text\":\"' || repeat('x', 289) || '\"}' FROM generate_series(1, " +
      std::to_string(jobs) + ") AS n RETURNING seq, id, slot) " + insert_jobs);
  session.run("VACUUM ANALYZE outbox_events, outbox_deliveries");
}

/// Jobs per second of a program that completes all of them, in a copy of `source`.
double Run::complete_jobs(const std::string& source, std::vector<std::string> program) {
  const auto copy = copy_of(source);
  const auto conninfo = postgres_.conninfo(copy);
  program.insert(program.end(), {"--conninfo", conninfo, "--jobs", std::to_string(sizes_.jobs)});
  const double seconds = run_program(program).at("seconds");
  if (testing::PostgresSession(conninfo).run(jobs_done) != std::to_string(sizes_.jobs)) {
    throw std::runtime_error(program.front() + " left jobs that are not completed");
  }
  drop(copy);
  return static_cast<double>(sizes_.jobs) / seconds;
}

void Run::measure_job_rate(const std::string& source, const std::string& workers) {
  Figure rate{"jobs_" + workers, "jobs/s", {}};
  for (int pair = 0; pair < sizes_.pairs; ++pair) {
    const double bare = complete_jobs(
        source, {"bench-bare", "jobs", "--connections", workers, "--batch", concurrency});
    rate.pairs.push_back({bare, complete_jobs(source, {"bench-jobs", "throughput", "--workers",
                                                       workers, "--concurrency", concurrency})});
  }
  report(rate);
}

/// Four workers on the same jobs without and with a limit that never holds one up (JT-21).
void Run::measure_job_limit(const std::string& source, const std::string& figure,
                            const std::vector<std::string>& changes) {
  const auto limited = copy_of(source);
  {
    testing::PostgresSession session(postgres_.conninfo(limited));
    for (const auto& change : changes)
      session.run(change);
    session.run("VACUUM FULL ANALYZE outbox_deliveries");
  }
  Figure rate{figure, "jobs/s", {}};
  const std::vector<std::string> program = {"bench-jobs", "throughput",    "--workers",
                                            "4",          "--concurrency", concurrency};
  for (int pair = 0; pair < sizes_.pairs; ++pair) {
    const double free = complete_jobs(source, program);
    rate.pairs.push_back({free, complete_jobs(limited, program)});
  }
  report(rate);
  drop(limited);
}

void Run::measure_job_latency() {
  Figure middle{"jobs_latency_ms", "ms", {}};
  Figure tail{"jobs_latency_p99_ms", "ms", {}};
  for (int round = 0; round < sizes_.pairs; ++round) {
    const auto database = postgres_.create_database();
    migrate(database);
    const auto result =
        run_program({"bench-jobs", "latency", "--conninfo", postgres_.conninfo(database), "--rate",
                     latency_rate, "--jobs", std::to_string(sizes_.latency_jobs)});
    drop(database);
    middle.pairs.push_back({0, result.at("median_ms")});
    tail.pairs.push_back({0, result.at("p99_ms")});
  }
  report(middle);
  report(tail);
}

void Run::measure_jobs() {
  const auto planted = postgres_.create_database();
  plant_jobs(planted, sizes_.jobs);
  for (const auto* workers : {"1", "4"})
    measure_job_rate(planted, workers);
  measure_job_limit(planted, "jobs_4_limited",
                    {"UPDATE outbox_deliveries SET serial_key = 'all', serial_limit = 400"});
  measure_job_limit(planted, "jobs_4_rated",
                    {"INSERT INTO outbox_queues (queue, rate_limit, rate_period_ms) "
                     "VALUES ('bench', 1000000, 1000)"});
  drop(planted);
  measure_job_latency();
}

}  // namespace postrider::bench
