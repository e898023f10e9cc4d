// The memory store of jobs against the suite that defines one.

#include <postrider/testing/job_store_conformance.hpp>
#include <postrider/testing/memory_store.hpp>

#include "store/memory/memory_database.hpp"

namespace postrider::testing {
namespace {

class MemoryJobStoreHarness final : public JobStoreHarness {
 public:
  std::unique_ptr<JobStore> open_job_store() override { return make_memory_job_store(database_); }
  std::unique_ptr<Store> open_store() override { return make_memory_store(database_); }

  bool plant_job(const NewDelivery& job, Timestamp now) override {
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    Delivery delivery;
    for (const auto& [seq, row] : tables.events()) {
      if (row.event->id == job.event_id) delivery.event_seq = seq;
    }
    delivery.id = job.id;
    delivery.event_id = job.event_id;
    delivery.route = job.route;
    delivery.attempts = job.attempts;
    delivery.retry_delays = job.retry_delays;
    delivery.timeout = job.timeout;
    delivery.on_failed = job.on_failed;
    delivery.available_at = now + job.available_in;
    JobColumns columns;
    columns.policy = job.job->policy;
    columns.transport = job.job->transport;
    return tables.insert_job(std::move(delivery), std::move(columns));
  }

  JobRow read_job(DeliveryId id) override {
    const MutexLock lock(database_->mutex);
    const auto* delivery = database_->tables.find_delivery(id);
    const auto* job = database_->tables.find_job(id);
    if (job == nullptr) return {};
    JobRow row;
    row.status = delivery->status;
    row.attempts = delivery->attempts;
    row.deaths = job->deaths;
    row.snoozes = job->snoozes;
    row.interruptions = job->interruptions;
    row.dispatch_id = delivery->dispatch_id;
    row.worker = job->worker;
    row.available_at = delivery->available_at;
    row.dispatched_at = delivery->dispatched_at;
    row.delivery_timeout_at = delivery->delivery_timeout_at;
    row.finished_at = delivery->finished_at;
    row.serial_slot = job->serial_slot;
    row.cancel_requested = job->cancel_requested_at.has_value();
    row.percent = job->percent;
    row.note = job->note;
    row.checkpoint = job->checkpoint;
    row.result = job->result.value_or("");
    row.failure_code = delivery->failure_code;
    row.failure_detail = delivery->failure_detail;
    return row;
  }

  void cancel_job(DeliveryId id, Timestamp now) override {
    const MutexLock lock(database_->mutex);
    auto delivery = *database_->tables.find_delivery(id);
    auto job = *database_->tables.find_job(id);
    if (delivery.status == DeliveryStatus::pending) {
      delivery.status = DeliveryStatus::cancelled;
      delivery.finished_at = now;
    } else {
      job.cancel_requested_at = now;
    }
    database_->tables.write_job(std::move(delivery), std::move(job));
  }

  void rule_queue(const QueueRule& rule, Timestamp now) override {
    const MutexLock lock(database_->mutex);
    QueueRow row;
    if (rule.paused) {
      row.paused_at = now;
      row.paused_by = "ann";
    }
    row.rate_limit = rule.rate_limit;
    row.rate_period = rule.rate_period;
    database_->tables.queues()[rule.queue] = std::move(row);
  }

  std::optional<EventId> plant_malformed_event() override {
    const auto seq = testing::plant_malformed_event(*database_, "its headers cannot be read");
    const MutexLock lock(database_->mutex);
    return database_->tables.events().at(seq).event->id;
  }

 private:
  std::shared_ptr<MemoryDatabase> database_ = make_memory_database();
};

INSTANTIATE_TEST_SUITE_P(Memory, JobStoreConformance,
                         ::testing::Values(JobStoreCase{
                             "plain", [] { return std::make_unique<MemoryJobStoreHarness>(); }}),
                         job_case_name);

}  // namespace
}  // namespace postrider::testing
