#include <utility>

#include <postrider/testing/memory_publisher.hpp>

#include "base/bounded_queue.hpp"
#include "base/mutex.hpp"

namespace postrider::testing {

struct Journal::State {
  mutable Mutex mutex;
  bool down POSTRIDER_GUARDED_BY(mutex) = false;
  std::vector<std::shared_ptr<const Event>> accepted POSTRIDER_GUARDED_BY(mutex);
};

Journal::Journal() : state_(std::make_unique<State>()) {}
Journal::~Journal() = default;

void Journal::set_down(bool down) {
  const MutexLock lock(state_->mutex);
  state_->down = down;
}

bool Journal::down() const {
  const MutexLock lock(state_->mutex);
  return state_->down;
}

void Journal::accept(std::shared_ptr<const Event> event) {
  const MutexLock lock(state_->mutex);
  state_->accepted.push_back(std::move(event));
}

std::vector<std::shared_ptr<const Event>> Journal::accepted() const {
  const MutexLock lock(state_->mutex);
  return state_->accepted;
}

void Journal::clear() {
  const MutexLock lock(state_->mutex);
  state_->accepted.clear();
}

namespace {

class MemoryPublisher final : public Publisher {
 public:
  MemoryPublisher(std::shared_ptr<Journal> journal, std::size_t window)
      : journal_(std::move(journal)), window_(window), outcomes_(window) {}

  PublisherTraits traits() const override {
    PublisherTraits traits;
    traits.name = "memory";
    traits.window = window_;
    traits.durable = false;
    return traits;
  }

  Result<void> submit(std::span<const Message> messages, Deadline /*deadline*/) override {
    std::vector<MessageOutcome> outcomes;
    outcomes.reserve(messages.size());
    for (const auto& message : messages)
      outcomes.push_back({message.attempt, attempt(message)});
    outcomes_.push(std::move(outcomes));
    return {};
  }

  std::vector<MessageOutcome> poll(Deadline deadline) override {
    return outcomes_.pop_all(deadline.remaining());
  }

  void wake() noexcept override { outcomes_.interrupt(); }

  /// Nothing is ever unanswered here: what nobody has polled yet comes out as it is.
  std::vector<MessageOutcome> close(Deadline /*deadline*/) override {
    return outcomes_.pop_all(milliseconds::zero());
  }

 private:
  Outcome attempt(const Message& message) {
    if (message.event->payload.size() > EventLimits::most_payload_bytes) {
      return Outcome::rejected("payload_too_large",
                               "the payload is over the limit of the destination");
    }
    if (journal_->down()) return Outcome::unavailable("down", "the destination is down");
    journal_->accept(message.event);
    return Outcome::confirmed();
  }

  std::shared_ptr<Journal> journal_;
  std::size_t window_;
  BoundedQueue<MessageOutcome> outcomes_;
};

}  // namespace

std::unique_ptr<Publisher> make_memory_publisher(std::shared_ptr<Journal> journal,
                                                 std::size_t window) {
  return std::make_unique<MemoryPublisher>(std::move(journal), window);
}

}  // namespace postrider::testing
