#include "publisher/common/transport_headers.hpp"

#include <gtest/gtest.h>

#include "publisher/common/message_limits.hpp"

namespace postrider::publisher {
namespace {

Event order_placed() {
  Event event;
  event.seq = Seq(42);
  event.aggregate = Aggregate{"order", "17"};
  event.type = "order.placed";
  event.headers = {{"tenant", "north"}};
  return event;
}

TEST(TransportHeaders, AddSeqAndAggregateToTheEventsOwn) {
  EXPECT_EQ(transport_headers(order_placed()), (Headers{{"tenant", "north"},
                                                        {"postrider-seq", "42"},
                                                        {"postrider-aggregate-type", "order"},
                                                        {"postrider-aggregate-id", "17"}}));
}

TEST(TransportHeaders, AReservedNameIsOurs) {
  Event event = order_placed();
  event.headers = {{"postrider-seq", "1"}, {"postrider-aggregate-id", "forged"}};
  event.aggregate.reset();
  EXPECT_EQ(transport_headers(event), (Headers{{"postrider-seq", "42"}}));
}

TEST(MessageLimits, NameBothNumbers) {
  EXPECT_TRUE(check_bytes("The payload", 8, 8).ok());
  const auto over = check_bytes("The payload", 9, 8);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, ErrorCode::limit_exceeded);
  EXPECT_EQ(over.error().disposition, Disposition::reject);
  EXPECT_NE(over.error().message.find("The payload has 9 bytes"), std::string::npos);
  EXPECT_NE(over.error().message.find("at most 8"), std::string::npos);
}

}  // namespace
}  // namespace postrider::publisher
