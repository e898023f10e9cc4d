#include "engine/wait_lane.hpp"

#include <utility>

namespace postrider::engine {
namespace {

// A connection that died without a word is found after so long.
constexpr milliseconds longest_wait{10'000};

}  // namespace

WaitLane::WaitLane(JobStore& store, std::vector<std::string> queues, milliseconds pause,
                   std::function<void()> woken)
    : store_(store),
      queues_(std::move(queues)),
      pause_(pause),
      tell_(std::move(woken)),
      thread_([this] { run(); }) {}

WaitLane::~WaitLane() {
  stop();
}

void WaitLane::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }
  store_.wake();
  if (thread_.joinable()) thread_.join();
}

void WaitLane::run() {
  while (!stopping()) {
    if (!store_.await_work(queues_, Deadline::after(longest_wait))) {
      pause();
      continue;
    }
    woken_ = true;
    tell_();
  }
}

bool WaitLane::stopping() {
  const MutexLock lock(mutex_);
  return stopping_;
}

void WaitLane::pause() {
  const MutexLock lock(mutex_);
  if (!stopping_) stopped_.wait_for(mutex_, pause_);
}

}  // namespace postrider::engine
