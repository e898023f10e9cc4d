// bench-drain --conninfo C --events N [--idle-looks L] [--amqp-port P --queue Q] [--window W]
//
// Carries N events from a PostgreSQL to a destination, the memory publisher where no port is given,
// as `postrider relay --loop` does, and ends when all are settled and L looks have found nothing.
// Prints {"seconds", "tail_seconds", "idle_look_ms", "resident_kib"}: until the last settle was
// committed, for the last tenth, of one look that finds nothing (median), and the most memory that
// was ever resident.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <postrider/publisher/amqp.hpp>
#include <postrider/relay.hpp>
#include <postrider/store/postgres.hpp>
#include <postrider/testing/memory_publisher.hpp>

#include "bench/arguments.hpp"

namespace postrider::bench {
namespace {

double seconds_between(Instant from, Instant to) {
  return std::chrono::duration<double>(to - from).count();
}

/// A store that looks at its watch: when the last event was settled, and how long a claim took that
/// found none.
class TimedStore final : public Store {
 public:
  TimedStore(std::unique_ptr<Store> inner, std::size_t events, std::size_t idle_looks)
      : inner_(std::move(inner)), events_(events), idle_looks_(idle_looks) {}

  /// `on_settled` is called after each settle, `on_done` once.
  void call(std::function<void()> on_settled, std::function<void()> on_done) {
    on_settled_ = std::move(on_settled);
    on_done_ = std::move(on_done);
  }
  [[nodiscard]] bool done() const {
    return settled_ >= events_ && idle_look_times_.size() >= idle_looks_;
  }
  [[nodiscard]] double seconds() const { return seconds_between(begun_, ended_); }
  [[nodiscard]] double tail_seconds() const { return seconds_between(tail_began_, ended_); }
  [[nodiscard]] double idle_look_ms() {
    if (idle_look_times_.empty()) return 0;
    const auto middle =
        idle_look_times_.begin() + static_cast<std::ptrdiff_t>(idle_look_times_.size() / 2);
    std::nth_element(idle_look_times_.begin(), middle, idle_look_times_.end());
    return *middle * 1000;
  }

  StoreTraits traits() const override { return inner_->traits(); }
  Result<void> check_schema(Deadline deadline) override { return inner_->check_schema(deadline); }
  Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) override {
    return inner_->add(events, deadline);
  }
  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline deadline) override {
    return inner_->add_once(event, key, deadline);
  }
  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    return inner_->lease(request, deadline);
  }
  Result<void> release(std::span<const Lease> leases, Deadline deadline) override {
    return inner_->release(leases, deadline);
  }
  Result<DueBatch> due(const DueRequest& request, Deadline deadline) override {
    return inner_->due(request, deadline);
  }
  Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) override {
    return inner_->held(request, deadline);
  }
  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) override {
    const auto asked = system_clock().steady();
    auto batch = inner_->claim(request, deadline);
    if (settled_ >= events_ && batch && batch->events.empty()) {
      idle_look_times_.push_back(seconds_between(asked, system_clock().steady()));
      if (done()) on_done_();
    }
    return batch;
  }
  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    auto result = inner_->settle(request, deadline);
    if (!result || !result->lost.empty()) return result;
    const auto before = settled_;
    settled_ += request.routed.size() - result->stale_events.size();
    const auto tail = events_ - events_ / 10;
    if (before < tail && settled_ >= tail) tail_began_ = system_clock().steady();
    if (before < events_ && settled_ >= events_) ended_ = system_clock().steady();
    on_settled_();
    if (done()) on_done_();
    return result;
  }

 private:
  const std::unique_ptr<Store> inner_;
  const std::size_t events_;
  const std::size_t idle_looks_;
  const Instant begun_ = system_clock().steady();
  Instant tail_began_{};
  Instant ended_{};
  std::size_t settled_ = 0;
  std::vector<double> idle_look_times_;
  std::function<void()> on_settled_;
  std::function<void()> on_done_;
};

class Silence final : public Observer {
 public:
  void notice(const Notice& notice) override {
    if (notice.kind == NoticeKind::route_paused || notice.kind == NoticeKind::store_failed) {
      std::cerr << to_string(notice.kind) << ": " << notice.code << " " << notice.detail << "\n";
    }
  }
};

RouteBinding route_to(const Arguments& arguments,
                      const std::shared_ptr<testing::Journal>& journal) {
  Route route;
  route.name = "all";
  route.window = static_cast<std::size_t>(arguments.number("window", 1000));
  if (!arguments.has("amqp-port")) {
    route.destination = "memory:";
    return {route, testing::make_memory_publisher(journal, route.window)};
  }
  AmqpOptions amqp;
  amqp.url = "amqp://guest:guest@127.0.0.1:" + arguments.text("amqp-port") + "/";
  amqp.routing_key = arguments.text("queue");
  amqp.window = route.window;
  route.destination = amqp.url;
  return {route, make_amqp_publisher(amqp)};
}

std::int64_t resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

nlohmann::json run(const Arguments& arguments) {
  const auto events = static_cast<std::size_t>(arguments.number("events", 0));
  const auto idle_looks = static_cast<std::size_t>(arguments.number("idle-looks", 0));
  auto owned = std::make_unique<TimedStore>(
      make_postgres_store({arguments.text("conninfo"), {}, 64}), events, idle_looks);
  auto& store = *owned;
  const auto journal = std::make_shared<testing::Journal>();
  std::vector<RouteBinding> routes;
  routes.push_back(route_to(arguments, journal));
  RelayOptions options;
  if (idle_looks > 0) options.sleep = milliseconds(2);
  const auto random = system_random();
  Silence observer;
  Relay relay(std::move(owned), std::move(routes), options, system_clock(), *random, observer);
  // What arrived in memory is dropped, as it is the relay's memory that is measured.
  store.call([&journal] { journal->clear(); }, [&relay] { relay.request_stop(); });
  const auto ended = relay.run();
  if (!ended) throw std::runtime_error(describe(ended.error()));
  if (!store.done()) throw std::runtime_error("the relay ended before all events were settled");
  return {{"seconds", store.seconds()},
          {"tail_seconds", store.tail_seconds()},
          {"idle_look_ms", store.idle_look_ms()},
          {"resident_kib", resident_kib()}};
}

}  // namespace
}  // namespace postrider::bench

int main(int count, char** words) {
  try {
    std::cout << postrider::bench::run(postrider::bench::Arguments(count, words)) << "\n";
    return 0;
  } catch (const std::exception& failure) {
    std::cout << failure.what() << "\n";
    return 1;
  }
}
