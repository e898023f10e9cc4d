// A relay between a store and real endpoints: what a route does when one of them is gone, dead, or
// refuses one event for ever.

#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include <postrider/relay.hpp>
#include <postrider/testing/memory_store.hpp>

#include "backends/http_sender.hpp"
#include "process/patience.hpp"
#include "servers/http_endpoint.hpp"

namespace postrider::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HttpRelay : public ::testing::Test {
 protected:
  class Silent final : public Observer {
    void notice(const Notice& /*notice*/) override {}
  };

  HttpRelay() {
    options_.sleep = milliseconds(5);
    options_.probe_least = milliseconds(5);
    options_.probe_most = milliseconds(50);
    options_.settle_patience = milliseconds(50);
    options_.batch = 50;
  }

  void add(const std::vector<std::pair<std::string, std::string>>& aggregates_and_payloads) {
    std::vector<NewEvent> events;
    for (const auto& [aggregate, payload] : aggregates_and_payloads) {
      NewEvent event;
      event.type = "order.placed";
      event.aggregate = Aggregate{"order", aggregate};
      event.payload = payload;
      events.push_back(std::move(event));
    }
    ASSERT_TRUE(make_memory_store(database_)->add(events, Deadline::after(http_patience)));
  }

  static RouteBinding binding(const std::string& name, const HttpEndpoint& endpoint) {
    Route route;
    route.name = name;
    route.destination = endpoint.url();
    route.retry_delays = {milliseconds(1), milliseconds(1)};
    route.timeout = http_patience;
    return {route, make_http_publisher(loopback_options(endpoint.url()))};
  }
  std::unique_ptr<Relay> relay(std::vector<RouteBinding> routes) {
    return std::make_unique<Relay>(make_memory_store(database_), std::move(routes), options_,
                                   system_clock(), *random_, observer_);
  }
  std::unique_ptr<Relay> relay(const HttpEndpoint& endpoint) {
    std::vector<RouteBinding> routes;
    routes.push_back(binding("hook", endpoint));
    return relay(std::move(routes));
  }
  std::vector<DeadLetter> dead_letters() {
    return make_memory_operations(database_)
        ->dead_letters({}, Deadline::after(http_patience))
        .value();
  }
  static std::vector<std::string> bodies(const std::vector<SeenRequest>& requests) {
    std::vector<std::string> all;
    for (const auto& request : requests)
      all.push_back(request.body);
    return all;
  }

  std::shared_ptr<MemoryDatabase> database_ = make_memory_database(4);
  std::unique_ptr<Random> random_ = seeded_random(3);
  Silent observer_;
  RelayOptions options_;
};

TEST_F(HttpRelay, WT_06_and_F106_a_route_whose_endpoint_is_gone_holds_everything_until_resumed) {
  std::atomic<bool> gone = true;
  HttpEndpoint endpoint(
      [&](const SeenRequest&, std::size_t) { return Reply::of(gone ? 410 : 204); });
  add({{"1", "a"}, {"1", "b"}, {"1", "c"}});
  {
    auto first = relay(endpoint);
    ASSERT_TRUE(first->run_once());
    ASSERT_TRUE(first->run_once());
  }
  gone = false;
  add({{"1", "d"}});
  auto second = relay(endpoint);
  ASSERT_TRUE(second->run_once());
  ASSERT_TRUE(second->run_once());
  EXPECT_THAT(bodies(endpoint.requests()), ElementsAre("a")) << "also after a restart";
  EXPECT_THAT(dead_letters(), IsEmpty()) << "nothing has failed";

  const auto operations = make_memory_operations(database_);
  const auto deadline = Deadline::after(http_patience);
  EXPECT_THAT(operations->status(std::nullopt, deadline)->paused_routes, Contains("hook"));
  ASSERT_TRUE(operations->route_resume("hook", {"test", "it is back"}, std::nullopt, deadline));
  EXPECT_TRUE(comes_true([&] {
    (void)second->run_once();
    return endpoint.requests().size() >= 5;
  }));

  EXPECT_THAT(bodies(endpoint.requests()), ElementsAre("a", "a", "b", "c", "d"));
}

TEST_F(HttpRelay, WT_14_and_F109_a_dead_endpoint_with_a_backlog_does_not_hold_up_another) {
  HttpEndpoint dead([](const SeenRequest&, std::size_t) { return Reply::holding(); });
  HttpEndpoint good;
  std::vector<std::pair<std::string, std::string>> events;
  for (int i = 0; i < 600; ++i)
    events.emplace_back(std::to_string(i % 100), std::to_string(i));
  add(events);
  std::vector<RouteBinding> routes;
  routes.push_back(binding("dead", dead));
  routes.push_back(binding("good", good));
  auto running = relay(std::move(routes));
  std::thread thread([&] { EXPECT_TRUE(running->run()); });

  EXPECT_THAT(good.await_requests(events.size()), SizeIs(events.size()));
  EXPECT_LE(dead.requests().size(), HttpOptions().connections) << "none of which was answered";

  running->request_stop();
  dead.release();
  thread.join();
}

TEST_F(HttpRelay, F121_an_event_that_is_never_taken_becomes_a_dead_letter_and_others_flow) {
  HttpEndpoint endpoint([](const SeenRequest& request, std::size_t) {
    if (request.body == "bad") return Reply::of(422);
    return Reply::of(request.body == "broken" ? 500 : 204);
  });
  add({{"1", "bad"}, {"1", "behind"}, {"2", "broken"}, {"3", "good"}});
  auto running = relay(endpoint);

  EXPECT_TRUE(comes_true([&] {
    (void)running->run_once();
    return dead_letters().size() >= 2;
  }));

  auto dead = dead_letters();
  std::sort(dead.begin(), dead.end(), [](const auto& one, const auto& other) {
    return one.aggregate_key < other.aggregate_key;
  });
  ASSERT_THAT(dead, SizeIs(2));
  EXPECT_EQ(dead[0].delivery.failure_code, "http_422");
  EXPECT_FALSE(dead[0].delivery.ambiguous);
  EXPECT_EQ(dead[1].delivery.failure_code, "http_500");
  EXPECT_TRUE(dead[1].delivery.ambiguous) << "who fails in the middle may have done the work";
  const auto seen = bodies(endpoint.requests());
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "bad"), 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "broken"), 3) << "one attempt and two retries";
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "good"), 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "behind"), 0) << "its aggregate is halted";
}

}  // namespace
}  // namespace postrider::testing
