#pragma once
/// \file
/// Jobs in a PostgreSQL of a test's own, planted and read by SQL.

#include <memory>
#include <string>

#include <postrider/testing/job_store_conformance.hpp>

#include "backends/postgres_database.hpp"

namespace postrider::testing {

/// Requires: `why_no_postgres` is empty.
class PostgresJobStoreHarness final : public JobStoreHarness {
 public:
  explicit PostgresJobStoreHarness(PostgresOptions options = {})
      : database_(std::move(options)), session_(database_.open_session()) {}

  std::unique_ptr<JobStore> open_job_store() override {
    return make_postgres_job_store(database_.options());
  }
  std::unique_ptr<Store> open_store() override { return database_.open_store(); }
  bool plant_job(const NewDelivery& job, Timestamp now) override;
  JobRow read_job(DeliveryId id) override;
  void cancel_job(DeliveryId id, Timestamp now) override;
  void rule_queue(const QueueRule& rule, Timestamp now) override;
  std::optional<EventId> plant_malformed_event() override;
  std::shared_ptr<void> lock_database() override;
  bool lose_connections() override;

  [[nodiscard]] const PostgresDatabase& database() const { return database_; }
  [[nodiscard]] PostgresSession& session() { return *session_; }
  [[nodiscard]] std::string table(const std::string& name) const;

 private:
  PostgresDatabase database_;
  std::unique_ptr<PostgresSession> session_;
};

}  // namespace postrider::testing
