// A service with a worker inside, as its clients see it: requests, labels that appear, and an end.
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/database.hpp"
#include "common/http.hpp"
#include "examples/example_service.hpp"

namespace postrider::testing {
namespace {

using examples::HttpResponse;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto patience = 60s;

class EmbeddedWorkerExample : public ::testing::Test {
 protected:
  EmbeddedWorkerExample() { start(); }

  void start() {
    service_ = std::make_unique<ExampleService>(
        folder_, "embedded_worker", std::vector<std::string>{"--database", database_path()},
        "listening on");
  }
  /// Its exit code.
  int terminate() {
    service_->process().signal(SIGTERM);
    return service_->process().wait(patience);
  }
  [[nodiscard]] std::string database_path() const { return folder_.file("parcels.db"); }

  [[nodiscard]] HttpResponse send(const std::string& method, const std::string& body = {}) const {
    const auto answer =
        examples::send_http(service_->port(), {method, "/parcels", {}, body}, Deadline::after(30s));
    if (answer) return answer.value();
    ADD_FAILURE() << describe(answer.error());
    return {0, {}, {}};
  }
  [[nodiscard]] bool shows(const std::string& parcel) const {
    return eventually([&] { return send("GET").body.find(parcel) != std::string::npos; });
  }

  TemporaryFolder folder_{"parcels"};
  std::unique_ptr<ExampleService> service_;
};

TEST_F(EmbeddedWorkerExample, A_parcel_that_is_posted_gets_its_label_in_the_same_process) {
  const auto answer = send("POST", R"({"item":"lamp"})");

  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "{\"parcelId\":1}\n");
  EXPECT_TRUE(shows(R"({"parcelId":1,"item":"lamp","label":"LABEL-1"})")) << send("GET").body;
}

TEST_F(EmbeddedWorkerExample, SIGTERM_ends_it_in_order_and_its_job_is_recorded) {
  EXPECT_EQ(send("POST", R"({"item":"lamp"})").status, 201);
  EXPECT_TRUE(shows("LABEL-1"));

  EXPECT_EQ(terminate(), 0) << service_->output();

  EXPECT_THAT(service_->output(), HasSubstr("parcels: stopped\n"));
  examples::Database database(database_path());
  EXPECT_EQ(database.value("SELECT group_concat(status) FROM outbox_deliveries"), "completed");
}

TEST_F(EmbeddedWorkerExample, Labels_that_were_owed_at_a_SIGTERM_are_printed_after_the_next_start) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(send("POST", R"({"item":"lamp"})").status, 201);
  EXPECT_EQ(terminate(), 0) << service_->output();

  start();

  examples::Database database(database_path());
  EXPECT_TRUE(eventually([&] {
    return database.number("SELECT count(*) FROM parcels WHERE label IS NOT NULL") == 20;
  }));
}

TEST_F(EmbeddedWorkerExample, Labels_that_were_owed_at_a_kill_are_printed_after_the_next_start) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(send("POST", R"({"item":"lamp"})").status, 201);
  service_->process().kill();

  start();

  examples::Database database(database_path());
  EXPECT_TRUE(eventually([&] {
    return database.number("SELECT count(*) FROM parcels WHERE label IS NOT NULL") == 20;
  }));
}

TEST_F(EmbeddedWorkerExample, A_request_that_is_refused_leaves_neither_parcel_nor_event) {
  for (const auto* body : {"", "no json", "[]", "{}", R"({"item":""})", R"({"item":7})",
                           R"({"item":"lamp","quantity":1})"}) {
    EXPECT_EQ(send("POST", body).status, 422) << body;
  }
  EXPECT_EQ(send("POST", R"({"item":")" + std::string(101, 'x') + R"("})").status, 422);
  EXPECT_EQ(send("DELETE").status, 405);

  examples::Database database(database_path());
  EXPECT_EQ(database.number("SELECT count(*) FROM parcels"), 0);
  EXPECT_EQ(database.number("SELECT count(*) FROM outbox_events"), 0);
}

}  // namespace
}  // namespace postrider::testing
