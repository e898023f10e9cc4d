// What arrives is what was sent.

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(PublisherConformance, A_confirmed_message_has_arrived) {
  const auto event = sendable();

  expect_all_confirmed(Sender(*publisher_).send({event}), 1);

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of({event})));
}

TEST_P(PublisherConformance, A_publisher_sends_nothing_by_itself) {
  EXPECT_THAT(harness_->received(), IsEmpty());
}

TEST_P(PublisherConformance, A_batch_arrives_whole) {
  const auto events = sendables(20);

  expect_all_confirmed(Sender(*publisher_).send(events), events.size());

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of(events)));
}

TEST_P(PublisherConformance, Identity_type_and_content_type_arrive) {
  auto event = *sendable("<order/>");
  event.type = "order.placed.v2";
  event.content_type = "application/xml; charset=utf-8";

  expect_all_confirmed(Sender(*publisher_).send({std::make_shared<const Event>(event)}), 1);

  const auto received = harness_->received();
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].event_id, event.id.value().to_string());
  EXPECT_EQ(received[0].type, "order.placed.v2");
  EXPECT_EQ(received[0].content_type, "application/xml; charset=utf-8");
}

TEST_P(PublisherConformance, Payloads_arrive_byte_for_byte) {
  const auto payloads = difficult_payloads();
  std::vector<EventPtr> events;
  for (const auto& payload : payloads)
    events.push_back(sendable(payload));

  expect_all_confirmed(Sender(*publisher_).send(events), events.size());

  const auto received = harness_->received();
  ASSERT_THAT(received, SizeIs(payloads.size()));
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    EXPECT_TRUE(received[i].payload == payloads[i]) << "payload number " << i;
  }
}

TEST_P(PublisherConformance, Headers_arrive) {
  if (!publisher_->traits().keeps_headers) GTEST_SKIP() << "this destination has no headers";
  auto event = *sendable();
  event.headers = {{"trace", "00-ab-01"},
                   {"\xd1\x8f", "\"quoted\" \\ \xf0\x9f\x93\xae"},
                   {"empty", ""},
                   {"number", "1234567890123456789"}};

  expect_all_confirmed(Sender(*publisher_).send({std::make_shared<const Event>(event)}), 1);

  const auto received = harness_->received();
  ASSERT_THAT(received, SizeIs(1));
  for (const auto& [name, value] : event.headers) {
    const auto header = received[0].headers.find(name);
    ASSERT_NE(header, received[0].headers.end()) << name;
    EXPECT_EQ(header->second, value) << name;
  }
}

TEST_P(PublisherConformance, An_event_without_aggregate_arrives) {
  auto event = *sendable();
  event.aggregate.reset();

  expect_all_confirmed(Sender(*publisher_).send({std::make_shared<const Event>(event)}), 1);

  EXPECT_THAT(harness_->received(), SizeIs(1));
}

TEST_P(PublisherConformance, The_same_event_arrives_as_often_as_it_is_sent) {
  const auto event = sendable();

  expect_all_confirmed(Sender(*publisher_).send({event, event}), 2);
  expect_all_confirmed(Sender(*publisher_).send({event}), 1);

  EXPECT_THAT(ids_of(harness_->received()), ElementsAreArray(ids_of({event, event, event})));
}

}  // namespace
}  // namespace postrider::testing
