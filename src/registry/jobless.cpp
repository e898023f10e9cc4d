#include "registry/jobless.hpp"

#include <fmt/format.h>

#include <utility>

namespace postrider::registry {
namespace {

Error no_jobs(const std::string& store) {
  return {ErrorCode::unsupported, Disposition::stop,
          fmt::format("jobs and schedules are not kept on {} yet. Keep them on PostgreSQL or "
                      "SQLite.",
                      store),
          "registry", ""};
}

class JoblessStore final : public JobStore {
 public:
  explicit JoblessStore(std::string store) : store_(std::move(store)) {}

  JobStoreTraits traits() const override { return {}; }
  Result<void> check_schema(Deadline) override { return no_jobs(store_); }
  Result<HeartbeatAnswer> heartbeat(const HeartbeatRequest&, Deadline) override {
    return no_jobs(store_);
  }
  Result<void> declare_dead(WorkerId, std::optional<Timestamp>, Deadline) override {
    return no_jobs(store_);
  }
  Result<std::vector<WorkerInfo>> workers_on(const std::string&, Deadline) override {
    return no_jobs(store_);
  }
  Result<TaskBatch> take(const TakeRequest&, Deadline) override { return no_jobs(store_); }
  Result<StartAnswer> start(const StartRequest&, Deadline) override { return no_jobs(store_); }
  Result<TaskBatch> hand_out(const HandOutRequest&, Deadline) override { return no_jobs(store_); }
  Result<std::vector<RecordAnswer>> record(const RecordRequest&, Deadline) override {
    return no_jobs(store_);
  }
  Result<AttemptState> touch(const AttemptUpdate&, Deadline) override { return no_jobs(store_); }
  Result<LostBatch> lost(const LostRequest&, Deadline) override { return no_jobs(store_); }
  Result<void> await_work(const std::vector<std::string>&, Deadline) override {
    return no_jobs(store_);
  }
  void wake() noexcept override {}

 private:
  std::string store_;
};

class JoblessOperations final : public JobOperations {
 public:
  explicit JoblessOperations(std::string store) : store_(std::move(store)) {}

  Result<JobStatus> status(std::optional<Timestamp>, Deadline) override { return JobStatus{}; }
  Result<JobPage> jobs(const JobFilter&, Deadline) override { return JobPage{}; }
  Result<std::optional<JobDetail>> job(const DeliveryId&, Deadline) override {
    return std::optional<JobDetail>();
  }
  Result<std::vector<ListedWorker>> workers(bool, std::optional<Timestamp>, Deadline) override {
    return std::vector<ListedWorker>();
  }
  Result<EnqueueAnswer> enqueue(const EnqueueRequest&, const Operator&, std::optional<Timestamp>,
                                Deadline) override {
    return no_jobs(store_);
  }
  Result<JobAnswer> cancel(const DeliveryId&, const Operator&, std::optional<Timestamp>,
                           Deadline) override {
    return no_jobs(store_);
  }
  Result<JobAnswer> reschedule(const DeliveryId&, const DueTime&, const Operator&,
                               std::optional<Timestamp>, Deadline) override {
    return no_jobs(store_);
  }
  Result<bool> queue_pause(const std::string&, const Operator&, std::optional<Timestamp>,
                           Deadline) override {
    return no_jobs(store_);
  }
  Result<bool> queue_resume(const std::string&, const Operator&, std::optional<Timestamp>,
                            Deadline) override {
    return no_jobs(store_);
  }
  Result<bool> queue_limit(const std::string&, const std::optional<RateLimit>&, const Operator&,
                           std::optional<Timestamp>, Deadline) override {
    return no_jobs(store_);
  }

 private:
  std::string store_;
};

class JoblessSchedules final : public ScheduleStore {
 public:
  explicit JoblessSchedules(std::string store) : store_(std::move(store)) {}

  Result<void> check_schema(Deadline) override { return no_jobs(store_); }
  Result<void> register_all(const RegisterRequest&, Deadline) override { return no_jobs(store_); }
  Result<ScheduleStates> states(std::optional<Timestamp>, Deadline) override {
    return ScheduleStates{};
  }
  Result<FireAnswer> fire(const FireRequest&, Deadline) override { return no_jobs(store_); }
  Result<EventId> run(const Schedule&, const Operator&, std::optional<Timestamp>,
                      Deadline) override {
    return no_jobs(store_);
  }
  Result<bool> pause(const std::string&, const Operator&, std::optional<Timestamp>,
                     Deadline) override {
    return no_jobs(store_);
  }
  Result<bool> resume(const std::string&, const Operator&, std::optional<Timestamp>,
                      Deadline) override {
    return no_jobs(store_);
  }
  Result<bool> forget(const std::string&, const Operator&, std::optional<Timestamp>,
                      Deadline) override {
    return no_jobs(store_);
  }

 private:
  std::string store_;
};

}  // namespace

std::unique_ptr<JobStore> make_jobless_store(std::string store) {
  return std::make_unique<JoblessStore>(std::move(store));
}

std::unique_ptr<JobOperations> make_jobless_operations(std::string store) {
  return std::make_unique<JoblessOperations>(std::move(store));
}

std::unique_ptr<ScheduleStore> make_jobless_schedules(std::string store) {
  return std::make_unique<JoblessSchedules>(std::move(store));
}

}  // namespace postrider::registry
