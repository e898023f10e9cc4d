#pragma once
/// \file
/// The suite that defines a store of jobs. Link the object library
/// `postrider::job_store_conformance`, and instantiate:
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, JobStoreConformance,
///                              ::testing::Values(JobStoreCase{"wal", make_sqlite_harness}),
///                              job_case_name);

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/job_store.hpp>
#include <postrider/store.hpp>
#include <postrider/testing/manual_clock.hpp>

namespace postrider::testing {

/// A job's row as a person who looks into the table sees it.
struct JobRow {
  DeliveryStatus status = DeliveryStatus::pending;
  int attempts = 0;
  int deaths = 0;
  int snoozes = 0;
  int interruptions = 0;
  std::optional<DispatchId> dispatch_id;
  std::optional<WorkerId> worker;
  Timestamp available_at;
  std::optional<Timestamp> dispatched_at;
  std::optional<Timestamp> delivery_timeout_at;
  std::optional<Timestamp> finished_at;
  std::optional<int> serial_slot;
  bool cancel_requested = false;
  std::optional<int> percent;
  std::string note;  ///< empty, too, when there is none; so are the others below
  std::string checkpoint;
  std::string result;
  std::string failure_code;
  std::string failure_detail;
};

/// What is said of a queue.
struct QueueRule {
  std::string queue;
  bool paused = false;
  std::optional<int> rate_limit;  ///< with `rate_period`
  milliseconds rate_period{0};
};

/// A fresh, migrated, empty database that lives as long as this object.
///
/// What stands below `rule_queue` is optional: a test that needs it is skipped where it is not
/// there.
class JobStoreHarness {
 public:
  virtual ~JobStoreHarness() = default;
  virtual std::unique_ptr<JobStore> open_job_store() = 0;
  virtual std::unique_ptr<Store> open_store() = 0;

  /// Writes the row that a relay's settle writes for `job` at `now`. Its event is there; the row
  /// takes that event's seq and slot, whatever `job` says. False: a unique index refuses it.
  /// Thread safety: any thread.
  virtual bool plant_job(const NewDelivery& job, Timestamp now) = 0;
  virtual JobRow read_job(DeliveryId id) = 0;
  /// As a person does: a pending job is cancelled, a dispatched one is asked to stop.
  virtual void cancel_job(DeliveryId id, Timestamp now) = 0;
  /// Replaces what was said of that queue; its tokens are full.
  virtual void rule_queue(const QueueRule& rule, Timestamp now) = 0;

  /// Writes an event that no store of ours would write, with headers that cannot be read.
  virtual std::optional<EventId> plant_malformed_event() { return std::nullopt; }
  /// Keeps everybody else from writing until the returned object is gone. Null: cannot be done.
  virtual std::shared_ptr<void> lock_database() { return nullptr; }
  /// Ends every connection that is open now, without the stores' knowledge.
  virtual bool lose_connections() { return false; }
};

struct JobStoreCase {
  std::string name;
  std::function<std::unique_ptr<JobStoreHarness>()> make;
};

/// What GoogleTest shows of a case.
void PrintTo(const JobStoreCase& store_case, std::ostream* out);

class JobStoreConformance : public ::testing::TestWithParam<JobStoreCase> {
 protected:
  using JobChange = std::function<void(NewDelivery&)>;

  void SetUp() override;
  void TearDown() override;

  /// A pending job "send" in the queue "mail", due at once, with the retry delays 1 s and 5 s and
  /// a timeout of 10 s, of an event of its own; `change` is applied before it is stored.
  DeliveryId plant(const JobChange& change = {});
  /// As many of them. Their ids in the order of their events.
  std::vector<DeliveryId> plant_many(std::size_t count, const JobChange& change = {});
  /// Empty when a unique index refused the row.
  std::optional<DeliveryId> try_plant(const JobChange& change);

  /// The id of a new start of a worker, which has said that it runs.
  WorkerId start_worker(const std::string& host = "host-1");
  HeartbeatAnswer beat(WorkerId worker, std::vector<DispatchId> running = {},
                       WorkerState state = WorkerState::running);

  /// Takes from "mail" for `worker`, or for one that was started for the test.
  TaskBatch take(std::size_t at_most = 100);
  TaskBatch take_for(WorkerId worker, std::size_t at_most = 100);
  TaskBatch take(const TakeRequest& request);
  [[nodiscard]] TakeRequest take_request(std::size_t at_most = 100);
  /// The one task that there is to take.
  Task take_one();

  /// `update`, alone.
  RecordAnswer record(const JobUpdate& update);
  std::vector<RecordAnswer> record_all(std::vector<JobUpdate> updates);
  AttemptState touch(AttemptUpdate update);
  LostBatch lost(std::size_t limit = 100);

  JobRow row(DeliveryId id) { return harness_->read_job(id); }
  void pause(const std::string& queue) { harness_->rule_queue({queue, true, {}, {}}, now()); }
  [[nodiscard]] Timestamp now() const { return clock_.wall(); }

  static constexpr milliseconds dead_after{30'000};

  ManualClock clock_;
  std::unique_ptr<JobStoreHarness> harness_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<JobStore> jobs_;
  std::optional<WorkerId> worker_;
};

[[nodiscard]] std::string job_case_name(const ::testing::TestParamInfo<JobStoreCase>& info);

}  // namespace postrider::testing
