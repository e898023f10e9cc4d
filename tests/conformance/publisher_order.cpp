// Messages leave in the order given.

#include <algorithm>

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAreArray;

TEST_P(PublisherConformance, Messages_of_one_submit_arrive_in_its_order) {
  const auto events = sendables(std::min<std::size_t>(publisher_->traits().window, 500));
  Sender sender(*publisher_);

  sender.submit(events);
  sender.await_all();

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of(events)));
}

TEST_P(PublisherConformance, Messages_of_several_submits_arrive_in_their_order) {
  const auto events = sendables(std::min<std::size_t>(publisher_->traits().window, 100));
  Sender sender(*publisher_);

  for (const auto& event : events)
    sender.submit({event});
  sender.await_all();

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of(events)));
}

TEST_P(PublisherConformance, Order_holds_over_awaited_windows) {
  const auto events = sendables(2 * std::min<std::size_t>(publisher_->traits().window, 500) + 1);

  expect_all_confirmed(Sender(*publisher_).send(events), events.size());

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of(events)));
}

TEST_P(PublisherConformance, Order_holds_over_close_and_reconnect) {
  const auto events = sendables(4);
  Sender sender(*publisher_);
  sender.send({events[0], events[1]});
  sender.close();

  sender.send({events[2], events[3]});

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of(events)));
}

TEST_P(PublisherConformance, Small_messages_do_not_overtake_large_ones) {
  const std::vector<EventPtr> events = {sendable(std::string(1U << 20U, 'x')), sendable("1"),
                                        sendable(std::string(300'000, 'y')), sendable("2")};

  expect_all_confirmed(Sender(*publisher_).send(events), events.size());

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of(events)));
}

}  // namespace
}  // namespace postrider::testing
