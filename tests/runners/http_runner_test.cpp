#include <gmock/gmock.h>

#include <postrider/runner/http.hpp>

#include "base/http_url.hpp"
#include "runner/http/http_verdict.hpp"
#include "runners/runner_kit.hpp"
#include "runners/scripted_endpoint.hpp"
#include "servers/loopback.hpp"
#include "values/event_line.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::unique_ptr<JobRunner> runner_for(const std::string& url, milliseconds answer_timeout = {}) {
  HttpRunnerOptions options;
  options.url = url;
  options.answer_timeout = answer_timeout;
  EXPECT_THAT(validate(options), IsEmpty());
  return make_http_runner(options);
}

AttemptEnd end_of_answer(ScriptedAnswer answer, milliseconds answer_timeout = {}) {
  ScriptedEndpoint endpoint({std::move(answer)});
  const auto runner = runner_for(endpoint.url(), answer_timeout);
  runner->start(task(1));
  return next_report(*runner).end;
}

std::string end_of_status(int status) {
  return words_of(end_of_answer(
      {"HTTP/1.1 " + std::to_string(status) + " Whatever\r\nContent-Length: 0\r\n\r\n"}));
}

TEST(HttpRunner, posts_the_event_with_the_ids_as_headers) {
  ScriptedEndpoint endpoint({{"HTTP/1.1 204 No Content\r\n\r\n"}});
  HttpRunnerOptions options;
  options.url = endpoint.url("/jobs?tenant=7");
  options.headers = {{"Authorization", "Bearer canary"}};
  ASSERT_THAT(validate(options), IsEmpty());
  const auto runner = make_http_runner(options);
  const auto sent = task(1);
  runner->start(sent);
  EXPECT_EQ(words_of(next_report(*runner).end), "done");

  const auto request = endpoint.requests(1).front();
  const auto delivery = sent.job.delivery_id.value().to_string();
  EXPECT_THAT(request, AllOf(StartsWith("POST /jobs?tenant=7 HTTP/1.1\r\n"),
                             EndsWith("\r\n\r\n" + event_line(*sent.event).value())));
  for (const auto& header :
       {"Host: " + endpoint.url("").substr(7), std::string("Content-Type: application/json"),
        std::string("Authorization: Bearer canary"), "Idempotency-Key: " + delivery,
        std::string("Postrider-Job: ship_order"), std::string("Postrider-Queue: shipping"),
        "Postrider-Delivery-Id: " + delivery,
        "Postrider-Event-Id: " + sent.job.event_id.value().to_string(),
        "Postrider-Dispatch-Id: " + sent.dispatch_id.value().to_string(),
        std::string("Postrider-Last-Attempt: true")}) {
    EXPECT_THAT(request, HasSubstr("\r\n" + header + "\r\n"));
  }
}

TEST(HttpRunner, the_status_is_the_answer) {
  EXPECT_EQ(end_of_status(200), "done");
  EXPECT_EQ(end_of_status(202), "done");
  EXPECT_EQ(end_of_status(302), "fail http_302");
  EXPECT_EQ(end_of_status(400), "fail http_400");
  EXPECT_EQ(end_of_status(404), "fail http_404");
  EXPECT_EQ(end_of_status(410), "fail http_410");
  EXPECT_EQ(end_of_status(408), "retry http_408");
  EXPECT_EQ(end_of_status(409), "retry http_409");
  EXPECT_EQ(end_of_status(425), "retry http_425");
  EXPECT_EQ(end_of_status(429), "retry http_429");
  EXPECT_EQ(end_of_status(500), "retry http_500");
  EXPECT_EQ(end_of_status(503), "retry http_503");
}

