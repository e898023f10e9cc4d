#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/route.hpp>

namespace postrider {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Route sound_route() {
  Route route;
  route.name = "billing";
  route.destination = "file:events.jsonl";
  return route;
}

struct RouteCase {
  const char* description;
  std::function<void(Route&)> change;
};

TEST(RouteValidate, Defaults_with_a_name_and_a_destination_can_be_used) {
  EXPECT_THAT(validate(sound_route()), IsEmpty());
}

TEST(RouteValidate, Values_at_their_bounds_can_be_used) {
  const std::vector<RouteCase> rows = {
      {"shortest name", [](auto& r) { r.name = "a"; }},
      {"longest name", [](auto& r) { r.name.assign(64, 'a'); }},
      {"every kind of character", [](auto& r) { r.name = "az09_-."; }},
      {"a type", [](auto& r) { r.events = {"order.placed"}; }},
      {"a prefix", [](auto& r) { r.events = {"order.*"}; }},
      {"several patterns",
       [](auto& r) {
         r.events = {"order.*", "*", "a"};
       }},
      {"no retry", [](auto& r) { r.retry_delays.clear(); }},
      {"most retries", [](auto& r) { r.retry_delays.assign(64, hours(720)); }},
      {"shortest delay", [](auto& r) { r.retry_delays = {milliseconds(1)}; }},
      {"shortest timeout", [](auto& r) { r.timeout = milliseconds(100); }},
      {"longest timeout", [](auto& r) { r.timeout = hours(1); }},
      {"smallest window", [](auto& r) { r.window = 1; }},
      {"largest window", [](auto& r) { r.window = 10'000; }},
  };
  for (const auto& row : rows) {
    auto route = sound_route();
    row.change(route);
    EXPECT_THAT(validate(route), IsEmpty()) << row.description;
  }
}

TEST(RouteValidate, Every_broken_rule_is_one_fault) {
  const std::vector<RouteCase> rows = {
      {"no name", [](auto& r) { r.name.clear(); }},
      {"a long name", [](auto& r) { r.name.assign(65, 'a'); }},
      {"capitals in the name", [](auto& r) { r.name = "Billing"; }},
      {"a space in the name", [](auto& r) { r.name = "a b"; }},
      {"another script in the name", [](auto& r) { r.name = "\xd1\x91"; }},
      {"no patterns", [](auto& r) { r.events.clear(); }},
      {"an empty pattern", [](auto& r) { r.events = {""}; }},
      {"a star in the middle", [](auto& r) { r.events = {"order.*.placed"}; }},
      {"a star without a dot", [](auto& r) { r.events = {"order*"}; }},
      {"two stars", [](auto& r) { r.events = {"**"}; }},
      {"two stars behind a dot", [](auto& r) { r.events = {"a*b.*"}; }},
      {"a prefix of nothing", [](auto& r) { r.events = {".*"}; }},
      {"no destination", [](auto& r) { r.destination.clear(); }},
      {"too many retries", [](auto& r) { r.retry_delays.assign(65, hours(1)); }},
      {"no delay", [](auto& r) { r.retry_delays = {milliseconds(0)}; }},
      {"a negative delay", [](auto& r) { r.retry_delays = {milliseconds(-1)}; }},
      {"a long delay", [](auto& r) { r.retry_delays = {hours(720) + milliseconds(1)}; }},
      {"a short timeout", [](auto& r) { r.timeout = milliseconds(99); }},
      {"a long timeout", [](auto& r) { r.timeout = hours(1) + milliseconds(1); }},
      {"no window", [](auto& r) { r.window = 0; }},
      {"a large window", [](auto& r) { r.window = 10'001; }},
  };
  for (const auto& row : rows) {
    auto route = sound_route();
    row.change(route);
    const auto faults = validate(route);
    ASSERT_THAT(faults, SizeIs(1)) << row.description;
    EXPECT_TRUE(faults[0].ends_with('.')) << faults[0];
  }
}

TEST(RouteValidate, All_faults_are_told_at_once) {
  Route route;
  route.events = {"a*", "**"};
  route.window = 0;

  EXPECT_THAT(validate(route), ElementsAre(HasSubstr("name"), HasSubstr("a*"), HasSubstr("**"),
                                           HasSubstr("destination"), HasSubstr("window")));
}

struct MatchCase {
  std::vector<std::string> events;
  std::string_view type;
  bool matches;
};

TEST(RouteMatches, A_pattern_is_a_type_a_prefix_or_everything) {
  const std::vector<MatchCase> rows = {
      {{"*"}, "order.placed", true},
      {{"order.placed"}, "order.placed", true},
      {{"order.placed"}, "order.placed.v2", false},
      {{"order.placed"}, "order.place", false},
      {{"order.placed"}, "Order.placed", false},
      {{"order.*"}, "order.placed", true},
      {{"order.*"}, "order.placed.v2", true},
      {{"order.*"}, "order", false},
      {{"order.*"}, "order.", false},
      {{"order.*"}, "orders.placed", false},
      {{"order.*"}, "my.order.placed", false},
      {{"cart.*", "order.placed"}, "order.placed", true},
      {{"cart.*", "order.paid"}, "order.placed", false},
      {{}, "order.placed", false},
  };
  for (const auto& row : rows) {
    auto route = sound_route();
    route.events = row.events;
    EXPECT_EQ(matches(route, row.type), row.matches)
        << row.type << " against " << ::testing::PrintToString(row.events);
  }
}

TEST(OrderingKey, It_follows_from_the_order_of_the_route) {
  Event event;
  event.aggregate = Aggregate{"order", "1"};
  Event lone;

  EXPECT_EQ(ordering_key(Order::aggregate, event), "order/1");
  EXPECT_EQ(ordering_key(Order::aggregate, lone), std::nullopt);
  EXPECT_EQ(ordering_key(Order::global, event), "*");
  EXPECT_EQ(ordering_key(Order::global, lone), "*");
  EXPECT_EQ(ordering_key(Order::none, event), std::nullopt);
}

}  // namespace
}  // namespace postrider
