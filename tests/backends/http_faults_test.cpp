// What becomes of messages when an endpoint answers late, badly or not at all.

#include <set>

#include <gmock/gmock.h>

#include <postrider/testing/manual_clock.hpp>
#include <postrider/webhook.hpp>

#include "backends/http_sender.hpp"
#include "servers/chaos_proxy.hpp"
#include "servers/http_endpoint.hpp"

namespace postrider::testing {
namespace {

TEST(HttpFaults, WT_10_and_F110_a_lost_answer_is_repeated_under_the_same_id_and_applied_once) {
  HttpEndpoint endpoint({Reply::cutting(), Reply::of(204)});
  auto options = loopback_options(endpoint.url());
  options.secrets = {old_secret};
  ManualClock clock;
  HttpSender sender(options, clock);
  const auto keys = WebhookKeys::parse(options.secrets).value();

  EXPECT_EQ(words_of(sender.send(http_event(1))), "unknown connection_lost");
  clock.advance(seconds(400));
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");

  const auto requests = endpoint.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_NE(requests[0].header("webhook-timestamp"), requests[1].header("webhook-timestamp"));
  std::set<std::string> applied;
  for (const auto& request : requests) {
    const WebhookHeaders headers{request.header("webhook-id"), request.header("webhook-timestamp"),
                                 request.header("webhook-signature")};
    const bool in_time = &request == &requests[1];
    EXPECT_EQ(keys.verify(headers, request.body, clock.wall()).ok(), in_time)
        << "the first one is too old by now";
    applied.insert(request.header("webhook-id"));
  }
  EXPECT_EQ(applied.size(), 1U);
}

TEST(HttpFaults, WT_11_and_F111_both_keys_of_a_rotation_sign_what_is_sent) {
  HttpEndpoint endpoint;
  auto options = loopback_options(endpoint.url());
  options.secrets = {new_secret, old_secret};
  EXPECT_EQ(words_of(HttpSender(options).send(http_event(1))), "confirmed");
  options.secrets = {new_secret};
  EXPECT_EQ(words_of(HttpSender(options).send(http_event(2))), "confirmed");

  const auto requests = endpoint.requests();
  const auto verifies = [&](const SeenRequest& request, const char* secret) {
    const auto keys = WebhookKeys::parse(std::vector<std::string>{secret}).value();
    const WebhookHeaders headers{request.header("webhook-id"), request.header("webhook-timestamp"),
                                 request.header("webhook-signature")};
    return keys.verify(headers, request.body, system_clock().wall()).ok();
  };
  EXPECT_TRUE(verifies(requests[0], old_secret));
  EXPECT_TRUE(verifies(requests[0], new_secret));
  EXPECT_FALSE(verifies(requests[1], old_secret)) << "WT-18";
  EXPECT_TRUE(verifies(requests[1], new_secret));
}

TEST(HttpFaults, WT_13_an_answer_that_does_not_come_in_time_is_unknown_and_retried) {
  HttpEndpoint endpoint({Reply::holding(), Reply::of(204)});
  HttpSender sender(loopback_options(endpoint.url()));

  EXPECT_EQ(words_of(sender.send(http_event(1), milliseconds(500))), "unknown timeout");
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
}

TEST(HttpFaults, WT_17_of_a_body_without_an_end_the_status_counts_and_the_connection_is_closed) {
  const std::string flood =
      "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n" + std::string(1U << 20U, 'x');
  HttpEndpoint endpoint({Reply::of_bytes(flood, true), Reply::of(204)});
  HttpSender sender(loopback_options(endpoint.url()));

  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
  EXPECT_EQ(words_of(sender.send(http_event(2))), "confirmed");
  EXPECT_EQ(endpoint.requests()[1].connection, 2);
}

TEST(HttpFaults, F108_an_answer_that_drips_never_ends_or_is_too_large_costs_one_attempt) {
  const auto outcome_of = [](std::string bytes, milliseconds timeout) {
    HttpEndpoint endpoint({Reply::of_bytes(std::move(bytes), true)});
    return words_of(HttpSender(loopback_options(endpoint.url())).send(http_event(1), timeout));
  };
  std::string headers = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 3'000; ++i)
    headers += "X-" + std::to_string(i) + ": " + std::string(50, 'x') + "\r\n";

  EXPECT_EQ(outcome_of("HT", milliseconds(500)), "unknown timeout");
  EXPECT_EQ(outcome_of("SSH-2.0-OpenSSH\r\n", http_patience), "unknown protocol_error");
  EXPECT_EQ(outcome_of(headers, http_patience), "confirmed") << "its status was there";
  EXPECT_EQ(
      outcome_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", http_patience),
      "confirmed");
  EXPECT_EQ(outcome_of("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx", milliseconds(500)),
            "confirmed");
}

TEST(HttpFaults, What_was_cut_before_an_answer_is_sent_once_and_left_to_the_relay) {
  for (const std::string payload : {"payload", ""}) {
    HttpEndpoint endpoint({Reply::of(204), Reply::cutting()});
    HttpSender sender(loopback_options(endpoint.url()));
    auto event = http_event(2);
    event->payload = payload;

    EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
    EXPECT_EQ(words_of(sender.send(event)), "unknown connection_lost");

    const auto requests = endpoint.requests();
    EXPECT_EQ(requests.size(), 2U) << "the client library must not repeat by itself";
    EXPECT_EQ(requests[1].connection, 1) << "it was an old connection, as in the case to be tested";
  }
}

TEST(HttpFaults, A_cut_between_request_and_answer_is_unknown_and_a_closed_port_is_an_outage) {
  HttpEndpoint endpoint;
  ChaosProxy proxy(endpoint.port());
  HttpSender sender(loopback_options("http://127.0.0.1:" + std::to_string(proxy.port()) + "/"));

  proxy.tell("down cut-after 5");
  EXPECT_EQ(words_of(sender.send(http_event(1))), "unknown connection_lost");
  EXPECT_EQ(endpoint.await_requests(1).size(), 1U) << "it had arrived";
  proxy.tell("down pass");
  proxy.tell("leave");
  EXPECT_EQ(words_of(sender.send(http_event(2))), "unavailable unavailable");
  proxy.tell("return");
  EXPECT_EQ(words_of(sender.send(http_event(2))), "confirmed");
}

TEST(HttpFaults, A_black_hole_costs_the_timeout_and_no_other_connection) {
  HttpEndpoint endpoint([](const SeenRequest& request, std::size_t) {
    return request.header("postrider-aggregate-id") == "slow" ? Reply::holding() : Reply();
  });
  HttpSender sender(loopback_options(endpoint.url()));

  const auto slow = sender.submit(http_event(1, "slow"), milliseconds(5'000));
  for (std::uint8_t number = 2; number < 50; ++number)
    sender.submit(http_event(number, "fast " + std::to_string(number)));
  for (int polls = 0; polls < 1'000 && !sender.has(49); ++polls)
    sender.poll(seconds(1));

  EXPECT_EQ(words_of(sender.of(49)), "confirmed");
  sender.await_all();
  EXPECT_EQ(words_of(sender.of(slow)), "unknown timeout");
}

TEST(HttpFaults, Requests_of_one_aggregate_follow_each_other_and_others_run_beside_them) {
  HttpEndpoint endpoint([](const SeenRequest&, std::size_t before) {
    return before < 4 ? Reply::holding() : Reply();
  });
  auto options = loopback_options(endpoint.url());
  options.connections = 4;
  HttpSender sender(options);

  for (std::uint8_t number = 1; number <= 20; ++number)
    sender.submit(http_event(number, number <= 10 ? "one" : std::to_string(number)));
  const auto give_up = Deadline::after(http_patience);
  while (endpoint.requests().size() < 4 && !give_up.passed())
    sender.poll(milliseconds(10));
  endpoint.release();
  sender.await_all();

  EXPECT_EQ(endpoint.most_at_once(), 4U);
  std::vector<std::string> of_one;
  for (const auto& request : endpoint.requests()) {
    if (request.header("postrider-aggregate-id") == "one") of_one.push_back(request.body);
  }
  ASSERT_EQ(of_one.size(), 10U);
  for (std::size_t i = 0; i < of_one.size(); ++i)
    EXPECT_EQ(of_one[i], "payload " + std::to_string(i + 1));
}

}  // namespace
}  // namespace postrider::testing
