#include "backends/sqlite_job_database.hpp"

#include "base/timestamp_text.hpp"
#include "conformance/common_builders.hpp"
#include "store/common/durations_codec.hpp"

namespace postrider::testing {
namespace {

std::string quoted(const std::string& text) {
  char* const made = sqlite3_mprintf("%Q", text.c_str());
  std::string copy(made);
  sqlite3_free(made);
  return copy;
}

std::string quoted_or_null(const std::string& text) {
  return text.empty() ? "NULL" : quoted(text);
}

template <class Id>
std::string quoted(const Id& id) {
  return quoted(id.value().to_string());
}

std::string quoted(Timestamp time) {
  return quoted(timestamp_text(time));
}

/// A connection that waits for others, as harnesses are used by several threads at once.
class PatientConnection {
 public:
  explicit PatientConnection(const SqliteDatabase& database) : raw_(database.path()) {
    sqlite3_busy_timeout(raw_.handle(), 30'000);
  }
  RawConnection* operator->() { return &raw_; }

 private:
  RawConnection raw_;
};

/// The columns of one row, in order.
class ReadRow {
 public:
  ReadRow(RawConnection& raw, const std::string& sql) {
    EXPECT_EQ(sqlite3_prepare_v2(raw.handle(), sql.c_str(), -1, &statement_, nullptr), SQLITE_OK)
        << raw.last_message();
    found_ = sqlite3_step(statement_) == SQLITE_ROW;
    EXPECT_TRUE(found_) << "no such row";
  }
  ~ReadRow() { sqlite3_finalize(statement_); }
  ReadRow(const ReadRow&) = delete;
  ReadRow& operator=(const ReadRow&) = delete;

  [[nodiscard]] bool found() const { return found_; }
  bool is_null() { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }
  int number() { return sqlite3_column_int(statement_, column_++); }
  std::optional<int> optional_number() {
    const bool null = is_null();
    const int value = number();
    return null ? std::nullopt : std::optional(value);
  }
  std::string text() {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column_));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_++));
    return size == 0 ? std::string() : std::string(bytes, size);
  }
  template <class Id>
  std::optional<Id> id() {
    const auto written = text();
    if (written.empty()) return std::nullopt;
    return Id(value_of(Uuid::parse(written)));
  }
  std::optional<Timestamp> time() { return parse_timestamp(text()); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool found_ = false;
  int column_ = 0;
};

}  // namespace

bool SqliteJobHarness::plant_job(const NewDelivery& job, Timestamp now) {
  const auto& policy = job.job->policy;
  const bool serial = !policy.serial_key.empty();
  const std::string sql =
      "INSERT INTO " + table("outbox_deliveries") +
      " (id, event_seq, event_id, route, status, attempts, retry_delays, timeout_ms, on_failed, "
      "available_at, kind, job, queue, transport, priority, serial_key, serial_limit, unique_key, "
      "on_worker_death, max_deaths, timeout_limit_ms) SELECT " +
      quoted(job.id) + ", seq, id, " + quoted(job.route) + ", 'pending', " +
      std::to_string(job.attempts) + ", " + quoted(store::encode_durations(job.retry_delays)) +
      ", " + std::to_string(job.timeout.count()) + ", 'skip', " + quoted(now + job.available_in) +
      ", 'job', " + quoted(policy.job) + ", " + quoted(policy.queue) + ", " +
      quoted(std::string(to_string(job.job->transport))) + ", " + std::to_string(policy.priority) +
      ", " + quoted_or_null(policy.serial_key) + ", " +
      (serial ? std::to_string(policy.serial_limit) : "NULL") + ", " +
      quoted_or_null(policy.unique_key) + ", " +
      quoted(std::string(to_string(policy.on_worker_death))) + ", " +
      std::to_string(policy.max_deaths) + ", " + std::to_string(policy.timeout_limit.count()) +
      " FROM " + table("outbox_events") + " WHERE id = " + quoted(job.event_id);
  PatientConnection raw(database_);
  const int code = raw->run(sql);
  if (code == SQLITE_CONSTRAINT_UNIQUE) return false;
  EXPECT_EQ(code, SQLITE_OK) << raw->last_message();
  return sqlite3_changes(raw->handle()) == 1;
}