TEST(HttpRunner, Retry_After_is_the_delay_of_the_retry) {
  const auto end = end_of_answer({"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\n\r\n"});
  EXPECT_EQ(std::get<JobOutcome>(end).delay, milliseconds(30'000));
  const auto final = end_of_answer({"HTTP/1.1 404 Gone\r\nRetry-After: 30\r\n\r\n"});
  EXPECT_EQ(std::get<JobOutcome>(final).delay, std::nullopt);
}

TEST(HttpRunner, the_body_of_an_answer_is_not_waited_for) {
  EXPECT_EQ(words_of(end_of_answer(
                {"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\nand then", true})),
            "done");
}

TEST(HttpRunner, interim_answers_are_passed_over) {
  EXPECT_EQ(words_of(end_of_answer({"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
                                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"})),
            "done");
}

TEST(HttpRunner, what_is_no_answer_is_tried_again) {
  EXPECT_EQ(words_of(end_of_answer({""})), "retry connection_lost");
  EXPECT_EQ(words_of(end_of_answer({"HTTP/1.1 20"})), "retry connection_lost");
  EXPECT_EQ(words_of(end_of_answer({"SSH-2.0-OpenSSH\r\n\r\n"})), "retry bad_answer");
  EXPECT_EQ(words_of(end_of_answer(
                {"HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x') + "\r\n\r\n", true})),
            "retry bad_answer");
}

TEST(HttpRunner, an_endpoint_that_nobody_serves_is_tried_again) {
  const auto url = "http://127.0.0.1:" + std::to_string(free_port()) + "/?secret=canary";
  const auto runner = runner_for(url);
  runner->start(task(1));
  const auto end = next_report(*runner).end;
  EXPECT_EQ(words_of(end), "retry unavailable");
  EXPECT_THAT(std::get<JobOutcome>(end).detail, Not(HasSubstr("canary")));
}

TEST(HttpRunner, an_answer_that_does_not_come_in_time_is_tried_again) {
  EXPECT_EQ(words_of(end_of_answer({"", true}, milliseconds(30))), "retry http_timeout");
}

TEST(HttpRunner, a_stop_request_closes_the_connection) {
  ScriptedEndpoint endpoint({{"", true}});
  const auto runner = runner_for(endpoint.url());
  runner->start(task(1));
  ASSERT_EQ(endpoint.requests(1).size(), 1U);
  runner->request_stop(dispatch(7));  // of nobody
  runner->request_stop(dispatch(1));
  EXPECT_EQ(words_of(next_report(*runner).end), "interrupted");
  EXPECT_TRUE(endpoint.clients_have_left(1));
}

TEST(HttpRunner, close_ends_what_runs_and_what_comes_later) {
  ScriptedEndpoint endpoint({{"", true}});
  const auto runner = runner_for(endpoint.url());
  runner->start(task(1));
  ASSERT_EQ(endpoint.requests(1).size(), 1U);
  runner->close();
  runner->close();
  EXPECT_EQ(words_of(next_report(*runner).end), "interrupted");
  runner->start(task(2));
  EXPECT_EQ(words_of(next_report(*runner).end), "interrupted");
}

TEST(HttpRunner, many_requests_run_beside_each_other_and_each_ends_once) {
  ScriptedEndpoint endpoint({{"HTTP/1.1 200 OK\r\n\r\n"}});
  HttpRunnerOptions options;
  options.url = endpoint.url();
  options.slots = 50;
  const auto runner = make_http_runner(options);
  for (int number = 0; number < 50; ++number)
    runner->start(task(number, std::string(100'000, 'x')));
  std::map<DispatchId, std::string> ends;
  const auto deadline = Deadline::after(report_patience);
  while (ends.size() < 50 && !deadline.passed()) {
    for (const auto& report : runner->poll(deadline))
      EXPECT_TRUE(ends.emplace(report.dispatch_id, words_of(report.end)).second);
  }
  EXPECT_EQ(ends.size(), 50U);
  for (const auto& [id, words] : ends)
    EXPECT_EQ(words, "done");
}

TEST(HttpRunner, a_job_whose_event_cannot_be_given_fails) {
  const auto runner = runner_for("http://127.0.0.1/");
  auto malformed = task(1);
  malformed.malformed = "headers are no JSON";
  runner->start(malformed);
  EXPECT_EQ(words_of(next_report(*runner).end), "fail undecodable");
}

TEST(HttpRunner, traits_say_that_it_cannot_kill) {
  const auto runner = runner_for("http://127.0.0.1/");
  EXPECT_EQ(runner->traits().name, "http");
  EXPECT_EQ(runner->traits().slots, 10U);
  EXPECT_FALSE(runner->traits().can_kill);
  EXPECT_TRUE(runner->check_job("anything").ok());
  runner->wake();
  EXPECT_THAT(runner->poll(Deadline::after(report_patience)), IsEmpty());
}

TEST(HttpRunnerOptions, all_faults_are_told_at_once) {
  HttpRunnerOptions options;
  options.url = "ftp://example.com/canary";
  options.slots = 1001;
  options.connect_timeout = milliseconds(0);
  options.answer_timeout = milliseconds(-1);
  options.headers = {{"Postrider-Job", "x"}, {"X\n", "x"}, {"host", "x"}, {"y", "a\r\nb: c"}};
  options.ca_file = "/nowhere/ca.pem";
  const auto faults = validate(options);
  EXPECT_THAT(faults,
              ElementsAre(HasSubstr("http:// or https://"), HasSubstr("slots is 1001"),
                          HasSubstr("connect_timeout is 0"), HasSubstr("answer_timeout is -1"),
                          HasSubstr("headers has Postrider-Job"), HasSubstr("does not allow"),
                          HasSubstr("headers has host"), HasSubstr("does not allow"),
                          HasSubstr("ca_file")));
  EXPECT_THAT(faults.front(), Not(HasSubstr("canary")));
}

TEST(HttpUrl, is_taken_apart) {
  const auto parts = [](const std::string& text) {
    const auto url = parse_http_url(text);
    if (!url) return std::string("refused");
    return std::string(url->tls ? "tls " : "") + url->host + " " + url->port + " " + url->target +
           " " + url->authority();
  };
  EXPECT_EQ(parts("http://a"), "a 80 / a");
  EXPECT_EQ(parts("https://a.b/c?d#e"), "tls a.b 443 /c?d a.b");
  EXPECT_EQ(parts("http://a:8080?x"), "a 8080 /?x a:8080");
  EXPECT_EQ(parts("https://[::1]:99/"), "tls ::1 99 / [::1]:99");
  for (const auto* const text :
       {"", "a", "http:/a", "http://", "http://:80", "http://a:", "http://a:0", "http://a:65536",
        "http://a:8x", "http://me:secret@a/", "http://a/b c", "http://a/\n", "http://a/ä",
        "http://[::1", "http://[::1]x", "HTTP://a"}) {
    EXPECT_EQ(parts(text), "refused") << text;
  }
}

TEST(RetryAfter, is_seconds_or_a_date) {
  const Timestamp now(seconds(784'111'777));  // Sun, 06 Nov 1994 08:49:37 GMT
  const auto read = [&](std::string_view text) { return runner::parse_retry_after(text, now); };
  EXPECT_EQ(read("120"), seconds(120));
  EXPECT_EQ(read("Sun, 06 Nov 1994 08:50:07 GMT"), seconds(30));
  EXPECT_EQ(read("99999999999"), JobOutcome::most_delay);
  EXPECT_EQ(read("Sun, 06 Nov 2094 08:50:07 GMT"), JobOutcome::most_delay);
  for (const auto* const text :
       {"", "0", "-5", "1.5", "soon", "5s", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:50:07 CET"}) {
    EXPECT_EQ(read(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace postrider::testing
