// Which ticket is whose, and when it may be acknowledged.
#include "core/ticket_desk.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "core/worker_script.hpp"

namespace postrider::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const WorkerId some_worker(numbered_uuid(0xF0, 1));

Ticket tagged(std::uint64_t number, TicketTag tag) {
  return {delivery_numbered(number), dispatch_numbered(number), "ship_order", tag, false};
}

/// Offered, asked for and started.
void take_up(TicketDesk& desk, std::uint64_t number, TicketTag tag) {
  desk.offer(tagged(number, tag));
  ASSERT_EQ(desk.ask(1, some_worker).size(), 1U);
  desk.hold(desk.next_answered());
}

TEST(TicketDesk, A_ticket_is_acknowledged_when_its_dispatch_is_released_and_once) {
  TicketDesk desk;
  take_up(desk, 1, {1, 7});
  EXPECT_THAT(desk.take_acknowledgements(), IsEmpty());
  desk.release(dispatch_numbered(2));
  EXPECT_THAT(desk.take_acknowledgements(), IsEmpty()) << "of a job that came by a take";
  desk.release(dispatch_numbered(1));
  EXPECT_THAT(desk.take_acknowledgements(), ElementsAre(TicketTag{1, 7}));
  desk.release(dispatch_numbered(1));
  EXPECT_THAT(desk.take_acknowledgements(), IsEmpty());
}

TEST(TicketDesk, A_copy_on_the_same_connection_is_acknowledged_at_once) {
  TicketDesk desk;
  take_up(desk, 1, {1, 7});
  desk.offer(tagged(1, {1, 8}));
  EXPECT_THAT(desk.take_acknowledgements(), ElementsAre(TicketTag{1, 8}));
  EXPECT_EQ(desk.waiting(), 0U);
  desk.offer(tagged(2, {1, 9}));
  desk.offer(tagged(2, {1, 10}));
  EXPECT_THAT(desk.take_acknowledgements(), ElementsAre(TicketTag{1, 10}));
  EXPECT_EQ(desk.waiting(), 1U);
}

TEST(TicketDesk, A_ticket_that_names_another_job_does_not_stand_in_the_way_of_the_right_one) {
  TicketDesk desk;
  auto wrong = tagged(1, {1, 7});
  wrong.job = "another";
  desk.offer(wrong);
  desk.offer(tagged(1, {1, 8}));
  EXPECT_THAT(desk.take_acknowledgements(), IsEmpty());
  EXPECT_EQ(desk.ask(2, some_worker).size(), 2U) << "the store tells which of them is right";
}

TEST(TicketDesk, What_runs_takes_over_the_tag_of_the_next_connection) {
  TicketDesk desk;
  take_up(desk, 1, {1, 7});
  desk.forget_connection();
  desk.offer(tagged(1, {2, 1}));
  EXPECT_EQ(desk.waiting(), 0U) << "it is not run twice";
  EXPECT_THAT(desk.take_acknowledgements(), IsEmpty());
  desk.release(dispatch_numbered(1));
  EXPECT_THAT(desk.take_acknowledgements(), ElementsAre(TicketTag{2, 1}));
}

TEST(TicketDesk, With_its_connection_a_ticket_that_waits_is_forgotten) {
  TicketDesk desk;
  desk.offer(tagged(1, {1, 1}));
  take_up(desk, 2, {1, 2});  // asks for the first, which is then held
  desk.release(dispatch_numbered(1));
  desk.forget_connection();
  EXPECT_EQ(desk.waiting(), 0U);
  EXPECT_THAT(desk.take_acknowledgements(), IsEmpty()) << "nobody could take them any more";
}

TEST(TicketDesk, After_a_failure_the_first_unanswered_one_may_have_been_started) {
  TicketDesk desk;
  for (std::uint64_t number = 1; number <= 3; ++number)
    desk.offer(tagged(number, {1, number}));
  ASSERT_EQ(desk.ask(3, some_worker).size(), 3U);
  desk.hold(desk.next_answered());
  desk.put_back_after_failure();
  EXPECT_EQ(desk.doubtful(), 1U);
  EXPECT_EQ(desk.waiting(), 2U);
  const auto again = desk.ask(3, some_worker);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].dispatch_id, dispatch_numbered(2)) << "in their order";
  EXPECT_TRUE(again[0].again);
  EXPECT_FALSE(again[1].again);
}

TEST(TicketDesk, A_doubtful_ticket_outlives_its_connection_and_a_stop) {
  TicketDesk desk;
  desk.offer(tagged(1, {1, 1}));
  desk.offer(tagged(2, {1, 2}));
  (void)desk.ask(2, some_worker);
  desk.put_back_after_failure();
  desk.forget_connection();
  EXPECT_EQ(desk.waiting(), 1U);
  desk.offer(tagged(1, {2, 1}));
  desk.give_back_waiting();
  EXPECT_EQ(desk.doubtful(), 1U);
  (void)desk.ask(1, some_worker);
  EXPECT_EQ(desk.next_answered().tag, (TicketTag{2, 1}));
}

}  // namespace
}  // namespace postrider::core
