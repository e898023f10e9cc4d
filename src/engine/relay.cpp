#include <postrider/relay.hpp>

#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "engine/keeper_engine.hpp"
#include "engine/relay_engine.hpp"
#include "engine/schedule_engine.hpp"

namespace postrider {
namespace {

// Takes the publishers of job routes: the relay itself sends nothing on these.
std::vector<RouteBinding> take_brokers(std::vector<RouteBinding>& bindings) {
  std::vector<RouteBinding> brokers;
  for (auto& binding : bindings) {
    if (binding.route.job && binding.publisher) {
      brokers.push_back({binding.route, std::move(binding.publisher)});
    }
  }
  return brokers;
}

}  // namespace

/// The relay itself and, beside it, the keeper of jobs and the schedules.
class Relay::Impl {
 public:
  Impl(std::unique_ptr<Store> store, std::vector<RouteBinding> routes, const RelayOptions& options,
       const Clock& clock, Random& random, Observer& observer, std::unique_ptr<Purger> purger,
       std::unique_ptr<JobStore> jobs, RelaySchedules schedules)
      : observer_(observer) {
    auto brokers = take_brokers(routes);
    engine_.emplace(std::move(store), std::move(routes), options, clock, random, observer_,
                    std::move(purger));
    // `random` is for one thread, so each other one has its own.
    if (jobs) {
      keeper_random_ = seeded_random(random.next());
      keeper_.emplace(std::move(jobs), std::move(brokers), options, clock, *keeper_random_,
                      observer_);
    }
    if (schedules.store && !schedules.schedules.empty()) {
      schedule_random_ = seeded_random(random.next());
      schedules_.emplace(std::move(schedules.store), std::move(schedules.schedules), options, clock,
                         *schedule_random_, observer_);
    }
  }

  // What is due by a schedule is an event, and goes out with this very pass.
  Result<PassReport> run_once() {
    if (schedules_) schedules_->run_once();
    auto report = engine_->run_once();
    if (auto kept = keep_once(report.ok()); !kept) return std::move(kept).error();
    return report;
  }

  Result<DrainReport> drain(std::optional<std::size_t> max_passes) {
    if (schedules_) schedules_->run_once();
    auto report = engine_->drain(max_passes);
    if (auto kept = keep_once(report.ok()); !kept) return std::move(kept).error();
    return report;
  }

  Result<LoopReport> run() {
    if (!schedules_) return run_with_keeper();
    std::thread scheduling([this] { schedules_->run(); });
    auto report = run_with_keeper();
    schedules_->request_stop();
    scheduling.join();
    return report;
  }

  void request_stop() noexcept {
    if (schedules_) schedules_->request_stop();
    engine_->request_stop();
    if (keeper_) keeper_->request_stop();
  }

  Result<void> close() { return engine_->close(); }

 private:
  /// Relay, keeper and schedules tell what happens from threads of their own; an observer hears one
  /// at a time.
  class SerialObserver final : public Observer {
   public:
    explicit SerialObserver(Observer& inner) : inner_(inner) {}
    void notice(const Notice& notice) override {
      const MutexLock lock(mutex_);
      inner_.notice(notice);
    }

   private:
    Mutex mutex_;
    Observer& inner_;
  };

  // Either ends the other: a relay that cannot keep its jobs is not well.
  Result<LoopReport> run_with_keeper() {
    if (!keeper_) return engine_->run();
    Result<LoopReport> kept = LoopReport{};
    std::thread keeping([&] {
      kept = keeper_->run();
      if (!kept) engine_->request_stop();
    });
    auto report = engine_->run();
    keeper_->request_stop();
    keeping.join();
    if (!report) return report;
    if (!kept) return std::move(kept).error();
    return LoopReport{report->clean && kept->clean, report->left_in_flight + kept->left_in_flight};
  }

  Result<void> keep_once(bool relay_is_well) {
    if (!keeper_ || !relay_is_well) return {};
    return keeper_->run_once();
  }

  SerialObserver observer_;
  std::unique_ptr<Random> keeper_random_;
  std::unique_ptr<Random> schedule_random_;
  std::optional<engine::RelayEngine> engine_;
  std::optional<engine::KeeperEngine> keeper_;
  std::optional<engine::ScheduleEngine> schedules_;
};

Relay::Relay(std::unique_ptr<Store> store, std::vector<RouteBinding> routes, RelayOptions options,
             const Clock& clock, Random& random, Observer& observer, std::unique_ptr<Purger> purger,
             std::unique_ptr<JobStore> jobs, RelaySchedules schedules)
    : impl_(std::make_unique<Impl>(std::move(store), std::move(routes), options, clock, random,
                                   observer, std::move(purger), std::move(jobs),
                                   std::move(schedules))) {}

Relay::~Relay() = default;

Result<PassReport> Relay::run_once() {
  return impl_->run_once();
}

Result<DrainReport> Relay::drain(std::optional<std::size_t> max_passes) {
  return impl_->drain(max_passes);
}

Result<LoopReport> Relay::run() {
  return impl_->run();
}

void Relay::request_stop() noexcept {
  impl_->request_stop();
}

Result<void> Relay::close() {
  return impl_->close();
}

}  // namespace postrider
