// Sizes: windows, payloads, headers, and many messages in a row.

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST_P(PublisherConformance, The_traits_are_true) {
  const auto traits = publisher_->traits();

  EXPECT_NE(traits.name, "");
  EXPECT_GE(traits.window, 1U);
  EXPECT_GE(traits.most_payload_bytes, EventLimits{}.payload_bytes)
      << "less than what an event may weigh by default";
  EXPECT_LE(traits.most_payload_bytes, EventLimits::most_payload_bytes);
}

TEST_P(PublisherConformance, A_full_window_may_be_in_flight) {
  const auto events = sendables(publisher_->traits().window);
  Sender sender(*publisher_);

  for (int round = 0; round < 2; ++round) {
    sender.submit(events);
    sender.await_all();
  }

  EXPECT_EQ(harness_->received().size(), 2 * events.size());
}

TEST_P(PublisherConformance, A_payload_that_is_too_large_is_rejected_and_the_others_go) {
  const auto before = sendable("before");
  const auto large = sendable(std::string(publisher_->traits().most_payload_bytes + 1, 'x'));
  const auto after = sendable("after");

  const auto outcomes = Sender(*publisher_).send({before, large, after});

  EXPECT_THAT(kinds_of(outcomes),
              ElementsAre(OutcomeKind::confirmed, OutcomeKind::rejected, OutcomeKind::confirmed));
  EXPECT_NE(outcomes.at(1).code, "");
  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of({before, after})));
}

TEST_P(PublisherConformance, The_most_that_headers_may_weigh_harms_no_other_message) {
  const EventLimits limits;
  auto heavy = *sendable();
  for (std::size_t i = 0; i < limits.headers; ++i) {
    const auto name = "header-" + std::to_string(i);
    heavy.headers[name] = std::string(limits.header_bytes - name.size(), 'x');
  }
  const auto after = sendable("after");

  const auto outcomes = Sender(*publisher_).send({std::make_shared<const Event>(heavy), after});

  EXPECT_TRUE(outcomes.at(0).kind == OutcomeKind::confirmed ||
              outcomes.at(0).kind == OutcomeKind::rejected)
      << to_string(outcomes.at(0).kind) << " " << outcomes.at(0).detail;
  EXPECT_EQ(to_string(outcomes.at(1).kind), "confirmed");
  EXPECT_EQ(ids_of(harness_->received()).back(), after->id.value().to_string());
}

TEST_P(PublisherConformance, Names_as_long_as_they_may_be_arrive) {
  const EventLimits limits;
  auto event = *sendable();
  event.type = std::string(limits.name_bytes, 't');
  event.content_type = std::string(limits.name_bytes, 'c');
  event.aggregate =
      Aggregate{std::string(limits.name_bytes, 'a'), std::string(limits.name_bytes, 'i')};
  event.headers = {{std::string(limits.name_bytes, 'h'), "value"}};

  expect_all_confirmed(Sender(*publisher_).send({std::make_shared<const Event>(event)}), 1);

  const auto received = harness_->received();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].type, event.type);
  EXPECT_EQ(received[0].content_type, event.content_type);
}

TEST_P(PublisherConformance, Ten_thousand_messages_in_a_row_are_all_confirmed_in_order) {
  const auto events = sendables(10'000);

  expect_all_confirmed(Sender(*publisher_).send(events), events.size());

  EXPECT_EQ(ids_of(harness_->received()), ids_of(events));
}

}  // namespace
}  // namespace postrider::testing
