// What an endpoint is sent, and what its answers mean.

#include <gmock/gmock.h>

#include <postrider/testing/manual_clock.hpp>

#include "backends/http_sender.hpp"
#include "servers/http_endpoint.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpAnswers, WT_01_only_2xx_confirms_and_interim_answers_are_none) {
  for (const int status : {200, 201, 202, 204, 299}) {
    HttpEndpoint endpoint({Reply::of(status)});
    EXPECT_EQ(words_of(HttpSender(loopback_options(endpoint.url())).send(http_event(1))),
              "confirmed")
        << status;
  }
  for (const int status : {300, 304, 400, 401, 404, 409, 410, 418, 422, 429, 451, 500, 503, 599}) {
    HttpEndpoint endpoint({Reply::of(status)});
    EXPECT_NE(words_of(HttpSender(loopback_options(endpoint.url())).send(http_event(1))),
              "confirmed")
        << status;
  }
  const std::string interim =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
  HttpEndpoint endpoint(
      {Reply::of_bytes(interim + "HTTP/1.1 204 No Content\r\n\r\n"), Reply::of_bytes(interim)});
  HttpSender sender(loopback_options(endpoint.url()));
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
  EXPECT_EQ(words_of(sender.send(http_event(2))), "unknown connection_lost");
}

TEST(HttpAnswers, WT_02_and_F104_a_redirect_is_a_failure_and_never_followed) {
  HttpEndpoint other;
  for (const int status : {301, 302, 303, 307, 308}) {
    for (const auto& target : {other.url(), std::string("http://169.254.169.254/latest"),
                               std::string("/elsewhere"), std::string("file:///etc/passwd")}) {
      HttpEndpoint endpoint({Reply::of(status, "Location", target)});
      const auto outcome = HttpSender(loopback_options(endpoint.url())).send(http_event(1));
      EXPECT_EQ(words_of(outcome), "refused redirect_refused");
      EXPECT_THAT(outcome.detail, HasSubstr("correct the URL"));
      EXPECT_EQ(endpoint.requests().size(), 1U);
    }
  }
  EXPECT_EQ(other.connections(), 0);
}

TEST(HttpAnswers, F105_a_throttled_endpoint_is_left_alone_with_everything_that_waits_for_it) {
  HttpEndpoint endpoint([](const SeenRequest&, std::size_t before) {
    return before == 0 ? Reply::of(429, "Retry-After", "120") : Reply();
  });
  auto options = loopback_options(endpoint.url());
  options.connections = 1;
  HttpSender sender(options);

  sender.submit(http_event(1));
  sender.submit(http_event(2));
  sender.await_all();

  for (const std::uint64_t attempt : {1U, 2U}) {
    EXPECT_EQ(words_of(sender.of(attempt)), "throttled throttled");
    EXPECT_EQ(sender.of(attempt).after, seconds(120));
  }
  EXPECT_EQ(endpoint.requests().size(), 1U);
}

TEST(HttpAnswers, WT_08_a_pause_is_clamped_to_what_the_route_allows) {
  HttpEndpoint endpoint({Reply::of(503, "Retry-After", "999999999")});
  auto options = loopback_options(endpoint.url());
  EXPECT_EQ(HttpSender(options).send(http_event(1)).after, hours(24));
  options.most_retry_after = seconds(90);
  EXPECT_EQ(HttpSender(options).send(http_event(1)).after, seconds(90));
}