JobRow SqliteJobHarness::read_job(DeliveryId id) {
  RawConnection raw(database_.path());
  ReadRow read(raw,
               "SELECT status, attempts, deaths, snoozes, interruptions, dispatch_id, worker, "
               "available_at, dispatched_at, delivery_timeout_at, finished_at, serial_slot, "
               "cancel_requested_at IS NOT NULL, percent, note, checkpoint, result, failure_code, "
               "failure_detail FROM " +
                   table("outbox_deliveries") + " WHERE id = " + quoted(id));
  JobRow row;
  if (!read.found()) return row;
  row.status = parse_delivery_status(read.text()).value();
  row.attempts = read.number();
  row.deaths = read.number();
  row.snoozes = read.number();
  row.interruptions = read.number();
  row.dispatch_id = read.id<DispatchId>();
  row.worker = read.id<WorkerId>();
  row.available_at = read.time().value_or(Timestamp());
  row.dispatched_at = read.time();
  row.delivery_timeout_at = read.time();
  row.finished_at = read.time();
  row.serial_slot = read.optional_number();
  row.cancel_requested = read.number() != 0;
  row.percent = read.optional_number();
  row.note = read.text();
  row.checkpoint = read.text();
  row.result = read.text();
  row.failure_code = read.text();
  row.failure_detail = read.text();
  return row;
}

void SqliteJobHarness::cancel_job(DeliveryId id, Timestamp now) {
  PatientConnection raw(database_);
  raw->must("UPDATE " + table("outbox_deliveries") +
            " SET finished_at = CASE WHEN status = 'pending' THEN " + quoted(now) +
            " END, cancel_requested_at = CASE WHEN status = 'dispatched' THEN " + quoted(now) +
            " END, status = CASE WHEN status = 'pending' THEN 'cancelled' ELSE status END WHERE id "
            "= " +
            quoted(id) + " AND status IN ('pending', 'dispatched')");
}

void SqliteJobHarness::rule_queue(const QueueRule& rule, Timestamp now) {
  PatientConnection raw(database_);
  const auto limit = rule.rate_limit ? std::to_string(*rule.rate_limit) : "NULL";
  const auto period = rule.rate_limit ? std::to_string(rule.rate_period.count()) : "NULL";
  raw->must("INSERT OR REPLACE INTO " + table("outbox_queues") +
            " (queue, paused_at, paused_by, rate_limit, rate_period_ms) VALUES (" +
            quoted(rule.queue) + ", " + (rule.paused ? quoted(now) + ", 'ann'" : "NULL, NULL") +
            ", " + limit + ", " + period + ")");
}

std::optional<EventId> SqliteJobHarness::plant_malformed_event() {
  PatientConnection raw(database_);
  raw->must("PRAGMA ignore_check_constraints = ON");
  raw->must("INSERT INTO " + table("outbox_events") + " (type, headers) VALUES ('t', '[]')");
  return EventId(value_of(Uuid::parse(raw->value("SELECT id FROM " + table("outbox_events") +
                                                 " WHERE seq = last_insert_rowid()"))));
}

std::shared_ptr<void> SqliteJobHarness::lock_database() {
  auto lock = std::make_shared<RawConnection>(database_.path());
  lock->must("BEGIN IMMEDIATE");
  return lock;
}

void plant_many_jobs(const SqliteDatabase& database, std::size_t count, Timestamp now,
                     const std::string& columns, const std::string& values) {
  PatientConnection raw(database);
  const auto numbers =
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
      std::to_string(count) + ") ";
  raw->must("BEGIN IMMEDIATE");
  const auto before = raw->value("SELECT coalesce(max(seq), 0) FROM outbox_events");
  raw->must("INSERT INTO outbox_events (type, payload) " + numbers + "SELECT 't', '{}' FROM n");
  raw->must(
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, route, status, retry_delays, "
      "timeout_ms, on_failed, available_at, kind, job, queue, transport, priority, "
      "on_worker_death, max_deaths, timeout_limit_ms" +
      (columns.empty() ? "" : ", " + columns) +
      ") SELECT printf('00000000-0000-7000-8000-%012x', seq), seq, id, 'mailing', 'pending', "
      "'[1000]', 10000, 'skip', " +
      quoted(now) + ", 'job', 'send', 'mail', 'database', 0, 'fail', 2, 60000" +
      (values.empty() ? "" : ", " + values) + " FROM outbox_events WHERE seq > " + before);
  raw->must("COMMIT");
}

}  // namespace postrider::testing
