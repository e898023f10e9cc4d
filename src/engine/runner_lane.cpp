#include "engine/runner_lane.hpp"

namespace postrider::engine {
namespace {

// Nothing has to happen before this; a report and a `stop` end the wait.
constexpr milliseconds longest_poll{60'000};

}  // namespace

RunnerLane::RunnerLane(JobRunner& runner, RunnerReports& reports)
    : runner_(runner), reports_(reports), thread_([this] { run(); }) {}

RunnerLane::~RunnerLane() {
  stop();
}

void RunnerLane::stop() {
  stopping_ = true;
  runner_.wake();
  if (thread_.joinable()) thread_.join();
}

void RunnerLane::run() {
  while (!stopping_)
    reports_.push(runner_.poll(Deadline::after(longest_poll)));
}

}  // namespace postrider::engine
