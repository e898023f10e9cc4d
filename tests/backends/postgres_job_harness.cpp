#include "backends/postgres_job_harness.hpp"

#include <stdexcept>
#include <vector>

namespace postrider::testing {
namespace {

std::string microseconds_of(Timestamp time) {
  return std::to_string(time.time_since_epoch().count());
}

/// The parameter `number`, which holds microseconds.
std::string time_from(int number) {
  return "(timestamptz 'epoch' + $" + std::to_string(number) + "::bigint * interval '1 us')";
}

std::string in_microseconds(const std::string& column) {
  return "coalesce((extract(epoch FROM " + column + ") * 1000000)::bigint::text, '')";
}

std::optional<Timestamp> time_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return Timestamp(std::chrono::microseconds(std::stoll(text)));
}

template <class Id>
std::optional<Id> id_of(const std::string& text) {
  const auto uuid = Uuid::parse(text);
  if (!uuid) return std::nullopt;
  return Id(*uuid);
}

std::optional<int> number_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return std::stoi(text);
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  return bytes;
}

std::string json_of(const std::vector<milliseconds>& delays) {
  std::string json;
  for (const auto& delay : delays)
    json += (json.empty() ? "" : ",") + std::to_string(delay.count());
  return "[" + json + "]";
}

}  // namespace

std::string PostgresJobStoreHarness::table(const std::string& name) const {
  const auto& names = database_.options().names;
  return (names.schema.empty() ? "" : names.schema + ".") + names.prefix + name;
}

bool PostgresJobStoreHarness::plant_job(const NewDelivery& job, Timestamp now) {
  const auto& policy = job.job->policy;
  const std::string sql =
      "INSERT INTO " + table("outbox_deliveries") +
      " (id, event_seq, event_id, slot, route, status, attempts, retry_delays, timeout_ms, "
      "on_failed, available_at, kind, job, queue, transport, priority, serial_key, serial_limit, "
      "unique_key, on_worker_death, max_deaths, timeout_limit_ms) "
      "SELECT $1::uuid, e.seq, e.id, e.slot, $3, 'pending', $4::integer, $5, $6::bigint, 'skip', " +
      time_from(7) +
      ", 'job', $8, $9, $10, $11::smallint, nullif($12, ''), CASE WHEN $12 <> '' THEN "
      "$13::smallint END, nullif($14, ''), $15, $16::smallint, $17::bigint FROM " +
      table("outbox_events") + " AS e WHERE e.id = $2::uuid ON CONFLICT DO NOTHING RETURNING id";
  const std::vector<std::string> parameters = {job.id.value().to_string(),
                                               job.event_id.value().to_string(),
                                               job.route,
                                               std::to_string(job.attempts),
                                               json_of(job.retry_delays),
                                               std::to_string(job.timeout.count()),
                                               microseconds_of(now + job.available_in),
                                               policy.job,
                                               policy.queue,
                                               std::string(to_string(job.job->transport)),
                                               std::to_string(policy.priority),
                                               policy.serial_key,
                                               std::to_string(policy.serial_limit),
                                               policy.unique_key,
                                               std::string(to_string(policy.on_worker_death)),
                                               std::to_string(policy.max_deaths),
                                               std::to_string(policy.timeout_limit.count())};
  return !database_.open_session()->run(sql, parameters).empty();
}

