#include "publisher/common/routing_key_template.hpp"

#include <gtest/gtest.h>

#include "publisher/common/message_limits.hpp"
#include "publisher/common/transport_headers.hpp"

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

TEST(RoutingKeyTemplate, ReplacesEveryPlaceholder) {
  const struct {
    std::string_view text;
    std::string_view key;
  } rows[] = {
      {"", ""},
      {"plain", "plain"},
      {"{type}", "order.placed"},
      {"x.{aggregate_type}.{aggregate_id}.y", "x.order.17.y"},
      {"{type}{type}", "order.placedorder.placed"},
      {"{header:tenant}/{type}", "north/order.placed"},
  };
  for (const auto& row : rows) {
    const auto parsed = RoutingKeyTemplate::parse(row.text);
    ASSERT_TRUE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed->render(order_placed()).value(), row.key) << row.text;
  }
}

TEST(RoutingKeyTemplate, NamesTheFaultOfABadTemplateAndItsPlace) {
  const struct {
    std::string_view text;
    std::string_view fault;
  } rows[] = {
      {"a.{type", "an unclosed brace at character 3"},
      {"a}.b", "a closing brace without its opening one at character 2"},
      {"{kind}", "an unknown placeholder at character 1"},
      {"{}", "an unknown placeholder at character 1"},
      {"{header:}", "an unknown placeholder at character 1"},
  };
  for (const auto& row : rows) {
    const auto parsed = RoutingKeyTemplate::parse(row.text);
    ASSERT_FALSE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed.error().code, ErrorCode::config_invalid);
    EXPECT_EQ(parsed.error().disposition, Disposition::stop);
    EXPECT_NE(parsed.error().message.find(row.fault), std::string::npos) << parsed.error().message;
  }
}

TEST(RoutingKeyTemplate, RejectsAnEventThatLacksAPart) {
  Event event = order_placed();
  event.aggregate.reset();
  const struct {
    std::string_view text;
    std::string_view lack;
  } rows[] = {
      {"{aggregate_type}", "no aggregate"},
      {"{aggregate_id}", "no aggregate"},
      {"{header:region}", "no header 'region'"},
  };
  for (const auto& row : rows) {
    const auto key = RoutingKeyTemplate::parse(row.text)->render(event);
    ASSERT_FALSE(key.ok()) << row.text;
    EXPECT_EQ(key.error().disposition, Disposition::reject);
    EXPECT_NE(key.error().message.find(row.lack), std::string::npos) << key.error().message;
  }
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
