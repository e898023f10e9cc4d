#include "engine/publisher_lane.hpp"

#include <exception>
#include <utility>

namespace postrider::engine {
namespace {

// While nothing is in flight the publisher is polled so often, for its heartbeats.
constexpr milliseconds idle_turn{500};
constexpr milliseconds busy_turn{500};
constexpr milliseconds close_patience{1000};

// The one place where something thrown by foreign code becomes an error. Its text may hold
// anything, so only a standard exception's type of failure is told, not what it says.
template <class Function>
std::optional<Error> caught(Function&& function) {
  try {
    function();
    return std::nullopt;
  } catch (const std::exception&) {
    return Error{
        ErrorCode::internal, Disposition::stop,
        "a publisher threw an exception. A publisher reports failures as outcomes: mend it.",
        "engine", ""};
  } catch (...) {
    return Error{ErrorCode::internal, Disposition::stop,
                 "a publisher threw something that is no std::exception. Mend it.", "engine", ""};
  }
}

}  // namespace

PublisherLane::PublisherLane(std::size_t route, std::unique_ptr<Publisher> publisher,
                             std::size_t window, milliseconds patience, LaneReports& reports)
    : route_(route),
      publisher_(std::move(publisher)),
      patience_(patience),
      reports_(reports),
      inbox_(window),
      thread_([this] { run(); }) {}

PublisherLane::~PublisherLane() {
  stop();
}

void PublisherLane::send(std::vector<Message> messages) {
  inbox_.push(std::move(messages));
  publisher_->wake();
}

void PublisherLane::stop() {
  stopping_ = true;
  inbox_.interrupt();
  publisher_->wake();
  if (thread_.joinable()) thread_.join();
}

// After a failure the lane sends nothing any more and says so to whoever goes on using it.
void PublisherLane::run() {
  std::optional<Error> failure;
  while (!stopping_) {
    if (failure) {
      if (!inbox_.pop_all(idle_turn).empty()) fail(*failure);
      continue;
    }
    failure = caught([this] { turn(); });
    if (failure) fail(*failure);
  }
  (void)caught([this] { (void)publisher_->close(Deadline::after(close_patience)); });
}

void PublisherLane::turn() {
  const auto messages = inbox_.pop_all(in_flight_ == 0 ? idle_turn : milliseconds(0));
  if (!messages.empty()) submit(messages);
  const auto patience = in_flight_ == 0 ? milliseconds(0) : busy_turn;
  auto outcomes = publisher_->poll(Deadline::after(patience));
  in_flight_ -= outcomes.size();
  report(std::move(outcomes));
}

void PublisherLane::submit(const std::vector<Message>& messages) {
  const auto submitted = publisher_->submit(messages, Deadline::after(patience_));
  if (submitted) {
    in_flight_ += messages.size();
    return;
  }
  std::vector<MessageOutcome> outcomes;
  outcomes.reserve(messages.size());
  for (const auto& message : messages) {
    outcomes.push_back({message.attempt, outcome_of(submitted.error())});
  }
  report(std::move(outcomes));
}

void PublisherLane::report(std::vector<MessageOutcome> outcomes) {
  if (outcomes.empty()) return;
  std::vector<LaneReport> reports;
  reports.push_back({route_, std::move(outcomes), std::nullopt});
  reports_.push(std::move(reports));
}

void PublisherLane::fail(Error error) {
  std::vector<LaneReport> reports;
  reports.push_back({route_, {}, std::move(error)});
  reports_.push(std::move(reports));
}

}  // namespace postrider::engine
