#pragma once
/// \file
/// Jobs in a SQLite database for tests, written and read through SQLite's C interface.

#include <cstddef>
#include <memory>
#include <string>

#include <postrider/testing/job_store_conformance.hpp>

#include "backends/sqlite_database.hpp"

namespace postrider::testing {

class SqliteJobHarness final : public JobStoreHarness {
 public:
  explicit SqliteJobHarness(SchemaNames names = {}) : names_(names), database_(std::move(names)) {}

  [[nodiscard]] const SqliteDatabase& database() const { return database_; }

  std::unique_ptr<JobStore> open_job_store() override {
    return make_sqlite_job_store(database_.options());
  }
  std::unique_ptr<Store> open_store() override { return database_.store(); }
  bool plant_job(const NewDelivery& job, Timestamp now) override;
  JobRow read_job(DeliveryId id) override;
  void cancel_job(DeliveryId id, Timestamp now) override;
  void rule_queue(const QueueRule& rule, Timestamp now) override;
  std::optional<EventId> plant_malformed_event() override;
  std::shared_ptr<void> lock_database() override;

 private:
  [[nodiscard]] std::string table(const char* name) const { return names_.prefix + name; }

  SchemaNames names_;
  SqliteDatabase database_;
};

/// Writes `count` events, each with one job "send" in the queue "mail", due at `now`, in one
/// transaction. Ids ascend with the events. `columns` and `values` are more of the job's row, such
/// as "serial_key, serial_limit" and "'a', 1".
void plant_many_jobs(const SqliteDatabase& database, std::size_t count, Timestamp now,
                     const std::string& columns = "", const std::string& values = "");

}  // namespace postrider::testing
