#include "core/circuit.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

using Change = Circuit::Change;

class CircuitTest : public ::testing::Test {
 protected:
  static constexpr std::size_t window = 10;

  [[nodiscard]] std::size_t allowance(std::size_t in_flight = 0) const {
    return circuit_.allowance(now_, in_flight, window);
  }
  void advance(milliseconds by) { now_ += by; }
  void advance_to_probe() { now_ = circuit_.probe_at(); }

  std::unique_ptr<Random> random_ = seeded_random(7);
  Circuit circuit_{CircuitPolicy{milliseconds(100), milliseconds(1000)}, *random_};
  Instant now_{};
};

TEST_F(CircuitTest, A_closed_circuit_allows_the_window_less_what_is_in_flight) {
  EXPECT_EQ(allowance(0), 10U);
  EXPECT_EQ(allowance(7), 3U);
  EXPECT_EQ(allowance(10), 0U);
  EXPECT_EQ(allowance(12), 0U);
}

TEST_F(CircuitTest, An_outage_pauses_and_one_probe_goes_out_when_its_time_has_come) {
  EXPECT_EQ(circuit_.on_outage(now_, "down"), Change::paused);
  EXPECT_TRUE(circuit_.paused());
  EXPECT_EQ(circuit_.reason(), "down");
  EXPECT_EQ(allowance(), 0U);
  advance_to_probe();
  EXPECT_EQ(allowance(), 1U);
  circuit_.on_submitted();
  EXPECT_EQ(allowance(), 0U);
}

TEST_F(CircuitTest, No_probe_goes_out_while_something_is_still_in_flight) {
  (void)circuit_.on_outage(now_, "down");
  advance_to_probe();
  EXPECT_EQ(allowance(3), 0U);
}

TEST_F(CircuitTest, A_confirmed_probe_resumes) {
  (void)circuit_.on_outage(now_, "down");
  advance_to_probe();
  circuit_.on_submitted();
  EXPECT_EQ(circuit_.on_confirmed(), Change::resumed);
  EXPECT_FALSE(circuit_.paused());
  EXPECT_EQ(allowance(), 10U);
}

TEST_F(CircuitTest, A_probe_that_is_refused_shows_a_destination_that_lives) {
  (void)circuit_.on_outage(now_, "down");
  advance_to_probe();
  circuit_.on_submitted();
  EXPECT_EQ(circuit_.on_failed(now_), Change::resumed);
}

TEST_F(CircuitTest, Waits_double_with_jitter_between_half_and_all_of_it_up_to_the_most) {
  for (const auto whole : {100, 200, 400, 800, 1000, 1000}) {
    (void)circuit_.on_outage(now_, "down");
    const auto wait = circuit_.probe_at() - now_;
    EXPECT_GE(wait, milliseconds(whole / 2));
    EXPECT_LE(wait, milliseconds(whole));
    advance_to_probe();
    circuit_.on_submitted();
  }
}

TEST_F(CircuitTest, One_outage_told_by_every_message_in_flight_doubles_the_wait_once) {
  for (int i = 0; i < 1000; ++i)
    (void)circuit_.on_outage(now_, "down");
  EXPECT_LE(circuit_.probe_at() - now_, milliseconds(100));
}

TEST_F(CircuitTest, A_success_resets_the_wait) {
  for (int i = 0; i < 5; ++i) {
    (void)circuit_.on_outage(now_, "down");
    advance_to_probe();
    circuit_.on_submitted();
  }
  (void)circuit_.on_confirmed();
  (void)circuit_.on_outage(now_, "down");
  EXPECT_LE(circuit_.probe_at() - now_, milliseconds(100));
}

TEST_F(CircuitTest, Throttling_waits_as_long_as_asked_and_the_longest_wish_counts) {
  EXPECT_EQ(circuit_.on_throttled(now_, milliseconds(700)), Change::paused);
  EXPECT_EQ(circuit_.on_throttled(now_, milliseconds(200)), Change::none);
  EXPECT_EQ(circuit_.probe_at() - now_, milliseconds(700));
}

TEST_F(CircuitTest, A_jump_of_failures_makes_the_route_suspect_before_thousands_fail) {
  std::size_t failures = 0;
  while (!circuit_.paused() && failures < 1000) {
    ++failures;
    (void)circuit_.on_failed(now_);
  }
  EXPECT_EQ(failures, Circuit::remembered_answers);
  EXPECT_EQ(circuit_.reason(), "route_suspect");
}

TEST_F(CircuitTest, Single_failures_among_successes_do_not_make_a_route_suspect) {
  for (int i = 0; i < 1000; ++i) {
    (void)circuit_.on_failed(now_);
    (void)circuit_.on_confirmed();
  }
  EXPECT_FALSE(circuit_.paused());
}

TEST_F(CircuitTest, A_suspect_route_resumes_only_with_a_success) {
  while (!circuit_.paused())
    (void)circuit_.on_failed(now_);
  advance_to_probe();
  circuit_.on_submitted();
  EXPECT_EQ(circuit_.on_failed(now_), Change::none);
  EXPECT_TRUE(circuit_.paused());
  advance_to_probe();
  circuit_.on_submitted();
  EXPECT_EQ(circuit_.on_confirmed(), Change::resumed);
  EXPECT_EQ(circuit_.on_failed(now_), Change::none) << "what was remembered is forgotten";
}

TEST_F(CircuitTest, A_person_blocks_whatever_the_destination_says) {
  EXPECT_EQ(circuit_.set_blocked(true), Change::paused);
  EXPECT_EQ(circuit_.set_blocked(true), Change::none);
  (void)circuit_.on_confirmed();
  EXPECT_EQ(allowance(), 0U);
  EXPECT_EQ(circuit_.set_blocked(false), Change::resumed);
  EXPECT_EQ(allowance(), 10U);
}

TEST_F(CircuitTest, A_resumed_route_whose_destination_is_down_stays_paused) {
  (void)circuit_.on_outage(now_, "down");
  (void)circuit_.set_blocked(true);
  EXPECT_EQ(circuit_.set_blocked(false), Change::none);
  EXPECT_TRUE(circuit_.paused());
}

}  // namespace
}  // namespace postrider::core
