// From URLs to backends, and what of a URL may be shown.

#include "registry/registry.hpp"
#include "registry/runners.hpp"

#include <gmock/gmock.h>

namespace postrider::registry {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Redacted, hides_passwords_wherever_they_stand) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"sqlite:app.db", "sqlite:app.db"},
      {"stdout:", "stdout:"},
      {"amqp://host:5672/vhost", "amqp://host:5672/vhost"},
      {"amqp://user@host/", "amqp://user@host/"},
      {"amqp://user:canary@host/", "amqp://user:***@host/"},
      {"amqp://user:can/ary@host/", "amqp://user:***@host/"},
      {"amqp://user:can@canary@host/", "amqp://user:***@host/"},
      {"postgresql://u:can?ary@host/db", "postgresql://***@host/db"},
      {"postgresql://u:can:ary@host/db?sslmode=require",
       "postgresql://u:***@host/db?sslmode=require"},
      {"postgresql://host/db?user=u&password=canary&sslmode=require",
       "postgresql://host/db?user=u&password=***&sslmode=require"},
      {"postgresql://host/db?PassWord=canary&x", "postgresql://host/db?PassWord=***&x"},
      {"postgresql://u@host/db?password=canary&options=a@b", "postgresql://***@b"},
  };
  for (const auto& [url, shown] : rows) {
    EXPECT_EQ(redacted(url), shown) << url;
  }
}

std::string store_error(const std::string& url, const SchemaNames& names = {}) {
  const auto backend = open_backend(url, names);
  return backend.ok() ? "none" : backend.error().message;
}

std::string destination_error(const std::string& url) {
  const auto destination = find_destination(url, {});
  return destination.ok() ? "none" : destination.error().message;
}

std::string source_error(const std::string& url, const std::string& queue) {
  SourceOptions options;
  options.amqp.queue = queue;
  const auto source = find_source(url, options);
  return source.ok() ? "none" : source.error().message;
}

TEST(Registry, says_what_is_wrong_with_a_url_and_what_would_be_right) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {store_error("app.db"), "such as sqlite:PATH"},
      {store_error("mongodb://u:canary@host"), "'mongodb:' is no store that is known"},
      {store_error("mongodb:x"), "sqlite:PATH, postgresql://…, postgres://…"},
      {destination_error("events.jsonl"), "such as file:PATH"},
      {destination_error("carrier-pigeon:x"), "'carrier-pigeon:' is no destination"},
      {destination_error("kafka://x"),
       "file:PATH, stdout:, amqp://…, amqps://…, https://…, http://…"},
      {destination_error("file:"), "names no file"},
      {destination_error("stdout:x"), "Write stdout:."},
      {source_error("rabbit", "q"), "such as amqp://"},
      {source_error("sqlite:canary", "q"), "'sqlite:' is no source of tasks"},
  };
  for (const auto& [message, expected] : rows) {
    EXPECT_THAT(message, AllOf(HasSubstr(expected), Not(HasSubstr("canary"))));
  }
}

TEST(Registry, knows_what_a_sqlite_url_cannot_say) {
  if (store_error("sqlite:app.db") != "none") GTEST_SKIP() << "built without SQLite";
  EXPECT_THAT(store_error("sqlite:"), HasSubstr("names no file. Write sqlite:app.db"));
  EXPECT_THAT(store_error("sqlite://app.db"), HasSubstr("has a host, and a file has none"));
  EXPECT_THAT(store_error("sqlite:app.db", {"s", ""}), HasSubstr("SQLite has no schemas"));
}

TEST(Registry, opens_what_it_knows) {
  EXPECT_EQ(destination_error("file:a"), "none");
  EXPECT_EQ(destination_error("file:///var/a"), "none");
  EXPECT_EQ(find_destination("file:a", {}).value().publisher()->traits().name, "file");
  EXPECT_TRUE(find_destination("stdout:", {}).value().standard_output);
  EXPECT_EQ(find_destination("file:a", {7, {}, {}}).value().publisher()->traits().window, 7U);
}

TEST(Registry, shows_where_tasks_come_from_without_the_password) {
  SourceOptions options;
  options.amqp.queue = "shipping";
  const auto source = find_source("amqp://u:canary@host/jobs", options);
  if (!source && source.error().code == ErrorCode::unsupported) {
    GTEST_SKIP() << "built without RabbitMQ";
  }
  ASSERT_TRUE(source);
  EXPECT_EQ(source->shown_url, "amqp://u:***@host/jobs shipping");
  EXPECT_EQ(source->source()->traits().name, "amqp");
  EXPECT_THAT(source_error("amqp://u:canary@host/jobs", ""),
              AllOf(HasSubstr("queue has 0 bytes"), Not(HasSubstr("canary"))));
}

TEST(Registry, an_endpoint_is_shown_without_what_its_query_may_hold) {
  const auto endpoint = find_destination("https://hook.example/in?key=canary", {});
  if (!endpoint.ok()) GTEST_SKIP() << "built without HTTP";
  EXPECT_EQ(endpoint->shown_url, "https://hook.example/in?***");
  EXPECT_EQ(endpoint->publisher()->traits().name, "http");
  EXPECT_THAT(destination_error("https://127.0.0.1/?canary"),
              AllOf(HasSubstr("name it in allow"), Not(HasSubstr("canary"))));
  EXPECT_THAT(destination_error("http://u:canary@hook.example/"),
              AllOf(HasSubstr("user or password"), Not(HasSubstr("canary"))));
}

TEST(Registry, what_cannot_run_jobs_is_refused_before_a_worker_starts) {
  EXPECT_EQ(find_runner(RunnerChoice{}).error().disposition, Disposition::stop);
  RunnerChoice http;
  http.http = "file:jobs";
  EXPECT_EQ(find_runner(http).error().disposition, Disposition::stop);
  EXPECT_EQ(runner_name(http), "http");
  EXPECT_EQ(runner_name(RunnerChoice{}), "exec");
}

TEST(Registry, a_backend_that_this_build_lacks_is_named_with_the_way_to_get_it) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {store_error("sqlite:app.db"), "POSTRIDER_WITH_SQLITE=ON"},
      {store_error("postgresql://u:canary@h/d"), "POSTRIDER_WITH_POSTGRES=ON"},
      {store_error("postgres://u:canary@h/d"), "POSTRIDER_WITH_POSTGRES=ON"},
      {destination_error("amqp://u:canary@h/"), "POSTRIDER_WITH_RABBITMQ=ON"},
      {destination_error("amqps://u:canary@h/"), "POSTRIDER_WITH_RABBITMQ=ON"},
      {source_error("amqp://u:canary@h/", "q"), "POSTRIDER_WITH_RABBITMQ=ON"},
      {destination_error("https://h/?canary"), "POSTRIDER_WITH_HTTP=ON"},
  };
  for (const auto& [message, option] : rows) {
    if (message == "none") continue;  // built in
    EXPECT_THAT(message,
                AllOf(HasSubstr("was built without"), HasSubstr(option), Not(HasSubstr("canary"))));
  }
}

}  // namespace
}  // namespace postrider::registry
