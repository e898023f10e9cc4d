// F112, S17: what a name leads to is judged when a socket is about to be connected, and not before.
// This program answers look-ups itself, by tests/process/fake_resolver.cpp.

#include <cstdlib>

#include <gmock/gmock.h>

#include "backends/http_sender.hpp"
#include "servers/http_endpoint.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {
namespace {

class HttpTargets : public ::testing::Test {
 protected:
  HttpTargets() {
    ::setenv("POSTRIDER_TEST_HOSTS", folder_.file("hosts").c_str(), 1);  // NOLINT: one thread yet
  }
  ~HttpTargets() override { ::unsetenv("POSTRIDER_TEST_HOSTS"); }  // NOLINT: as above

  void resolve_to(const std::string& addresses) const {
    folder_.write("hosts", "hook.example " + addresses + "\n");
  }
  HttpOptions options() const {
    auto made = loopback_options("http://hook.example:" + std::to_string(endpoint_.port()) + "/");
    made.allow.clear();
    return made;
  }

  TemporaryFolder folder_{"hosts"};
  HttpEndpoint endpoint_;
};

TEST_F(HttpTargets, WT_03_a_name_that_leads_inside_when_it_is_used_is_refused_before_a_connection) {
  for (const auto* const addresses : {"127.0.0.1", "127.0.0.1 127.0.0.1", "::1", "::ffff:127.0.0.1",
                                      "0.0.0.0", "127.0.0.1 ::1"}) {
    resolve_to(addresses);
    const auto outcome = HttpSender(options()).send(http_event(1));
    EXPECT_EQ(words_of(outcome), "unavailable address_refused") << addresses;
    EXPECT_THAT(outcome.detail, ::testing::HasSubstr("`allow`"));
  }
  EXPECT_EQ(endpoint_.connections(), 0);
}

TEST_F(HttpTargets, F112_a_name_that_changes_between_two_requests_is_judged_again) {
  auto rebound = options();
  rebound.allow = {"127.0.0.1"};
  HttpSender sender(rebound);
  resolve_to("127.0.0.1");
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
  (void)sender.publisher().close(Deadline::after(seconds(1)));

  resolve_to("127.0.0.2");

  EXPECT_EQ(words_of(sender.send(http_event(2))), "unavailable address_refused");
  EXPECT_EQ(endpoint_.connections(), 1);
}

TEST_F(HttpTargets, F112_of_several_addresses_only_one_that_is_allowed_is_connected_to) {
  auto mixed = options();
  mixed.allow = {"127.0.0.1"};
  resolve_to("127.0.0.2 127.0.0.1");

  EXPECT_EQ(words_of(HttpSender(mixed).send(http_event(1))), "confirmed");
}

TEST_F(HttpTargets, F112_proxies_of_the_environment_are_not_used) {
  HttpEndpoint proxy;
  for (const auto* const name : {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"})
    ::setenv(name, proxy.url("").c_str(), 1);  // NOLINT: one thread yet
  auto direct = options();
  direct.allow = {"127.0.0.1"};
  resolve_to("127.0.0.1");

  EXPECT_EQ(words_of(HttpSender(direct).send(http_event(1))), "confirmed");

  for (const auto* const name : {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"})
    ::unsetenv(name);  // NOLINT: as above
  EXPECT_EQ(proxy.connections(), 0);
}

TEST_F(HttpTargets, A_proxy_that_is_asked_for_is_asked_to_connect_and_may_refuse) {
  HttpEndpoint proxy({Reply::of(403)});
  auto proxied = options();
  proxied.allow = {"127.0.0.1"};
  proxied.proxy = proxy.url("");

  const auto outcome = HttpSender(proxied).send(http_event(1));

  EXPECT_EQ(to_string(outcome.kind), "unavailable") << "nothing was sent";
  ASSERT_GE(proxy.requests().size(), 1U);
  EXPECT_EQ(proxy.requests()[0].line.substr(0, 20), "CONNECT hook.example");
  EXPECT_EQ(endpoint_.connections(), 0);
}

TEST_F(HttpTargets, A_proxy_at_an_address_that_is_not_allowed_is_not_used) {
  HttpEndpoint proxy;
  auto proxied = options();
  proxied.proxy = proxy.url("");

  EXPECT_EQ(words_of(HttpSender(proxied).send(http_event(1))), "unavailable address_refused");
  EXPECT_EQ(proxy.connections(), 0);
}

TEST_F(HttpTargets, A_name_that_does_not_resolve_is_an_outage) {
  resolve_to("fail");

  EXPECT_EQ(words_of(HttpSender(options()).send(http_event(1))), "unavailable host_not_found");
}

TEST_F(HttpTargets, A_look_up_that_hangs_is_not_waited_for) {
  resolve_to("slow 20000");
  auto impatient = options();
  impatient.connect_timeout = milliseconds(300);
  const auto start = std::chrono::steady_clock::now();
  {
    HttpSender sender(impatient);
    EXPECT_EQ(words_of(sender.send(http_event(1))), "unavailable timeout");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
}

}  // namespace
}  // namespace postrider::testing
