#include "publisher/amqp/confirm_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::amqp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Answer = ConfirmWindow::Answer;
using std::chrono::seconds;

EventId event(std::uint8_t number) {
  return EventId(Uuid({number}));
}
Instant at(int second) {
  return Instant(seconds(second));
}

/// A window with the tags 1 to `count`: attempt 101 has tag 1, and expires at second 1.
ConfirmWindow window_of(int count) {
  ConfirmWindow window;
  for (int tag = 1; tag <= count; ++tag) {
    window.add(AttemptId(100U + static_cast<unsigned>(tag)), event(static_cast<std::uint8_t>(tag)),
               at(tag));
  }
  return window;
}

std::vector<std::uint64_t> attempts(const ConfirmWindow::Settlement& settlement) {
  std::vector<std::uint64_t> numbers;
  for (const auto& settled : settlement.settled)
    numbers.push_back(settled.attempt.value());
  return numbers;
}

TEST(ConfirmWindow, NumbersMessagesFromOne) {
  ConfirmWindow window;
  EXPECT_EQ(window.add(AttemptId(7), event(1), at(1)), 1U);
  EXPECT_EQ(window.add(AttemptId(8), event(2), at(1)), 2U);
  EXPECT_EQ(window.live(), 2U);
}

TEST(ConfirmWindow, SettlesOneTagOrAllUpToIt) {
  const struct {
    std::uint64_t tag;
    bool multiple;
    std::vector<std::uint64_t> expected;
  } rows[] = {
      {2, false, {102}},
      {2, true, {101, 102}},
      {3, true, {101, 102, 103}},
      {0, true, {101, 102, 103}},
  };
  for (const auto& row : rows) {
    auto window = window_of(3);
    const auto settlement = window.settle(row.tag, row.multiple);
    EXPECT_EQ(settlement.answer, Answer::expected);
    EXPECT_EQ(attempts(settlement), row.expected) << row.tag << row.multiple;
    EXPECT_EQ(window.live(), 3 - row.expected.size());
  }
}

TEST(ConfirmWindow, ARepeatedAnswerSettlesNothing) {
  auto window = window_of(3);
  EXPECT_THAT(attempts(window.settle(2, false)), ElementsAre(102U));
  EXPECT_EQ(window.settle(2, false).answer, Answer::repeated);
  EXPECT_THAT(attempts(window.settle(3, true)), ElementsAre(101U, 103U));
  EXPECT_EQ(window.settle(3, true).answer, Answer::repeated);
  EXPECT_EQ(window.settle(0, true).answer, Answer::repeated);
}

TEST(ConfirmWindow, ATagThatWasNeverGivenIsImpossible) {
  auto window = window_of(3);
  EXPECT_EQ(window.settle(4, false).answer, Answer::impossible);
  EXPECT_EQ(window.settle(4, true).answer, Answer::impossible);
  EXPECT_EQ(window.settle(0, false).answer, Answer::impossible);
  EXPECT_EQ(window.live(), 3U);
}

TEST(ConfirmWindow, AnExpiredTagKeepsItsPlaceAndItsLateAnswerGoesToNobody) {
  auto window = window_of(3);
  EXPECT_THAT(window.expire(at(2)), ElementsAre(AttemptId(101), AttemptId(102)));
  EXPECT_EQ(window.live(), 1U);
  EXPECT_EQ(window.forgotten(), 2U);
  EXPECT_EQ(window.settle(1, false).answer, Answer::late);
  EXPECT_THAT(attempts(window.settle(3, true)), ElementsAre(103U));
  EXPECT_EQ(window.forgotten(), 0U);
}

TEST(ConfirmWindow, NothingExpiresTwice) {
  auto window = window_of(2);
  EXPECT_THAT(window.expire(at(1)), ElementsAre(AttemptId(101)));
  EXPECT_THAT(window.expire(at(1)), IsEmpty());
}

TEST(ConfirmWindow, KnowsWhenTheNextTagExpires) {
  auto window = window_of(3);
  EXPECT_EQ(window.next_expiry(), at(1));
  (void)window.expire(at(1));
  EXPECT_EQ(window.next_expiry(), at(2));
  (void)window.settle(0, true);
  EXPECT_EQ(window.next_expiry(), std::nullopt);
}

TEST(ConfirmWindow, AnEarlierExpiryOfALaterTagIsNotMissed) {
  ConfirmWindow window;
  window.add(AttemptId(1), event(1), at(30));
  window.add(AttemptId(2), event(2), at(5));
  EXPECT_THAT(window.expire(at(5)), ElementsAre(AttemptId(2)));
}

TEST(ConfirmWindow, AReturnBelongsToTheFirstTagOfItsEvent) {
  ConfirmWindow window;
  window.add(AttemptId(1), event(9), at(1));
  window.add(AttemptId(2), event(8), at(1));
  window.add(AttemptId(3), event(9), at(1));
  EXPECT_TRUE(window.mark_returned(event(9)));
  const auto settlement = window.settle(3, true);
  ASSERT_EQ(settlement.settled.size(), 3U);
  EXPECT_TRUE(settlement.settled[0].returned);
  EXPECT_FALSE(settlement.settled[1].returned);
  EXPECT_FALSE(settlement.settled[2].returned);
}

TEST(ConfirmWindow, AReturnOfAForgottenTagDoesNotHitTheRepetition) {
  ConfirmWindow window;
  window.add(AttemptId(1), event(9), at(1));
  (void)window.expire(at(1));
  window.add(AttemptId(2), event(9), at(5));
  EXPECT_TRUE(window.mark_returned(event(9)));
  const auto settlement = window.settle(2, true);
  ASSERT_EQ(settlement.settled.size(), 1U);
  EXPECT_FALSE(settlement.settled[0].returned);
}

TEST(ConfirmWindow, AReturnOfAnUnknownEventIsNoted) {
  auto window = window_of(1);
  EXPECT_FALSE(window.mark_returned(event(99)));
}

TEST(ConfirmWindow, ANewChannelStartsAgainAndNamesTheLiveOnesThatAreLost) {
  auto window = window_of(3);
  (void)window.expire(at(1));
  EXPECT_THAT(window.reset(), ElementsAre(AttemptId(102), AttemptId(103)));
  EXPECT_EQ(window.live(), 0U);
  EXPECT_EQ(window.forgotten(), 0U);
  EXPECT_EQ(window.add(AttemptId(9), event(9), at(9)), 1U);
}

}  // namespace
}  // namespace postrider::amqp
