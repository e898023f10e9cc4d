// What a worker and its children say to each other.
#include "runner/process/frames.hpp"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace postrider::runner {
namespace {

using namespace std::chrono_literals;

Uuid uuid(std::uint8_t last) {
  std::array<std::uint8_t, 16> bytes{};
  bytes.back() = last;
  return Uuid(bytes);
}

Task whole_task() {
  Event event;
  event.seq = Seq(12);
  event.id = EventId(uuid(1));
  event.aggregate = Aggregate{"order", "7"};
  event.aggregate_version = 3;
  event.type = "order.placed";
  event.payload = std::string("a\0\xFF", 3);
  event.content_type = "text/plain";
  event.headers = {{"trace", "1"}, {"void", ""}};
  event.created_at = Timestamp(5s);
  event.available_at = Timestamp(6s);
  Task task;
  task.job.delivery_id = DeliveryId(uuid(2));
  task.job.event_id = event.id;
  task.job.event_seq = event.seq;
  task.job.route = "ship";
  task.job.job = "ship_order";
  task.job.queue = "shipping";
  task.job.attempts = 1;
  task.job.retry_delays = {60s, 120s};
  task.dispatch_id = DispatchId(uuid(3));
  task.checkpoint = std::string("\0c", 2);
  task.until_timeout = 30s;
  task.event = std::make_shared<const Event>(std::move(event));
  return task;
}

/// Through the pieces that a socket makes of it.
template <class Decode>
auto through_socket(const std::string& frame, Decode decode) {
  FrameBuffer buffer(1U << 20U);
  for (std::size_t i = 0; i + 1 < frame.size(); ++i) {
    buffer.add(frame.substr(i, 1));
    EXPECT_FALSE(buffer.next());
  }
  buffer.add(frame.substr(frame.size() - 1));
  const auto body = buffer.next();
  EXPECT_TRUE(body);
  EXPECT_FALSE(buffer.next());
  return decode(body.value_or(std::string()));
}

TEST(ProcessFrames, A_task_arrives_as_it_was_sent) {
  const auto sent = whole_task();
  const auto frame = through_socket(encode(FrameToChild(sent)), decode_to_child);
  ASSERT_TRUE(frame);
  const auto& task = std::get<Task>(*frame);
  EXPECT_EQ(task.job.delivery_id, sent.job.delivery_id);
  EXPECT_EQ(task.job.event_id, sent.job.event_id);
  EXPECT_EQ(task.job.event_seq, sent.job.event_seq);
  EXPECT_EQ(task.job.route, "ship");
  EXPECT_EQ(task.job.job, "ship_order");
  EXPECT_EQ(task.job.queue, "shipping");
  EXPECT_EQ(task.job.attempts, 1);
  EXPECT_EQ(task.job.retry_delays, sent.job.retry_delays);
  EXPECT_EQ(task.dispatch_id, sent.dispatch_id);
  EXPECT_EQ(task.checkpoint, sent.checkpoint);
  EXPECT_EQ(task.until_timeout, 30s);
  EXPECT_EQ(task.event->seq, sent.event->seq);
  EXPECT_EQ(task.event->id, sent.event->id);
  EXPECT_EQ(task.event->aggregate, sent.event->aggregate);
  EXPECT_EQ(task.event->aggregate_version, 3);
  EXPECT_EQ(task.event->type, "order.placed");
  EXPECT_EQ(task.event->payload, sent.event->payload);
  EXPECT_EQ(task.event->content_type, "text/plain");
  EXPECT_EQ(task.event->headers, sent.event->headers);
  EXPECT_EQ(task.event->created_at, sent.event->created_at);
  EXPECT_EQ(task.event->available_at, sent.event->available_at);
}

TEST(ProcessFrames, Everything_else_arrives_as_it_was_sent) {
  const auto stop = decode_to_child(
      std::string_view(encode(FrameToChild(StopFrame{DispatchId(uuid(4))}))).substr(4));
  EXPECT_EQ(std::get<StopFrame>(stop.value()).dispatch_id, DispatchId(uuid(4)));

  const AttemptState state{true, true, 9s};
  const auto answer = through_socket(encode(FrameToChild(AnswerFrame{state})), decode_to_child);
  const auto& told = std::get<AnswerFrame>(answer.value()).state;
  EXPECT_TRUE(told->current && told->cancel_requested);
  EXPECT_EQ(told->until_timeout, 9s);

  const Error error{ErrorCode::busy, Disposition::in_doubt, "locked.", "sqlite", "5"};
  const auto refusal = through_socket(encode(FrameToChild(AnswerFrame{error})), decode_to_child);
  EXPECT_EQ(describe(std::get<AnswerFrame>(refusal.value()).state.error()), describe(error));

  const auto outcome = JobOutcome::retry_in(3s, "busy", "later");
  const auto ended = through_socket(
      encode(FrameFromChild(OutcomeFrame{DispatchId(uuid(4)), outcome})), decode_from_child);
  EXPECT_EQ(std::get<OutcomeFrame>(ended.value()).outcome, outcome);

  AttemptUpdate update;
  update.dispatch_id = DispatchId(uuid(5));
  update.extend = 4s;
  update.percent = 50;
  update.note = "half";
  update.checkpoint = std::string("\0", 1);
  const auto asked =
      through_socket(encode(FrameFromChild(QuestionFrame{update})), decode_from_child);
  const auto& question = std::get<QuestionFrame>(asked.value()).update;
  EXPECT_EQ(question.dispatch_id, update.dispatch_id);
  EXPECT_EQ(question.extend, update.extend);
  EXPECT_EQ(question.percent, update.percent);
  EXPECT_EQ(question.note, update.note);
  EXPECT_EQ(question.checkpoint, update.checkpoint);
}

TEST(ProcessFrames, What_is_cut_or_has_more_behind_it_is_no_frame) {
  const auto task = encode(FrameToChild(whole_task())).substr(4);
  for (std::size_t size = 0; size < task.size(); ++size)
    EXPECT_FALSE(decode_to_child(std::string_view(task).substr(0, size))) << size;
  EXPECT_FALSE(decode_to_child(task + "x"));
  EXPECT_FALSE(decode_from_child(task)) << "of the other direction";

  AttemptUpdate update;
  update.note = "half";
  const auto question = encode(FrameFromChild(QuestionFrame{update})).substr(4);
  for (std::size_t size = 0; size < question.size(); ++size)
    EXPECT_FALSE(decode_from_child(std::string_view(question).substr(0, size))) << size;
}

TEST(ProcessFrames, A_length_over_the_limit_breaks_the_stream) {
  FrameBuffer buffer(10);
  buffer.add(std::string("\x0B\0\0\0", 4));
  EXPECT_TRUE(buffer.is_broken());
  EXPECT_FALSE(buffer.next());
}

}  // namespace
}  // namespace postrider::runner