JobRow PostgresJobStoreHarness::read_job(DeliveryId id) {
  const std::vector<std::string> columns = {"status",
                                            "attempts::text",
                                            "deaths::text",
                                            "snoozes::text",
                                            "interruptions::text",
                                            "coalesce(dispatch_id::text, '')",
                                            "coalesce(worker::text, '')",
                                            in_microseconds("available_at"),
                                            in_microseconds("dispatched_at"),
                                            in_microseconds("delivery_timeout_at"),
                                            in_microseconds("finished_at"),
                                            "coalesce(serial_slot::text, '')",
                                            "(cancel_requested_at IS NOT NULL)::text",
                                            "coalesce(percent::text, '')",
                                            "coalesce(encode(note::bytea, 'hex'), '')",
                                            "coalesce(encode(checkpoint, 'hex'), '')",
                                            "coalesce(encode(result::bytea, 'hex'), '')",
                                            "encode(failure_code::bytea, 'hex')",
                                            "encode(convert_to(failure_detail, 'UTF8'), 'hex')"};
  const auto session = database_.open_session();
  std::vector<std::string> values;
  for (const auto& column : columns) {
    values.push_back(session->run(
        "SELECT " + column + " FROM " + table("outbox_deliveries") + " WHERE id = $1::uuid",
        {id.value().to_string()}));
  }
  JobRow row;
  row.status = parse_delivery_status(values[0]).value_or(DeliveryStatus::held);
  row.attempts = std::stoi(values[1]);
  row.deaths = std::stoi(values[2]);
  row.snoozes = std::stoi(values[3]);
  row.interruptions = std::stoi(values[4]);
  row.dispatch_id = id_of<DispatchId>(values[5]);
  row.worker = id_of<WorkerId>(values[6]);
  row.available_at = time_of(values[7]).value_or(Timestamp());
  row.dispatched_at = time_of(values[8]);
  row.delivery_timeout_at = time_of(values[9]);
  row.finished_at = time_of(values[10]);
  row.serial_slot = number_of(values[11]);
  row.cancel_requested = values[12] == "true";
  row.percent = number_of(values[13]);
  row.note = bytes_of(values[14]);
  row.checkpoint = bytes_of(values[15]);
  row.result = bytes_of(values[16]);
  row.failure_code = bytes_of(values[17]);
  row.failure_detail = bytes_of(values[18]);
  return row;
}

void PostgresJobStoreHarness::cancel_job(DeliveryId id, Timestamp now) {
  const std::vector<std::string> parameters = {id.value().to_string(), microseconds_of(now)};
  const auto session = database_.open_session();
  session->run("UPDATE " + table("outbox_deliveries") +
                   " SET status = 'cancelled', finished_at = " + time_from(2) +
                   " WHERE id = $1::uuid AND status = 'pending'",
               parameters);
  session->run("UPDATE " + table("outbox_deliveries") + " SET cancel_requested_at = " +
                   time_from(2) + " WHERE id = $1::uuid AND status = 'dispatched'",
               parameters);
}

void PostgresJobStoreHarness::rule_queue(const QueueRule& rule, Timestamp now) {
  const auto session = database_.open_session();
  session->run("DELETE FROM " + table("outbox_queues") + " WHERE queue = $1", {rule.queue});
  session->run("INSERT INTO " + table("outbox_queues") +
                   " (queue, paused_at, paused_by, rate_limit, rate_period_ms, tokens, "
                   "refilled_at) SELECT $1, CASE WHEN $2 = 'yes' THEN " +
                   time_from(3) +
                   " END, CASE WHEN $2 = 'yes' THEN 'anna' END, nullif($4, '')::integer, "
                   "nullif($5, '0')::bigint, coalesce(nullif($4, ''), '0')::float, " +
                   time_from(3),
               {rule.queue, rule.paused ? "yes" : "no", microseconds_of(now),
                rule.rate_limit ? std::to_string(*rule.rate_limit) : "",
                std::to_string(rule.rate_period.count())});
}

std::optional<EventId> PostgresJobStoreHarness::plant_malformed_event() {
  return id_of<EventId>(database_.open_session()->run(
      "INSERT INTO " + table("outbox_events") +
      R"( (type, payload, headers) VALUES ('x', '{}', '{"a": []}') RETURNING id)"));
}

std::shared_ptr<void> PostgresJobStoreHarness::lock_database() {
  std::shared_ptr<PostgresSession> session = database_.open_session();
  session->run("BEGIN");
  for (const auto* name : {"outbox_deliveries", "outbox_workers", "outbox_queues"})
    session->run("LOCK TABLE " + table(name) + " IN EXCLUSIVE MODE");
  return session;
}

bool PostgresJobStoreHarness::lose_connections() {
  session_.reset();
  database_.end_sessions();
  session_ = database_.open_session();
  return true;
}

}  // namespace postrider::testing
