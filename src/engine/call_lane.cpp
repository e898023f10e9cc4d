#include "engine/call_lane.hpp"

#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace postrider::engine {
namespace {

// Nothing has to happen before this; an `ask` and a `stop` end the wait.
constexpr milliseconds longest_idle{60'000};

template <class T>
std::vector<T> list_of(T item) {
  std::vector<T> list;
  list.push_back(std::move(item));
  return list;
}

}  // namespace

CallLane::CallLane(std::function<void()> answered)
    : answered_(std::move(answered)), thread_([this] { run(); }) {}

CallLane::~CallLane() {
  stop();
}

void CallLane::ask(Call call) {
  POSTRIDER_ASSERT(!open_);
  open_ = true;
  asked_.push(list_of(std::move(call)));
}

std::optional<core::Input> CallLane::take_answer() {
  if (!open_) return std::nullopt;
  auto answers = answers_.pop_all(milliseconds(0));
  if (answers.empty()) return std::nullopt;
  open_ = false;
  return std::move(answers.front());
}

void CallLane::stop() {
  stopping_ = true;
  asked_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void CallLane::run() {
  while (!stopping_) {
    for (const auto& call : asked_.pop_all(longest_idle)) {
      answers_.push(list_of(call()));
      answered_();
    }
  }
}

}  // namespace postrider::engine
