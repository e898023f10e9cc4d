#include <deque>
#include <optional>
#include <utility>

#include <postrider/testing/memory_publisher.hpp>

#include "base/assert.hpp"

namespace postrider::testing {
namespace {

constexpr std::string_view scripted = "scripted";
/// The same for both faults that a relay cannot tell apart.
constexpr std::string_view silence = "timed_out";

/// What becomes of an attempt whatever `inner` says; none when its outcome is passed on.
std::optional<Outcome> scripted_outcome(std::optional<Fault> fault) {
  if (!fault) return std::nullopt;
  switch (*fault) {
    case Fault::down:
    case Fault::lost_ack:
      return Outcome::unknown(silence, "no answer came in time");
    case Fault::refuse:
      return Outcome::refused(scripted, "refused by the fault script");
    case Fault::reject:
      return Outcome::rejected(scripted, "rejected by the fault script");
    case Fault::cut:
      return Outcome::lost_connection("cut by the fault script");
  }
  return std::nullopt;
}

bool is_forwarded(std::optional<Fault> fault) {
  return !fault || *fault == Fault::lost_ack;
}

class FlakyPublisher final : public Publisher {
 public:
  FlakyPublisher(std::unique_ptr<Publisher> inner, FaultScript script)
      : inner_(std::move(inner)), script_(std::move(script)) {}

  PublisherTraits traits() const override { return inner_->traits(); }

  Result<void> submit(std::span<const Message> messages, Deadline deadline) override {
    std::vector<Message> forwarded;
    std::vector<Entry> entries;
    for (const auto& message : messages) {
      const auto fault = next_fault();
      entries.push_back({message.attempt, scripted_outcome(fault), !is_forwarded(fault)});
      if (is_forwarded(fault)) forwarded.push_back(message);
    }
    if (!forwarded.empty()) {
      if (auto submitted = inner_->submit(forwarded, deadline); !submitted) return submitted;
    }
    in_flight_.insert(in_flight_.end(), std::make_move_iterator(entries.begin()),
                      std::make_move_iterator(entries.end()));
    return {};
  }

  std::vector<MessageOutcome> poll(Deadline deadline) override {
    while (true) {
      // What is answered already goes out at once, together with what `inner` has ready.
      const bool waits = in_flight_.empty() || !in_flight_.front().answered;
      const auto outcomes = inner_->poll(waits ? deadline : Deadline::after(milliseconds::zero()));
      record(outcomes);
      auto answered = take_answered();
      if (!answered.empty() || outcomes.empty()) return answered;
    }
  }

  void wake() noexcept override { inner_->wake(); }

  std::vector<MessageOutcome> close(Deadline deadline) override {
    record(inner_->close(deadline));
    auto answered = take_answered();
    POSTRIDER_ASSERT(in_flight_.empty());  // `inner` owed an outcome for each
    return answered;
  }

 private:
  struct Entry {
    AttemptId attempt;
    std::optional<Outcome> outcome;  ///< scripted, or that of `inner` once it is known
    bool answered = false;
  };

  std::optional<Fault> next_fault() {
    const auto fault = script_.find(++attempts_);
    return fault == script_.end() ? std::nullopt : std::optional(fault->second);
  }

  void record(const std::vector<MessageOutcome>& outcomes) {
    for (const auto& [attempt, outcome] : outcomes) {
      for (auto& entry : in_flight_) {
        if (entry.attempt != attempt) continue;
        if (!entry.outcome) entry.outcome = outcome;
        entry.answered = true;
        break;
      }
    }
  }

  /// Outcomes leave in the order of submission, so what is answered waits for what was before it.
  std::vector<MessageOutcome> take_answered() {
    std::vector<MessageOutcome> taken;
    while (!in_flight_.empty() && in_flight_.front().answered) {
      taken.push_back({in_flight_.front().attempt, std::move(*in_flight_.front().outcome)});
      in_flight_.pop_front();
    }
    return taken;
  }

  std::unique_ptr<Publisher> inner_;
  FaultScript script_;
  std::uint64_t attempts_ = 0;
  std::deque<Entry> in_flight_;
};

}  // namespace

std::unique_ptr<Publisher> make_flaky_publisher(std::unique_ptr<Publisher> inner,
                                                FaultScript script) {
  return std::make_unique<FlakyPublisher>(std::move(inner), std::move(script));
}

}  // namespace postrider::testing
