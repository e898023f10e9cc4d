#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/bare.hpp"
#include "bench/bare_libpq.hpp"

namespace postrider::bench {
namespace {

constexpr std::uint64_t uuid_type = 2950;

/// One session that takes a batch, looks at it, completes it, and takes the next.
class BareWorker {
 public:
  BareWorker(const std::string& conninfo, std::int64_t batch)
      : connection_(open_session(conninfo)) {
    prepare(connection_, "take",
            "WITH picked AS MATERIALIZED (SELECT id FROM outbox_deliveries "
            "WHERE queue = 'bench' AND status = 'pending' AND transport = 'database' "
            "AND available_at <= now() ORDER BY priority, available_at, id LIMIT " +
                std::to_string(batch) +
                " FOR UPDATE SKIP LOCKED) "
                "UPDATE outbox_deliveries AS d SET status = 'dispatched', "
                "dispatch_id = gen_random_uuid(), dispatched_at = now(), "
                "delivery_timeout_at = now() + d.timeout_ms * interval '1 ms', "
                "worker = '00000000-0000-0000-0000-000000000001', deaths = d.deaths + 1 "
                "FROM picked AS p, outbox_events AS e WHERE d.id = p.id AND e.seq = d.event_seq "
                "RETURNING d.id, d.dispatch_id, d.job, d.attempts, d.retry_delays, "
                "d.delivery_timeout_at, e.seq, e.id, e.aggregate_type, e.aggregate_id, e.type, "
                "e.payload, e.content_type, e.headers, e.created_at");
    prepare(connection_, "complete",
            "UPDATE outbox_deliveries SET status = 'completed', deaths = deaths - 1, "
            "delivery_timeout_at = NULL, finished_at = now(), result = 'done' "
            "WHERE id = ANY ($1::uuid[])");
  }

  /// Until there is nothing more to take; the number of jobs.
  std::int64_t work() {
    std::int64_t done = 0;
    for (;;) {
      const auto rows = execute(connection_, "take", {}, PGRES_TUPLES_OK);
      const int count = PQntuples(rows.get());
      if (count == 0) return done;
      if (touch(rows) == 0) throw std::runtime_error("the jobs are empty");
      execute(connection_, "complete", {array_of_first_column(rows, uuid_type)}, PGRES_COMMAND_OK);
      done += count;
    }
  }

 private:
  Connection connection_;
};

}  // namespace

double take_and_complete(const std::string& conninfo, std::int64_t jobs, std::int64_t connections,
                         std::int64_t batch) {
  const auto begun = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> done = 0;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(connections));
  std::vector<std::thread> threads;
  for (auto& failure : failures) {
    threads.emplace_back([&] {
      try {
        done += BareWorker(conninfo, batch).work();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun;
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  if (done != jobs) throw std::runtime_error("another number of jobs than expected");
  return elapsed.count();
}

}  // namespace postrider::bench
