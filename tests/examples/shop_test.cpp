// The example shop as its clients see it: a process, requests, and what stands in its database.
#include <sys/socket.h>

#include <thread>

#include <gmock/gmock.h>

#include "common/database.hpp"
#include "common/http.hpp"
#include "examples/example_service.hpp"

namespace postrider::testing {
namespace {

using examples::HttpRequest;
using examples::HttpResponse;
using ::testing::HasSubstr;

constexpr auto lamp = R"({"item":"lamp","quantity":1})";

HttpRequest order(const std::string& body, const std::string& key = {}) {
  HttpRequest request{"POST", "/orders", {{"content-type", "application/json"}}, body};
  if (!key.empty()) request.headers["idempotency-key"] = key;
  return request;
}

class ShopExample : public ::testing::Test {
 protected:
  ShopExample() { start(); }

  void start() {
    service_ = std::make_unique<ExampleService>(
        folder_, "shop", std::vector<std::string>{"--database", database_path()}, "listening on");
  }
  [[nodiscard]] std::string database_path() const { return folder_.file("shop.db"); }

  [[nodiscard]] HttpResponse send(const HttpRequest& request) const {
    const auto answer =
        examples::send_http(service_->port(), request, Deadline::after(std::chrono::seconds(30)));
    if (answer) return answer.value();
    ADD_FAILURE() << describe(answer.error());
    return {0, {}, {}};
  }

  void expect_rows(int orders, int events) const {
    examples::Database database(database_path());
    EXPECT_EQ(database.number("SELECT count(*) FROM orders"), orders);
    EXPECT_EQ(database.number("SELECT count(*) FROM outbox_events"), events);
  }

  TemporaryFolder folder_{"shop"};
  std::unique_ptr<ExampleService> service_;
};

TEST_F(ShopExample, R036_an_order_is_answered_201_and_stands_in_the_outbox) {
  const auto answer = send(order(lamp));

  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body,
            R"({"orderId":1,"item":"lamp","quantity":1,"totalCents":2500,"status":"placed"})"
            "\n");
  EXPECT_EQ(answer.headers.at("location"), "/orders/1");
  examples::Database database(database_path());
  const auto events =
      database.run("SELECT aggregate_type, aggregate_id, type, payload FROM outbox_events");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0],
            (examples::SqlRow{"order", "1", "order.placed",
                              R"({"orderId":1,"item":"lamp","quantity":1,"totalCents":2500})"}));
}

TEST_F(ShopExample, R038_R039_a_repeated_request_is_given_the_first_answer_and_does_nothing) {
  const auto first = send(order(lamp, "click-1"));
  const auto second = send(order(lamp, "click-1"));

  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.body, first.body);
  EXPECT_FALSE(first.headers.contains("idempotency-replayed"));
  EXPECT_EQ(second.headers.at("idempotency-replayed"), "true");
  expect_rows(1, 1);
}

TEST_F(ShopExample, The_same_key_on_another_request_is_refused) {
  EXPECT_EQ(send(order(lamp, "click-1")).status, 201);
  const auto other_body = send(order(R"({"item":"rug","quantity":1})", "click-1"));
  auto other_target = order(lamp, "click-1");
  other_target.target = "/orders/1/payment";

  EXPECT_EQ(other_body.status, 422);
  EXPECT_THAT(other_body.body, HasSubstr(R"("error":"key_reused")"));
  EXPECT_EQ(send(other_target).status, 422);
  expect_rows(1, 1);
}

TEST_F(ShopExample, A_request_that_is_sent_by_many_at_once_is_done_once) {
  std::vector<HttpResponse> answers(8);
  {
    std::vector<std::jthread> clients;
    for (auto& answer : answers)
      clients.emplace_back([&] { answer = send(order(lamp, "click-1")); });
  }

  for (const auto& answer : answers) {
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.body, answers[0].body);
  }
  expect_rows(1, 1);
}

TEST_F(ShopExample, R007_what_fails_in_the_transaction_leaves_neither_order_nor_event) {
  const auto pianos = R"({"item":"piano","quantity":2})";

  const auto refused = send(order(pianos, "click-1"));

  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr(R"("error":"sold_out")"));
  expect_rows(0, 0);
  EXPECT_EQ(send(order(pianos, "click-1")).status, 409) << "a refusal uses up no key";
  EXPECT_EQ(send(order(R"({"item":"piano","quantity":1})", "click-1")).status, 201);
}

