#include <postrider/worker.hpp>

#include <utility>

#include "engine/worker_engine.hpp"

namespace postrider {

class Worker::Impl : public engine::WorkerEngine {
 public:
  using WorkerEngine::WorkerEngine;
};

Worker::Worker(const JobStoreFactory& stores, const JobRunnerFactory& runner, WorkerOptions options,
               const Clock& clock, Random& random, Observer& observer,
               const TaskSourceFactory& source)
    : impl_(std::make_unique<Impl>(stores, runner, std::move(options), clock, random, observer,
                                   source)) {}

Worker::~Worker() = default;

Result<WorkerReport> Worker::run() {
  return impl_->run();
}

void Worker::request_stop() noexcept {
  impl_->request_stop();
}

void Worker::close() {
  impl_->close();
}

}  // namespace postrider
