#include "values/event_template.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

Event order_placed() {
  Event event;
  event.seq = Seq(42);
  event.aggregate = Aggregate{"order", "17"};
  event.type = "order.placed";
  event.headers = {{"tenant", "north"}};
  return event;
}

EventTemplate parsed(std::string_view text) {
  return EventTemplate::parse("The key", text).value();
}

TEST(EventTemplate, ReplacesEveryPlaceholder) {
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
    const auto parsed = EventTemplate::parse("The key", row.text);
    ASSERT_TRUE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed->render(order_placed()).value(), row.key) << row.text;
  }
}

TEST(EventTemplate, NamesTheFaultOfABadTemplateAndItsPlace) {
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
    const auto parsed = EventTemplate::parse("The key", row.text);
    ASSERT_FALSE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed.error().code, ErrorCode::config_invalid);
    EXPECT_EQ(parsed.error().disposition, Disposition::stop);
    EXPECT_TRUE(parsed.error().message.starts_with("The key has ")) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(row.fault), std::string::npos) << parsed.error().message;
  }
}

TEST(EventTemplate, RejectsAnEventThatLacksAPart) {
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
    const auto key = EventTemplate::parse("The key", row.text)->render(event);
    ASSERT_FALSE(key.ok()) << row.text;
    EXPECT_EQ(key.error().disposition, Disposition::reject);
    EXPECT_NE(key.error().message.find(row.lack), std::string::npos) << key.error().message;
  }
}

TEST(EventTemplate, TellsBeforehandWhetherAnEventHasEveryPart) {
  Event lone = order_placed();
  lone.aggregate.reset();

  EXPECT_TRUE(parsed("{aggregate_id}.{header:tenant}").has_parts(order_placed()));
  EXPECT_TRUE(parsed("all").has_parts(lone));
  EXPECT_FALSE(parsed("x{aggregate_id}").has_parts(lone));
  EXPECT_FALSE(parsed("{header:region}").has_parts(order_placed()));
}

}  // namespace
}  // namespace postrider
