#include "engine/purge_lane.hpp"

#include <utility>
#include <vector>

namespace postrider::engine {
namespace {

// Only bounds a wait that `stop` and `send` end sooner.
constexpr milliseconds longest_wait{60'000};

}  // namespace

PurgeLane::PurgeLane(std::unique_ptr<Purger> purger, milliseconds patience,
                     LaneReports& coordinator)
    : purger_(std::move(purger)),
      patience_(patience),
      coordinator_(coordinator),
      thread_([this] { run(); }) {}

PurgeLane::~PurgeLane() {
  stop();
}

void PurgeLane::send(PurgeRequest request) {
  std::vector<PurgeRequest> requests;
  requests.push_back(std::move(request));
  requests_.push(std::move(requests));
}

std::optional<Result<PurgeSlice>> PurgeLane::answer() {
  auto answers = answers_.pop_all(milliseconds(0));
  if (answers.empty()) return std::nullopt;
  return std::move(answers.front());
}

void PurgeLane::stop() {
  stopping_ = true;
  requests_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void PurgeLane::run() {
  while (!stopping_) {
    for (const auto& request : requests_.pop_all(longest_wait)) {
      std::vector<Result<PurgeSlice>> answers;
      answers.push_back(purger_->purge(request, std::nullopt, Deadline::after(patience_)));
      answers_.push(std::move(answers));
      coordinator_.interrupt();
    }
  }
}

}  // namespace postrider::engine
