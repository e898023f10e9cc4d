// A spool with a planted fault: it confirms every message and loses every third one.

#include "spool.hpp"

namespace postrider::testing {
namespace {

class LossyPublisher final : public Publisher {
 public:
  explicit LossyPublisher(std::unique_ptr<Publisher> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] PublisherTraits traits() const override { return inner_->traits(); }

  Result<void> submit(std::span<const Message> messages, Deadline deadline) override {
    std::vector<Message> kept;
    for (const auto& message : messages) {
      if (++count_ % 3 == 0) {
        lost_.push_back({message.attempt, Outcome::confirmed()});
      } else {
        kept.push_back(message);
      }
    }
    return inner_->submit(kept, deadline);
  }

  std::vector<MessageOutcome> poll(Deadline deadline) override {
    return with_the_lost(inner_->poll(lost_.empty() ? deadline : Deadline::after({})));
  }
  void wake() noexcept override { inner_->wake(); }
  std::vector<MessageOutcome> close(Deadline deadline) override {
    return with_the_lost(inner_->close(deadline));
  }

 private:
  std::vector<MessageOutcome> with_the_lost(std::vector<MessageOutcome> outcomes) {
    for (auto& outcome : std::exchange(lost_, {}))
      outcomes.push_back(std::move(outcome));
    return outcomes;
  }

  std::unique_ptr<Publisher> inner_;
  std::vector<MessageOutcome> lost_;
  std::size_t count_ = 0;
};

class FaultyHarness final : public spool::SpoolHarness {
 public:
  std::unique_ptr<Publisher> open_publisher() override {
    return std::make_unique<LossyPublisher>(spool::SpoolHarness::open_publisher());
  }
};

INSTANTIATE_TEST_SUITE_P(Faulty, PublisherConformance,
                         ::testing::Values(PublisherCase{
                             "lossy", [] { return std::make_unique<FaultyHarness>(); }}),
                         case_name);

}  // namespace
}  // namespace postrider::testing
