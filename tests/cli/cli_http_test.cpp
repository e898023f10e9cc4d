// Routes to HTTP endpoints, from the configuration to the request.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <atomic>
#include <map>

#include <postrider/webhook.hpp>

#include "cli/program.hpp"
#include "servers/http_endpoint.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr auto secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

class CliHttp : public ::testing::Test {
 protected:
  void configure(const std::string& url, const std::string& keys) {
    shop_.write("postrider.toml",
                "store = \"sqlite:app.db\"\n[[routes]]\nname = \"hook\"\nto = \"" + url +
                    "\"\n[routes.http]\n" + keys);
    ASSERT_EQ(shop_.run({"migrate"}).code, 0);
  }
  void configure_loopback(const std::string& more = "") {
    configure(endpoint_.url("/in?key=c4n4ry"),
              "plain_http = true\nallow = [\"127.0.0.1\"]\n" + more);
  }
  void emit() {
    ASSERT_EQ(shop_
                  .run({"emit", "--type", "order.placed", "--aggregate", "order/1", "--payload",
                        "{\"id\":1}"})
                  .code,
              0);
  }

  std::atomic<int> status_ = 204;
  HttpEndpoint endpoint_{[this](const SeenRequest&, std::size_t) { return Reply::of(status_); }};
  Workshop shop_;
};

TEST_F(CliHttp, an_event_arrives_signed_by_the_secret_of_the_environment) {
  configure_loopback("secrets = [\"${HOOK_SECRET}\"]\nheaders = [\"X-Tenant: ${TENANT}\"]\n");
  shop_.variables["HOOK_SECRET"] = secret;
  shop_.variables["TENANT"] = "c4n4ry";
  emit();

  const auto relay = shop_.run({"relay"});

  EXPECT_EQ(relay.code, 0) << relay.err;
  EXPECT_THAT(relay.out + relay.err, AllOf(Not(HasSubstr("c4n4ry")), Not(HasSubstr("whsec_"))));
  const auto requests = endpoint_.requests();
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].line, "POST /in?key=c4n4ry HTTP/1.1");
  EXPECT_EQ(requests[0].body, "{\"id\":1}");
  EXPECT_EQ(requests[0].header("X-Tenant"), "c4n4ry");
  const auto id = requests[0].header("webhook-id");
  const auto timestamp = requests[0].header("webhook-timestamp");
  const auto signature = requests[0].header("webhook-signature");
  EXPECT_TRUE(WebhookKeys::parse(std::vector<std::string>{secret})
                  .value()
                  .verify({id, timestamp, signature}, requests[0].body, system_clock().wall())
                  .ok());
}

TEST_F(CliHttp, secrets_are_masked_where_the_configuration_is_shown) {
  configure_loopback(
      "secrets = [\"whsec_c4n4ry\", \"${HOOK_SECRET}\"]\nheaders = [\"Authorization: "
      "c4n4ry\", \"X-Key: ${HOOK_KEY}\"]\n");

  const auto shown = shop_.run({"config", "show", "--format", "json"});

  ASSERT_EQ(shown.code, 0) << shown.err;
  std::map<std::string, std::string> values;
  for (const auto& value : nlohmann::json::parse(shown.out))
    values[value["key"]] = value["value"];
  EXPECT_EQ(values["routes.hook.http.secrets"], "[\"***\", \"${HOOK_SECRET}\"]");
  EXPECT_EQ(values["routes.hook.http.headers"], "[\"Authorization: ***\", \"X-Key: ${HOOK_KEY}\"]");
  EXPECT_EQ(values["routes.hook.http.connections"], "8");
  EXPECT_THAT(shown.out + shop_.run({"config", "show"}).out, Not(HasSubstr("c4n4ry")));
}

TEST_F(CliHttp, what_may_not_be_connected_to_is_refused_with_the_key_that_allows_it) {
  for (const auto* const url :
       {"http://127.0.0.1:1/", "https://169.254.169.254/latest?c4n4ry", "https://2130706433/"}) {
    configure(url, "connections = 2\n");
    const auto checked = shop_.run({"config", "check"});
    EXPECT_EQ(checked.code, 78) << url;
    EXPECT_THAT(checked.out, AllOf(HasSubstr("destination_unusable"), HasSubstr("allow"),
                                   Not(HasSubstr("c4n4ry"))));
    EXPECT_EQ(shop_.run({"relay"}).code, 78);
  }
}

TEST_F(CliHttp, an_endpoint_that_is_gone_pauses_its_route_until_a_person_resumes_it) {
  configure_loopback();
  emit();
  status_ = 410;
  (void)shop_.run({"relay"});
  status_ = 204;
  (void)shop_.run({"relay"});
  EXPECT_THAT(endpoint_.requests(), SizeIs(1)) << "it is left alone";
  EXPECT_THAT(shop_.run({"status"}).out, HasSubstr("hook"));
  EXPECT_THAT(shop_.run({"dead", "list"}).out, Not(HasSubstr("order.placed")));

  EXPECT_EQ(shop_.run({"route", "resume", "hook"}).code, 0);
  EXPECT_EQ(shop_.run({"relay"}).code, 0);

  EXPECT_THAT(endpoint_.requests(), SizeIs(2));
}

}  // namespace
}  // namespace postrider::testing
