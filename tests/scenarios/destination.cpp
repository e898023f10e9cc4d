// Faults on top of any real publisher. They count attempts over relay restarts and know events,
// which FlakyPublisher, whose script belongs to one publisher, does not.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "scenarios/world.hpp"

namespace postrider::scenarios {

struct Destination::Faults {
  std::mutex mutex;
  bool down = false;
  std::uint64_t attempts = 0;
  std::map<std::uint64_t, testing::Fault> by_attempt;
  std::map<std::string, testing::Fault> by_event;
  std::map<std::string, std::function<void()>> deadly;

  bool kills(const Message& message) {
    const std::lock_guard lock(mutex);
    const auto found = deadly.find(message.event->id.value().to_string());
    if (found == deadly.end()) return false;
    found->second();
    return true;
  }

  std::optional<testing::Fault> next(const Message& message) {
    const std::lock_guard lock(mutex);
    ++attempts;
    if (const auto found = by_attempt.find(attempts); found != by_attempt.end()) {
      return found->second;
    }
    const auto found = by_event.find(message.event->id.value().to_string());
    return found == by_event.end() ? std::nullopt : std::optional(found->second);
  }
};

class Destination::FaultyPublisher final : public Publisher {
 public:
  FaultyPublisher(std::unique_ptr<Publisher> inner, std::shared_ptr<Faults> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  PublisherTraits traits() const override { return inner_->traits(); }

  Result<void> submit(std::span<const Message> messages, Deadline deadline) override {
    {
      const std::lock_guard lock(faults_->mutex);
      if (faults_->down) {
        return Error{ErrorCode::unavailable, Disposition::retry, "the scenario took it down",
                     "scenario", ""};
      }
    }
    std::vector<Message> forwarded;
    for (const auto& message : messages) {
      if (faults_->kills(message)) throw std::runtime_error("the relay is dead");
      const auto fault = faults_->next(message);
      if (!fault || *fault == testing::Fault::lost_ack) forwarded.push_back(message);
      if (fault) own_.emplace(message.attempt, outcome_of_fault(*fault));
      if (fault && *fault == testing::Fault::lost_ack) hidden_.insert(message.attempt);
    }
    if (forwarded.empty()) return {};
    return inner_->submit(forwarded, deadline);
  }

  // What the inner publisher says, in its order, after the faults of attempts that never left.
  std::vector<MessageOutcome> poll(Deadline deadline) override {
    std::vector<MessageOutcome> outcomes;
    for (auto it = own_.begin(); it != own_.end();) {
      if (hidden_.contains(it->first)) {
        ++it;
        continue;
      }
      outcomes.push_back({it->first, it->second});
      it = own_.erase(it);
    }
    if (!outcomes.empty()) deadline = Deadline::after(milliseconds(0));
    for (auto& outcome : inner_->poll(deadline)) {
      if (hidden_.erase(outcome.attempt) > 0) {
        outcome.outcome = own_.at(outcome.attempt);
        own_.erase(outcome.attempt);
      }
      outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  }

  void wake() noexcept override { inner_->wake(); }
  std::vector<MessageOutcome> close(Deadline deadline) override { return inner_->close(deadline); }

 private:
  static Outcome outcome_of_fault(testing::Fault fault) {
    switch (fault) {
      case testing::Fault::down:
      case testing::Fault::lost_ack:
        return Outcome::unknown("timed_out", "no answer");
      case testing::Fault::refuse:
        return Outcome::refused("nacked", "refused by the scenario");
      case testing::Fault::reject:
        return Outcome::rejected("rejected", "never accepted");
      case testing::Fault::cut:
        return Outcome::lost_connection("cut by the scenario");
    }
    return Outcome::unknown("timed_out", "no answer");
  }

  std::unique_ptr<Publisher> inner_;
  std::shared_ptr<Faults> faults_;
  std::map<AttemptId, Outcome> own_;
  std::set<AttemptId> hidden_;  // forwarded, and their answer is to be replaced
};

Destination::Destination(std::unique_ptr<testing::PublisherHarness> harness)
    : harness_(std::move(harness)), faults_(std::make_shared<Faults>()) {}
Destination::~Destination() = default;

std::unique_ptr<Publisher> Destination::open() {
  return std::make_unique<FaultyPublisher>(harness_->open_publisher(), faults_);
}

void Destination::set_down(bool down) {
  const std::lock_guard lock(faults_->mutex);
  faults_->down = down;
}

void Destination::fail_attempt(std::uint64_t attempt, testing::Fault fault) {
  const std::lock_guard lock(faults_->mutex);
  faults_->by_attempt[attempt] = fault;
}

void Destination::fail_event(const std::string& event_id, testing::Fault fault) {
  const std::lock_guard lock(faults_->mutex);
  faults_->by_event[event_id] = fault;
}

void Destination::make_deadly(const std::string& event_id, std::function<void()> die) {
  const std::lock_guard lock(faults_->mutex);
  faults_->deadly[event_id] = std::move(die);
}

void Destination::heal() {
  const std::lock_guard lock(faults_->mutex);
  faults_->by_attempt.clear();
  faults_->by_event.clear();
  faults_->deadly.clear();
}

std::vector<std::string> Destination::received_ids() {
  std::vector<std::string> ids;
  for (auto& received : harness_->received())
    ids.push_back(std::move(received.event_id));
  return ids;
}

}  // namespace postrider::scenarios
