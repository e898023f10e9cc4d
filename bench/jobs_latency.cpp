#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "bench/job_rows.hpp"
#include "bench/jobs.hpp"

namespace postrider::bench {
namespace {

/// Not counted: until then plans are made and the worker listens.
constexpr std::size_t warm_up = 10;
constexpr std::size_t payload_bytes = 300;

/// A program that writes an event and its job in a transaction of their own, by plain SQL.
class JobWriter {
 public:
  explicit JobWriter(const std::string& conninfo)
      : connection_(PQconnectdb(conninfo.c_str()), &PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
    const auto sql =
        std::string(
            "WITH event AS (INSERT INTO outbox_events (aggregate_type, aggregate_id, type, "
            "payload) "
            "VALUES ('account', $1::text, 'account.changed', $2::text) RETURNING seq, id, slot) ") +
        insert_jobs;
    check(PQprepare(connection_.get(), "job", sql.c_str(), 0, nullptr));
  }

  /// Returns when the answer to the commit is there.
  void write(std::size_t number) {
    const auto aggregate = std::to_string(number);
    const std::array<const char*, 2> values = {aggregate.c_str(), payload_.c_str()};
    check(PQexecPrepared(connection_.get(), "job", 2, values.data(), nullptr, nullptr, 0));
  }

 private:
  static void check(PGresult* result) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> owned(result, &PQclear);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
      throw std::runtime_error(PQresultErrorMessage(result));
    }
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::string payload_ = "{\"text\":\"" + std::string(payload_bytes - 11, 'x') + "\"}";
};

/// When each job was committed, as its writer knows it, and when its handler began. Each is written
/// by one thread, and read when all have ended.
struct Moments {
  explicit Moments(std::size_t jobs) : committed(jobs), handled(jobs) {}
  std::vector<Instant> committed;
  std::vector<Instant> handled;
};

void write_at_rate(const std::string& conninfo, std::int64_t rate, Moments& moments) {
  JobWriter writer(conninfo);
  const auto begun = system_clock().steady();
  for (std::size_t i = 0; i < moments.committed.size(); ++i) {
    const auto due =
        std::chrono::nanoseconds(std::chrono::seconds(1)) * static_cast<std::int64_t>(i) / rate;
    std::this_thread::sleep_until(begun + due);
    writer.write(i);
    moments.committed[i] = system_clock().steady();
  }
}

std::vector<double> sorted_latencies_ms(const Moments& moments) {
  std::vector<double> latencies;
  for (auto i = warm_up; i < moments.handled.size(); ++i) {
    const auto latency = moments.handled[i] - moments.committed[i];
    latencies.push_back(std::chrono::duration<double, std::milli>(latency).count());
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted.at(static_cast<std::size_t>(rank) - 1);
}

}  // namespace

nlohmann::json measure_latency(const std::string& conninfo, std::int64_t jobs, std::int64_t rate,
                               std::size_t concurrency) {
  Moments moments(warm_up + static_cast<std::size_t>(jobs));
  Handlers handlers;
  handlers.bind(job_name, [&moments](const Event& event) {
    moments.handled.at(std::stoul(event.aggregate->id)) = system_clock().steady();
  });
  CompletionCount count(static_cast<std::int64_t>(moments.handled.size()));
  WorkerGroup group(conninfo, handlers, 1, concurrency, count);
  count.call([&group] { group.request_stop(); });
  group.start();
  write_at_rate(conninfo, rate, moments);
  group.join();
  if (!count.done()) throw std::runtime_error("the worker ended before all jobs were completed");
  const auto latencies = sorted_latencies_ms(moments);
  return {{"median_ms", quantile(latencies, 0.5)}, {"p99_ms", quantile(latencies, 0.99)}};
}

}  // namespace postrider::bench
