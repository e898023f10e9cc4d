#include <gtest/gtest.h>

#include <postrider/relay_values.hpp>

namespace postrider {
namespace {

TEST(PassReport, Two_passes_add_up_and_the_last_one_tells_the_state) {
  PassReport total;
  total.confirmed = {{"all", 2}, {"audit", 1}};
  total.sent.resize(3);
  total.claimed = 5;
  total.waiting = 2;
  total.more = true;
  total.foreign.resize(1);
  PassReport later;
  later.confirmed = {{"all", 1}};
  later.sent = {{Seq(9), {}, "all"}};
  later.claimed = 1;
  later.paused_routes = {"audit"};

  total.add(later);

  EXPECT_EQ(total.confirmed.at("all"), 3U);
  EXPECT_EQ(total.confirmed.at("audit"), 1U);
  EXPECT_EQ(total.sent.size(), 4U);
  EXPECT_EQ(total.claimed, 6U);
  EXPECT_EQ(total.waiting, 0U);
  EXPECT_FALSE(total.more);
  EXPECT_TRUE(total.foreign.empty());
  EXPECT_EQ(total.paused_routes.size(), 1U);
}

TEST(PassReport, A_long_drain_keeps_its_first_deliveries_and_errors_and_counts_the_others) {
  PassReport total;
  for (int pass = 0; pass < 20; ++pass) {
    PassReport later;
    later.confirmed = {{"all", 1000}};
    later.sent.assign(1000, {Seq(pass + 1), {}, "all"});
    later.errors.resize(100);
    total.add(later);
  }
  EXPECT_EQ(total.confirmed.at("all"), 20'000U);
  EXPECT_EQ(total.sent.size(), PassReport::most_sent);
  EXPECT_EQ(total.sent.back().seq, Seq(10));
  EXPECT_EQ(total.errors.size(), PassReport::most_errors);
  EXPECT_EQ(total.errors_left_out, 1000U);
}

}  // namespace
}  // namespace postrider
