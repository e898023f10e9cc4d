#pragma once
/// \file
/// A relay with one route for everything.

#include <memory>
#include <utility>
#include <vector>

#include <postrider/relay.hpp>

namespace postrider::testing {

/// Thread safety: as `Relay`.
class OneRouteRelay {
 public:
  OneRouteRelay(std::unique_ptr<Store> store, std::unique_ptr<Publisher> publisher,
                const RelayOptions& options)
      : relay_(std::move(store), route_to(std::move(publisher)), options, system_clock(), *random_,
               observer_) {}

  Relay& operator*() { return relay_; }
  Relay* operator->() { return &relay_; }

 private:
  class SilentObserver final : public Observer {
    void notice(const Notice&) override {}
  };

  static std::vector<RouteBinding> route_to(std::unique_ptr<Publisher> publisher) {
    Route route;
    route.name = "all";
    route.destination = "memory:";
    std::vector<RouteBinding> routes;
    routes.push_back({route, std::move(publisher)});
    return routes;
  }

  std::unique_ptr<Random> random_ = system_random();
  SilentObserver observer_;
  Relay relay_;
};

}  // namespace postrider::testing