TEST_F(ShopExample, An_order_is_paid_then_shipped_and_each_step_is_announced_once) {
  EXPECT_EQ(send(order(lamp)).status, 201);
  const auto shipped_too_early = send({"POST", "/orders/1/shipment", {}, ""});
  EXPECT_EQ(send({"POST", "/orders/1/payment", {}, ""}).status, 200);
  const auto paid_twice = send({"POST", "/orders/1/payment", {}, ""});
  EXPECT_EQ(send({"POST", "/orders/1/shipment", {}, ""}).status, 200);

  EXPECT_EQ(shipped_too_early.status, 409);
  EXPECT_THAT(shipped_too_early.body, HasSubstr("The order is placed, not paid."));
  EXPECT_EQ(paid_twice.status, 409);
  EXPECT_THAT(send({"GET", "/orders/1", {}, ""}).body, HasSubstr(R"("status":"shipped")"));
  examples::Database database(database_path());
  EXPECT_EQ(database.value("SELECT group_concat(type) FROM"
                           " (SELECT type FROM outbox_events ORDER BY seq)"),
            "order.placed,order.paid,order.shipped");
}

TEST_F(ShopExample, R006_an_answered_order_survives_a_kill) {
  EXPECT_EQ(send(order(lamp, "click-1")).status, 201);
  service_->process().kill();
  expect_rows(1, 1);

  start();
  EXPECT_EQ(send(order(lamp, "click-1")).status, 201) << "the client cannot know, and asks again";
  expect_rows(1, 1);
}

TEST_F(ShopExample, Requests_that_are_wrong_are_refused_with_the_reason) {
  struct Row {
    std::string what;
    HttpRequest request;
    int status;
    std::string told;
  };
  auto without_type = order(lamp);
  without_type.headers.clear();
  auto text = order(lamp);
  text.headers["content-type"] = "text/plain";
  const std::vector<Row> rows = {
      {"no JSON", order("{"), 400, "invalid_json"},
      {"not UTF-8", order("{\"item\":\"\xff\",\"quantity\":1}"), 400, "invalid_json"},
      {"nothing", order(""), 400, "invalid_json"},
      {"a list", order("[]"), 422, "no JSON object"},
      {"no item", order(R"({"quantity":1})"), 422, R"("field":"item")"},
      {"no text", order(R"({"item":7,"quantity":1})"), 422, R"("field":"item")"},
      {"empty", order(R"({"item":"","quantity":1})"), 422, R"("field":"item")"},
      {"long", order("{\"item\":\"" + std::string(101, 'x') + "\",\"quantity\":1}"), 422, "100"},
      {"unknown", order(R"({"item":"boat","quantity":1})"), 422, "unknown_item"},
      {"no quantity", order(R"({"item":"lamp"})"), 422, R"("field":"quantity")"},
      {"none", order(R"({"item":"lamp","quantity":0})"), 422, R"("field":"quantity")"},
      {"negative", order(R"({"item":"lamp","quantity":-1})"), 422, R"("field":"quantity")"},
      {"too many", order(R"({"item":"lamp","quantity":1001})"), 422, "1 to 1000"},
      {"half", order(R"({"item":"lamp","quantity":1.5})"), 422, R"("field":"quantity")"},
      {"a text", order(R"({"item":"lamp","quantity":"1"})"), 422, R"("field":"quantity")"},
      {"huge", order(R"({"item":"lamp","quantity":18446744073709551615})"), 422, "quantity"},
      {"extra", order(R"({"item":"lamp","quantity":1,"price":1})"), 422, "Only item and quantity"},
      {"no type", without_type, 415, "unsupported_type"},
      {"wrong type", text, 415, "unsupported_type"},
      {"long key", order(lamp, std::string(256, 'k')), 400, "invalid_key"},
      {"odd key", order(lamp, "k\xc3\xa9"), 400, "invalid_key"},
      {"large body", order(std::string(65'537, ' ')), 413, "too large"},
      {"no such path", {"POST", "/order", {}, ""}, 404, "unknown_path"},
      {"no such order", {"GET", "/orders/7", {}, ""}, 404, "unknown_order"},
      {"no number", {"GET", "/orders/1x", {}, ""}, 404, "unknown_order"},
      {"not there to pay", {"POST", "/orders/7/payment", {}, ""}, 404, "unknown_order"},
      {"other method", {"DELETE", "/orders/1", {}, ""}, 405, "method_not_allowed"},
  };
  for (const auto& row : rows) {
    const auto answer = send(row.request);
    EXPECT_EQ(answer.status, row.status) << row.what;
    EXPECT_THAT(answer.body, HasSubstr(row.told)) << row.what;
  }
  expect_rows(0, 0);
}

TEST_F(ShopExample, Bytes_that_are_no_http_are_answered_and_harm_nobody) {
  const int socket = connect_to_loopback(service_->port());
  ASSERT_GE(socket, 0);
  const std::string nonsense = "nonsense\r\n\r\n";
  ASSERT_EQ(::send(socket, nonsense.data(), nonsense.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(nonsense.size()));
  std::string answer(1000, '\0');
  answer.resize(static_cast<std::size_t>(
      std::max<ssize_t>(::recv(socket, answer.data(), answer.size(), 0), 0)));
  ::close(socket);

  EXPECT_THAT(answer, HasSubstr("400"));
  EXPECT_EQ(send(order(lamp)).status, 201);
}

}  // namespace
}  // namespace postrider::testing
