#include "demo/relay_pass.hpp"

#include <postrider/relay.hpp>
#include <postrider/store/sqlite.hpp>

#include "common/database.hpp"
#include "common/http_publisher.hpp"
#include "common/silent_observer.hpp"

namespace examples::demo {
namespace {

constexpr postrider::milliseconds answer_patience{10'000};

postrider::RouteBinding route_to_delivery(const RelayPass& pass) {
  postrider::RouteBinding binding;
  binding.route.name = "delivery";
  binding.route.events = {"order.*"};
  binding.route.destination = "http://127.0.0.1/events";
  binding.route.retry_delays = {pass.retry_delay, pass.retry_delay, pass.retry_delay};
  binding.route.timeout = answer_patience;
  HttpPublisherOptions http;
  http.port = pass.delivery_port;
  binding.publisher =
      postrider::testing::make_flaky_publisher(make_http_publisher(http), pass.faults);
  return binding;
}

}  // namespace

postrider::PassReport run_relay_once(const RelayPass& pass) {
  std::vector<postrider::RouteBinding> routes;
  routes.push_back(route_to_delivery(pass));
  const auto random = postrider::system_random();
  SilentObserver observer;
  postrider::Relay relay(postrider::make_sqlite_store({pass.shop_database, {}}), std::move(routes),
                         postrider::RelayOptions{}, postrider::system_clock(), *random, observer);
  return value_or_throw(relay.run_once());
}

}  // namespace examples::demo
