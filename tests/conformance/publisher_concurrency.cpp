// `wake` from any thread at any time; several publishers on one destination.

#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::UnorderedElementsAreArray;

constexpr std::chrono::seconds far_away{60};
/// A poll that returns later than this was not woken.
constexpr std::chrono::seconds early{30};

TEST_P(PublisherConformance, A_wake_before_a_poll_makes_it_return_early) {
  const auto start = std::chrono::steady_clock::now();
  publisher_->wake();

  EXPECT_EQ(Sender(*publisher_).poll(Deadline::after(far_away)), 0U);

  EXPECT_LT(std::chrono::steady_clock::now() - start, early);
}

TEST_P(PublisherConformance, A_wake_from_another_thread_ends_a_poll) {
  const auto start = std::chrono::steady_clock::now();
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);

  std::jthread waker([&] { publisher_->wake(); });
  EXPECT_EQ(sender.poll(Deadline::after(far_away)), 0U);

  EXPECT_LT(std::chrono::steady_clock::now() - start, early);
}

TEST_P(PublisherConformance, A_wake_ends_one_poll_and_not_the_next) {
  Sender sender(*publisher_);
  publisher_->wake();
  sender.poll(Deadline::after(far_away));

  const auto start = std::chrono::steady_clock::now();
  sender.poll(Deadline::after(milliseconds(100)));

  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(80));
}

TEST_P(PublisherConformance, A_wake_after_close_is_harmless) {
  Sender sender(*publisher_);
  sender.close();
  publisher_->wake();

  expect_all_confirmed(sender.send({sendable()}), 1);
}

TEST_P(PublisherConformance, Wakes_from_several_threads_lose_no_outcome) {
  std::atomic<bool> done = false;
  std::vector<std::jthread> wakers;
  for (int i = 0; i < 3; ++i) {
    wakers.emplace_back([&] {
      while (!done) {
        publisher_->wake();
        std::this_thread::yield();
      }
    });
  }
  const auto events = sendables(500);

  const auto outcomes = Sender(*publisher_).send(events);
  done = true;
  wakers.clear();

  expect_all_confirmed(outcomes, events.size());
  EXPECT_EQ(ids_of(harness_->received()), ids_of(events));
}

TEST_P(PublisherConformance, Two_publishers_share_a_destination) {
  const auto other = harness_->open_publisher();
  const auto events = sendables(40);
  const std::vector<EventPtr> first(events.begin(), events.begin() + 20);
  const std::vector<EventPtr> second(events.begin() + 20, events.end());

  {
    std::jthread sending([&] { expect_all_confirmed(Sender(*other).send(second), second.size()); });
    expect_all_confirmed(Sender(*publisher_).send(first), first.size());
  }

  EXPECT_THAT(ids_of(harness_->received()), UnorderedElementsAreArray(ids_of(events)));
}

}  // namespace
}  // namespace postrider::testing
