// What a handler can ask and say while it runs.
#include <postrider/attempt.hpp>

#include <chrono>
#include <stop_token>
#include <string>

#include <gtest/gtest.h>

#include "unit/recording_desk.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;

class AttemptTest : public ::testing::Test {
 protected:
  AttemptTest() {
    std::array<std::uint8_t, 16> bytes{};
    bytes.back() = 7;
    task_.job.delivery_id = DeliveryId(Uuid(bytes));
    bytes.back() = 8;
    task_.dispatch_id = DispatchId(Uuid(bytes));
    task_.job.retry_delays = {1s};
    task_.checkpoint = "page 3";
  }
  const AttemptUpdate& said() {
    EXPECT_EQ(desk_.asked.size(), 1U);
    return desk_.asked.back();
  }

  Task task_;
  RecordingDesk desk_;
  std::stop_source stop_;
  Attempt attempt_{task_, desk_, stop_.get_token()};
};

TEST_F(AttemptTest, It_knows_what_came_with_its_task) {
  EXPECT_EQ(attempt_.number(), 1);
  EXPECT_FALSE(attempt_.last_attempt());
  EXPECT_EQ(attempt_.last_checkpoint(), "page 3");
  EXPECT_FALSE(attempt_.stop_requested());
  stop_.request_stop();
  EXPECT_TRUE(attempt_.stop_requested());
}

TEST_F(AttemptTest, R_202_it_asks_whether_it_is_current_by_both_ids) {
  EXPECT_TRUE(attempt_.is_current().value());
  EXPECT_EQ(said().delivery_id, task_.job.delivery_id);
  EXPECT_EQ(said().dispatch_id, task_.dispatch_id);
  EXPECT_FALSE(said().extend || said().percent || said().note || said().checkpoint);

  desk_.answer.current = false;
  EXPECT_FALSE(attempt_.is_current().value());
}

TEST_F(AttemptTest, An_unknown_answer_is_no_answer) {
  desk_.failure = Error{ErrorCode::unavailable, Disposition::retry, "gone.", "test", ""};
  EXPECT_EQ(attempt_.is_current().error().code, ErrorCode::unavailable);
}

TEST_F(AttemptTest, J_13_it_moves_its_deadline_forward_only) {
  desk_.answer.until_timeout = 90s;
  EXPECT_EQ(attempt_.extend(2min).value().until_timeout, 90s) << "up to the route's limit";
  EXPECT_EQ(said().extend, milliseconds(2min));
  EXPECT_EQ(attempt_.extend(0ms).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(attempt_.extend(-1ms).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(desk_.asked.size(), 1U);
}

TEST_F(AttemptTest, J_20_progress_is_a_percentage_with_a_note_that_is_cut_between_characters) {
  std::string long_note(AttemptUpdate::most_note_bytes - 1, 'a');
  long_note += "\xC3\xA4";
  EXPECT_TRUE(attempt_.progress(40, long_note));
  EXPECT_EQ(said().percent, 40);
  EXPECT_EQ(said().note, std::string(AttemptUpdate::most_note_bytes - 1, 'a'));
}

TEST_F(AttemptTest, Progress_that_no_row_can_hold_is_refused_before_it_is_sent) {
  EXPECT_EQ(attempt_.progress(-1).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(attempt_.progress(101).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(attempt_.progress(1, std::string("a\0b", 3)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(attempt_.progress(1, "\xC3").error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(desk_.asked.empty());
}

TEST_F(AttemptTest, J_20_a_checkpoint_is_bytes_up_to_its_limit) {
  const std::string most(AttemptUpdate::most_checkpoint_bytes, '\0');
  EXPECT_TRUE(attempt_.checkpoint(most));
  EXPECT_EQ(said().checkpoint, most);
  EXPECT_EQ(attempt_.checkpoint(most + "a").error().code, ErrorCode::limit_exceeded);
  EXPECT_EQ(desk_.asked.size(), 1U);
}

}  // namespace
}  // namespace postrider
