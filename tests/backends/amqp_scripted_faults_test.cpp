// Faults that a real RabbitMQ cannot be brought to: wrong, missing, repeated and garbled answers.

#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/amqp_sender.hpp"
#include "servers/chaos_proxy.hpp"
#include "servers/loopback.hpp"
#include "servers/scripted_amqp_server.hpp"

namespace postrider::testing {
namespace {

using namespace amqp_frames;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;

AmqpOptions options_for(const std::string& url) {
  AmqpOptions options;
  options.url = url;
  options.exchange = "events";
  return options;
}

/// Answers each message as a broker does.
std::string confirm(int /*connection*/, std::uint64_t tag) {
  return ack(tag);
}

/// Submits events 1 to `count` at once.
void submit_many(AmqpSender& sender, std::uint32_t count, milliseconds timeout = patience) {
  for (std::uint32_t number = 1; number <= count; ++number) {
    sender.add(make_event(number), timeout);
  }
  ASSERT_TRUE(sender.submit().ok());
}

TEST(AmqpFaults, F69_repeated_and_reordered_acks_settle_each_message_once) {
  ScriptedAmqpServer server([](int, std::uint64_t tag) {
    return tag == 3 ? ack(3) + ack(1) + ack(1) + ack(3) + ack(2) + ack(3, true) : "";
  });
  AmqpSender sender(options_for(server.url()));
  submit_many(sender, 3);
  sender.await_all();
  for (std::uint64_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(sender.of(attempt), Outcome::confirmed());
  }
}

TEST(AmqpFaults, F69_an_ack_for_a_tag_that_was_never_given_closes_the_connection) {
  ScriptedAmqpServer server([](int connection, std::uint64_t tag) {
    if (connection > 1) return ack(tag);
    return tag == 2 ? ack(99) : "";
  });
  AmqpSender sender(options_for(server.url()));
  submit_many(sender, 2);
  sender.await_all();
  EXPECT_TRUE(sender.of(1).connection_lost);
  EXPECT_TRUE(sender.of(2).connection_lost);
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  EXPECT_EQ(server.connections(), 2);
}

TEST(AmqpFaults, F69_a_return_of_an_unknown_message_closes_the_connection) {
  ScriptedAmqpServer server([](int connection, std::uint64_t tag) {
    return connection > 1 ? ack(tag) : returned(id_of(*make_event(77)));
  });
  AmqpSender sender(options_for(server.url()));
  EXPECT_TRUE(sender.send(make_event(1)).connection_lost);
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
}

TEST(AmqpFaults, F70_garbage_ends_the_connection_and_nothing_else) {
  const std::string garbage[] = {
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      std::string("\x01\x00\x01\xff\xff\xff\xff", 7),                       // a frame of 4 GiB
      std::string("\x01\x00\x01\x00\x00\x00\x04zzzzX", 12),                 // no end mark
      std::string("\x01\x00\x01\x00\x00\x00\x04\x7f\xff\x7f\xff\xce", 12),  // no such method
      std::string("\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                  "\x00\x00\xce",
                  22),      // a content header that belongs to nothing
      ack(1).substr(0, 9),  // half a frame, and then the next one
  };
  for (const auto& bytes : garbage) {
    ScriptedAmqpServer server([&](int connection, std::uint64_t tag) {
      return connection == 1 ? bytes + ack(tag) : ack(tag);
    });
    AmqpSender sender(options_for(server.url()));
    const auto outcome = sender.send(make_event(1));
    EXPECT_EQ(outcome.kind, OutcomeKind::unknown) << ::testing::PrintToString(bytes);
    EXPECT_TRUE(outcome.connection_lost) << ::testing::PrintToString(bytes);
    EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  }
}

TEST(AmqpFaults, F70_a_connection_that_is_cut_in_the_middle_of_a_frame_is_lost) {
  ScriptedAmqpServer server(confirm);
  const int port = std::stoi(server.url().substr(server.url().rfind(':') + 1));
  ChaosProxy proxy(port);
  AmqpSender sender(options_for("amqp://127.0.0.1:" + std::to_string(proxy.port())));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("down cut-after 5");
  EXPECT_TRUE(sender.send(make_event(2)).connection_lost);
  proxy.tell("down pass");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST(AmqpFaults, F73_a_refused_first_message_says_nothing_of_those_behind_it) {
  ScriptedAmqpServer server([](int, std::uint64_t tag) { return tag == 1 ? nack(1) : ack(tag); });
  AmqpSender sender(options_for(server.url()));
  submit_many(sender, 3);
  sender.await_all();
  EXPECT_EQ(sender.of(1).kind, OutcomeKind::refused);
  EXPECT_EQ(sender.of(1).code, "nacked");
  EXPECT_EQ(sender.of(2), Outcome::confirmed());
  EXPECT_EQ(sender.of(3), Outcome::confirmed());
}

TEST(AmqpFaults, F79_multiple_settles_all_up_to_the_tag_and_none_beyond) {
  ScriptedAmqpServer server([](int, std::uint64_t tag) {
    if (tag == 5) return ack(2, true) + nack(4, true);
    return std::string();
  });
  AmqpSender sender(options_for(server.url()));
  submit_many(sender, 5, milliseconds(1500));
  sender.await(4);
  EXPECT_EQ(sender.of(1), Outcome::confirmed());
  EXPECT_EQ(sender.of(2), Outcome::confirmed());
  EXPECT_EQ(sender.of(3).kind, OutcomeKind::refused);
  EXPECT_EQ(sender.of(4).kind, OutcomeKind::refused);
  EXPECT_FALSE(sender.has(5));
  server.send(ack(0, true));
  sender.await_all();
  EXPECT_EQ(sender.of(5), Outcome::confirmed());
}

TEST(AmqpFaults,
     F80_a_confirm_that_never_comes_is_unknown_and_the_repetition_takes_a_new_connection) {
  ScriptedAmqpServer server(
      [](int connection, std::uint64_t tag) { return connection == 1 ? "" : ack(tag); });
  AmqpSender sender(options_for(server.url()));
  const auto outcome = sender.send(make_event(1), milliseconds(300));
  EXPECT_EQ(outcome.kind, OutcomeKind::unknown);
  EXPECT_EQ(outcome.code, "timeout");
  EXPECT_FALSE(outcome.connection_lost);
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  EXPECT_EQ(server.connections(), 2);
}

TEST(AmqpFaults, F80_a_window_of_lost_confirms_is_replaced_although_others_are_confirmed) {
  // Message 1 of the first connection is lost, the others are confirmed.
  ScriptedAmqpServer server([](int connection, std::uint64_t tag) {
    return connection == 1 && tag == 1 ? "" : ack(tag);
  });
  auto options = options_for(server.url());
  options.window = 1;
  AmqpSender sender(options);
  EXPECT_EQ(sender.send(make_event(1), milliseconds(200)).code, "timeout");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
  EXPECT_EQ(server.connections(), 2);
}

TEST(AmqpFaults, F81_while_blocked_nothing_is_written_and_what_expires_is_unavailable) {
  ScriptedAmqpServer server(
      [](int, std::uint64_t tag) { return tag == 1 ? ack(1) + blocked() : ack(tag); });
  AmqpSender sender(options_for(server.url()));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  const auto outcome = sender.send(make_event(2), milliseconds(300));
  EXPECT_EQ(outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(outcome.code, "blocked");
  EXPECT_EQ(server.messages(), 1U);

  sender.add(make_event(2));
  ASSERT_TRUE(sender.submit().ok());
  sender.poll(milliseconds(50));
  EXPECT_EQ(server.messages(), 1U);
  server.send(unblocked());
  sender.await_all();
  EXPECT_EQ(sender.of(3), Outcome::confirmed());
  EXPECT_EQ(server.connections(), 1);
}

TEST(AmqpFaults, F81_a_write_that_takes_too_long_is_cut_and_every_call_returns_in_time) {
  ScriptedAmqpServer server(confirm);
  const int port = std::stoi(server.url().substr(server.url().rfind(':') + 1));
  ChaosProxy proxy(port);
  AmqpSender sender(options_for("amqp://127.0.0.1:" + std::to_string(proxy.port())));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("up black-hole");
  const auto large = make_event(2);
  large->payload.assign(32U << 20U, 'x');
  EXPECT_LT(duration_of([&] {
              sender.add(large, milliseconds(700));
              sender.add(make_event(3), seconds(60));
              ASSERT_TRUE(sender.submit().ok());
            }),
            seconds(2));
  EXPECT_LT(duration_of([&] { sender.poll(milliseconds(50)); }), seconds(1));
  EXPECT_LT(duration_of([&] { sender.await_all(); }), seconds(5));
  EXPECT_EQ(sender.of(2).kind, OutcomeKind::unknown);  // Partly written, so it may have left.
  EXPECT_EQ(sender.of(3).kind, OutcomeKind::unavailable);
  proxy.tell("up pass");
  EXPECT_EQ(sender.send(large), Outcome::confirmed());
}

TEST(AmqpFaults, F81_close_returns_in_time_while_a_write_is_stuck) {
  ScriptedAmqpServer server(confirm);
  const int port = std::stoi(server.url().substr(server.url().rfind(':') + 1));
  ChaosProxy proxy(port);
  AmqpSender sender(options_for("amqp://127.0.0.1:" + std::to_string(proxy.port())));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("up black-hole");
  const auto large = make_event(2);
  large->payload.assign(32U << 20U, 'x');
  sender.add(large, seconds(60));
  ASSERT_TRUE(sender.submit().ok());
  sender.poll(milliseconds(100));
  EXPECT_LT(duration_of([&] { sender.close(milliseconds(300)); }), seconds(3));
  EXPECT_EQ(sender.of(2).kind, OutcomeKind::unknown);
  proxy.tell("up pass");
  EXPECT_EQ(sender.send(large), Outcome::confirmed());
}

TEST(AmqpFaults, F82_a_closed_channel_tells_of_its_only_message_and_leaves_the_rest_in_doubt) {
  const struct {
    std::uint16_t code;
    OutcomeKind alone;
    std::string word;
  } rows[] = {
      {404, OutcomeKind::unavailable, "exchange_missing"},
      {403, OutcomeKind::unavailable, "permission_denied"},
      {406, OutcomeKind::rejected, "precondition_failed"},
      {311, OutcomeKind::rejected, "content_too_large"},
      {541, OutcomeKind::unknown, "internal_error"},
  };
  for (const auto& row : rows) {
    ScriptedAmqpServer server(
        [&](int, std::uint64_t tag) { return tag == 1 ? channel_close(row.code) : std::string(); });
    AmqpSender sender(options_for(server.url()));
    const auto alone = sender.send(make_event(1));
    EXPECT_EQ(alone.kind, row.alone) << row.code;
    EXPECT_EQ(alone.code, row.word) << row.code;

    ScriptedAmqpServer crowded(
        [&](int, std::uint64_t tag) { return tag == 2 ? channel_close(row.code) : std::string(); });
    AmqpSender many(options_for(crowded.url()));
    submit_many(many, 2);
    many.await_all();
    EXPECT_TRUE(many.of(1).connection_lost) << row.code;
    EXPECT_TRUE(many.of(2).connection_lost) << row.code;
  }
}

TEST(AmqpFaults, F82_after_a_closed_channel_the_connection_goes_on_with_a_new_one) {
  bool closed = false;
  ScriptedAmqpServer server([&](int, std::uint64_t tag) {
    return std::exchange(closed, true) ? ack(tag) : channel_close(406);
  });
  AmqpSender sender(options_for(server.url()));
  EXPECT_EQ(sender.send(make_event(1)).kind, OutcomeKind::rejected);
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
  EXPECT_EQ(server.connections(), 1);
}

TEST(AmqpFaults, F71_a_server_that_accepts_and_says_nothing_costs_no_more_than_the_deadline) {
  int port = 0;
  const int silent = listen_on_loopback(port);
  auto options = options_for("amqp://127.0.0.1:" + std::to_string(port));
  options.connect_timeout = seconds(60);
  AmqpSender sender(options);
  sender.add(make_event(1));
  Result<void> submitted;
  EXPECT_LT(duration_of([&] { submitted = sender.submit(milliseconds(300)); }), seconds(3));
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().code, ErrorCode::timeout);
  EXPECT_EQ(submitted.error().disposition, Disposition::retry);
  EXPECT_LT(duration_of([&] { sender.close(milliseconds(100)); }), seconds(3));
  ::close(silent);
}

TEST(AmqpPublisher, AHostThatDoesNotResolveIsUnavailable) {
  AmqpSender sender(options_for("amqp://no-such-host.invalid"));
  sender.add(make_event(1));
  const auto submitted = sender.submit(seconds(30));
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().disposition, Disposition::retry);
}

TEST(AmqpPublisher, WakeEndsAPollThatWaits) {
  AmqpSender sender(options_for("amqp://127.0.0.1:1"));
  std::thread waker([&] { sender.publisher().wake(); });
  EXPECT_LT(duration_of([&] { sender.poll(seconds(60)); }), seconds(10));
  waker.join();
}

}  // namespace
}  // namespace postrider::testing
