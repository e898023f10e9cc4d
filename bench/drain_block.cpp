// Drains: each run has its own copy of the same database, so that all begin alike.
#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <postrider/store/postgres.hpp>

#include "bench/rounds.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::bench {
namespace {

constexpr const char* queue = "bench";
constexpr int idle_looks = 51;

double rate(double events, double seconds) {
  return events / seconds;
}

}  // namespace

void Run::migrate(const std::string& database) {
  const auto migrated = make_postgres_migrator({postgres_.conninfo(database), {}, 64})
                            ->up(std::nullopt, Deadline::after(std::chrono::seconds(60)));
  if (!migrated) throw std::runtime_error(describe(migrated.error()));
}

/// 300-byte payloads of 50,000 aggregates, in transactions of many, and vacuumed.
void Run::fill(const std::string& database, std::int64_t events) {
  constexpr std::int64_t chunk = 50'000;
  migrate(database);
  testing::PostgresSession session(postgres_.conninfo(database));
  session.run("SET postrider.ordering = off");
  for (std::int64_t done = 0; done < events; done += chunk) {
    const auto last = std::min(done + chunk, events);
    session.run(
        "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) "
        "SELECT 'account', (n % 50000)::text, 'account.changed', "
        "'{\"text\":\"' || repeat('x', 289) || '\"}' FROM generate_series(" +
        std::to_string(done + 1) + ", " + std::to_string(last) + ") AS n");
  }
  session.run("VACUUM ANALYZE outbox_events");
}

std::string Run::copy_of(const std::string& database) {
  static int copies = 0;
  const auto copy = "bench_copy_" + std::to_string(++copies);
  testing::PostgresSession session(postgres_.conninfo("postgres"));
  session.run("CREATE DATABASE " + copy + " TEMPLATE " + database + " STRATEGY file_copy");
  session.run("CHECKPOINT");
  return copy;
}

void Run::drop(const std::string& database) {
  postgres_.drop_database(database);
}

double Run::bare_loop(const std::string& source, std::int64_t events) {
  const auto copy = copy_of(source);
  const auto result = run_program({"bench-bare", "read-and-mark", "--conninfo",
                                   postgres_.conninfo(copy), "--events", std::to_string(events)});
  drop(copy);
  return rate(static_cast<double>(events), result.at("seconds"));
}

/// `holder` is what another session says before the drain begins; it stays open until its end.
Run::Drained Run::drain(const std::string& source, std::int64_t events,
                        const std::vector<std::string>& holder) {
  const auto copy = copy_of(source);
  testing::PostgresSession session(postgres_.conninfo(copy));
  for (const auto& sql : holder)
    session.run(sql);
  const auto result =
      run_program({"bench-drain", "--conninfo", postgres_.conninfo(copy), "--events",
                   std::to_string(events), "--idle-looks", std::to_string(idle_looks)});
  drop(copy);
  most_resident_mib_ =
      std::max(most_resident_mib_, result.at("resident_kib").get<double>() / 1024.0);
  const auto all = static_cast<double>(events);
  return {rate(all, result.at("seconds")), rate(all / 10, result.at("tail_seconds")),
          result.at("idle_look_ms")};
}

void Run::measure_memory() {
  Figure small{"memory_small", "events/s", {}};
  Figure large{"memory_large", "events/s", {}};
  Figure growth{"growth", "events/s", {}};
  Figure held{"held_snapshot", "events/s", {}};
  Figure held_tail{"held_snapshot_tail", "events/s", {}};
  Figure idle{"held_snapshot_idle_ms", "ms", {}};
  const std::vector<std::string> snapshot = {"BEGIN ISOLATION LEVEL REPEATABLE READ",
                                             "SELECT count(*) FROM outbox_partitions"};
  for (int pair = 0; pair < sizes_.pairs; ++pair) {
    const double bare_small = bare_loop(small_, sizes_.small);
    const auto product_small = drain(small_, sizes_.small);
    const double bare_large = bare_loop(large_, sizes_.large);
    const auto product_large = drain(large_, sizes_.large);
    const auto product_held = drain(large_, sizes_.large, snapshot);
    small.pairs.push_back({bare_small, product_small.rate});
    large.pairs.push_back({bare_large, product_large.rate});
    growth.pairs.push_back({product_small.rate, product_large.tail_rate});
    held.pairs.push_back({product_large.rate, product_held.rate});
    held_tail.pairs.push_back({product_large.tail_rate, product_held.tail_rate});
    idle.pairs.push_back({0, product_held.idle_look_ms});
  }
  for (const auto* figure : {&small, &large, &growth, &held, &held_tail, &idle})
    report(*figure);
}

/// A drain that has to wait for the writer would not end at all.
void Run::measure_held_writer() {
  Figure held{"held_writer", "events/s", {}};
  const std::vector<std::string> writer = {
      "BEGIN", "INSERT INTO outbox_events (type, payload) VALUES ('late', '{}')"};
  for (int pair = 0; pair < sizes_.pairs; ++pair) {
    const auto alone = drain(small_, sizes_.small);
    const auto beside = drain(small_, sizes_.small, writer);
    held.pairs.push_back({alone.rate, beside.rate});
  }
  report(held);
}

double Run::bare_publish(std::int64_t events) {
  testing::RabbitmqSession session(rabbitmq_->ports().amqp);
  session.declare_queue(queue, {{"x-queue-type", "quorum"}});
  const auto result =
      run_program({"bench-bare", "publish", "--port", std::to_string(rabbitmq_->ports().amqp),
                   "--queue", queue, "--events", std::to_string(events), "--window", "1000"});
  session.delete_queue(queue);
  return rate(static_cast<double>(events), result.at("seconds"));
}

double Run::drain_to_queue(const std::string& source, std::int64_t events) {
  const auto copy = copy_of(source);
  testing::RabbitmqSession session(rabbitmq_->ports().amqp);
  session.declare_queue(queue, {{"x-queue-type", "quorum"}});
  const auto result =
      run_program({"bench-drain", "--conninfo", postgres_.conninfo(copy), "--events",
                   std::to_string(events), "--amqp-port", std::to_string(rabbitmq_->ports().amqp),
                   "--queue", queue, "--window", "1000"});
  session.delete_queue(queue);
  drop(copy);
  most_resident_mib_ =
      std::max(most_resident_mib_, result.at("resident_kib").get<double>() / 1024.0);
  return rate(static_cast<double>(events), result.at("seconds"));
}

void Run::measure_rabbitmq(const std::string& figure, const std::string& source,
                           std::int64_t events, int pairs) {
  Figure measured{figure, "events/s", {}};
  for (int pair = 0; pair < pairs; ++pair) {
    const double alone = bare_publish(events);
    measured.pairs.push_back({alone, drain_to_queue(source, events)});
  }
  report(measured);
}

}  // namespace postrider::bench
