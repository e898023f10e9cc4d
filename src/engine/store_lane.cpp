#include "engine/store_lane.hpp"

#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace postrider::engine {
namespace {

// Nothing has to happen before this; an `ask` and a `stop` end the wait.
constexpr milliseconds idle_turn{1000};

template <class T>
std::vector<T> list_of(T item) {
  std::vector<T> list;
  list.push_back(std::move(item));
  return list;
}

}  // namespace

StoreLane::StoreLane(Store& store, std::function<void()> answered)
    : store_(store), answered_(std::move(answered)), thread_([this] { run(); }) {}

StoreLane::~StoreLane() {
  stop();
}

void StoreLane::ask(Call call) {
  POSTRIDER_ASSERT(!open_);
  open_ = true;
  asked_.push(list_of(std::move(call)));
}

std::optional<core::Input> StoreLane::take_answer() {
  if (!open_) return std::nullopt;
  auto answers = answers_.pop_all(milliseconds(0));
  if (answers.empty()) return std::nullopt;
  open_ = false;
  return std::move(answers.front());
}

void StoreLane::stop() {
  stopping_ = true;
  asked_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void StoreLane::run() {
  while (!stopping_) {
    for (const auto& call : asked_.pop_all(idle_turn)) {
      answers_.push(list_of(call(store_)));
      answered_();
    }
  }
}

}  // namespace postrider::engine