TEST(HttpAnswers, WT_09_a_date_counts_by_the_clock_of_who_sent_it) {
  auto reply = Reply::of(429, "Retry-After", "Sun, 06 Nov 1994 08:50:37 GMT");
  reply.headers.emplace_back("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
  HttpEndpoint endpoint({reply});
  ManualClock clock;  // decades later

  EXPECT_EQ(HttpSender(loopback_options(endpoint.url()), clock).send(http_event(1)).after,
            seconds(60));
}

TEST(HttpAnswers, F106_an_endpoint_that_answers_410_is_gone) {
  HttpEndpoint endpoint({Reply::of(410)});
  HttpSender sender(loopback_options(endpoint.url()));

  EXPECT_EQ(words_of(sender.send(http_event(1))), "gone gone");
  EXPECT_TRUE(sender.publisher().traits().one_address);
}

TEST(HttpAnswers, WT_07_it_is_gone_only_after_nothing_but_410_for_as_long_as_the_route_says) {
  HttpEndpoint endpoint(
      {Reply::of(410), Reply::of(200), Reply::of(410), Reply::of(410), Reply::of(410)});
  auto options = loopback_options(endpoint.url());
  options.gone_after = hours(23);
  ManualClock clock;
  HttpSender sender(options, clock);

  EXPECT_EQ(words_of(sender.send(http_event(1))), "refused gone");
  clock.advance(hours(22));
  EXPECT_EQ(words_of(sender.send(http_event(2))), "confirmed");
  clock.advance(hours(2));
  EXPECT_EQ(words_of(sender.send(http_event(3))), "refused gone");
  clock.advance(hours(22));
  EXPECT_EQ(words_of(sender.send(http_event(4))), "refused gone");
  clock.advance(hours(1));
  EXPECT_EQ(words_of(sender.send(http_event(5))), "gone gone");
}

TEST(HttpAnswers, F107_other_answers_are_retried_or_rejected_by_the_table_of_the_route) {
  const auto outcome_of = [](int status, const std::vector<std::string>& statuses = {}) {
    HttpEndpoint endpoint({Reply::of(status)});
    auto options = loopback_options(endpoint.url());
    options.statuses = statuses;
    return words_of(HttpSender(options).send(http_event(1)));
  };
  EXPECT_EQ(outcome_of(401), "refused http_401");
  EXPECT_EQ(outcome_of(404), "refused http_404");
  EXPECT_EQ(outcome_of(400), "rejected http_400");
  EXPECT_EQ(outcome_of(500), "unknown http_500");
  EXPECT_EQ(outcome_of(404, {"404=rejected"}), "rejected http_404");
  EXPECT_EQ(outcome_of(503, {"5xx=unavailable"}), "unavailable http_503");
}

TEST(HttpAnswers, WT_15_a_key_in_use_is_retried_and_one_with_another_payload_is_not) {
  HttpEndpoint endpoint({Reply::of(409), Reply::of(204), Reply::of(422)});
  auto options = loopback_options(endpoint.url());
  options.idempotency_key = true;
  HttpSender sender(options);

  EXPECT_EQ(words_of(sender.send(http_event(1))), "refused http_409");
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
  EXPECT_EQ(words_of(sender.send(http_event(2))), "rejected http_422");

  const auto requests = endpoint.requests();
  EXPECT_EQ(requests[0].header("Idempotency-Key"), requests[0].header("webhook-id"));
  EXPECT_EQ(requests[0].header("Idempotency-Key"), requests[1].header("Idempotency-Key"));
  EXPECT_EQ(requests[0].body, requests[1].body);
}

TEST(HttpAnswers, A_rate_spreads_the_requests) {
  HttpEndpoint endpoint;
  auto options = loopback_options(endpoint.url());
  options.rate = 20;
  HttpSender sender(options);

  const auto start = std::chrono::steady_clock::now();
  for (std::uint8_t number = 1; number <= 6; ++number)
    sender.submit(http_event(number, std::to_string(number)));
  sender.await_all();

  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(250));
  EXPECT_EQ(endpoint.requests().size(), 6U);
}

TEST(HttpAnswers, A_request_looks_as_the_manual_says) {
  HttpEndpoint endpoint;
  auto options = loopback_options(endpoint.url("/in?key=canary"));
  options.headers = {"Authorization: Bearer abc", "X-Tenant: 7"};
  auto event = http_event(1);
  event->payload = std::string("{\"a\":\0 1}", 9);
  EXPECT_EQ(words_of(HttpSender(options).send(event)), "confirmed");

  const auto request = endpoint.requests().at(0);

  EXPECT_EQ(request.line, "POST /in?key=canary HTTP/1.1");
  EXPECT_EQ(request.body, event->payload);
  EXPECT_EQ(request.header("Content-Length"), "9");
  EXPECT_EQ(request.header("Content-Type"), "application/json");
  EXPECT_EQ(request.header("Authorization"), "Bearer abc");
  EXPECT_EQ(request.header("X-Tenant"), "7");
  EXPECT_EQ(request.header("webhook-id"), event->id.value().to_string());
  EXPECT_EQ(request.header("webhook-signature"), "") << "without secrets";
  EXPECT_EQ(request.header("postrider-type"), "order.placed");
  EXPECT_EQ(request.header("postrider-seq"), "1");
  EXPECT_THAT(request.header("User-Agent"), HasSubstr("postrider/"));
  EXPECT_EQ(request.header("Expect"), "");
  EXPECT_EQ(request.header("Accept-Encoding"), "") << "nothing is decompressed";
}

TEST(HttpAnswers, A_large_body_is_sent_without_asking_first) {
  HttpEndpoint endpoint;
  auto event = http_event(1);
  event->payload = std::string(3U << 20U, 'x');

  EXPECT_EQ(words_of(HttpSender(loopback_options(endpoint.url())).send(event)), "confirmed");

  EXPECT_EQ(endpoint.requests().at(0).header("Expect"), "");
  EXPECT_EQ(endpoint.requests().at(0).body.size(), event->payload.size());
}

TEST(HttpAnswers, Details_name_host_and_port_and_neither_path_nor_query) {
  HttpEndpoint endpoint({Reply::of(500), Reply::cutting()});
  HttpSender sender(loopback_options(endpoint.url("/c4n4ry?token=c4n4ry")));

  for (std::uint8_t number = 1; number <= 2; ++number) {
    const auto outcome = sender.send(http_event(number));
    EXPECT_THAT(outcome.detail, HasSubstr("127.0.0.1:" + std::to_string(endpoint.port())));
    EXPECT_THAT(outcome.detail, Not(HasSubstr("c4n4ry")));
  }
}

}  // namespace
}  // namespace postrider::testing
