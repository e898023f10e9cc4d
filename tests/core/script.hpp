#pragma once
/// \file
/// A hand that answers what the relay's core asks for, one step at a time.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/testing/manual_clock.hpp>

#include "core/relay_core.hpp"

namespace postrider::core {

inline Error store_error(Disposition disposition) {
  return {ErrorCode::unavailable, disposition, "planted", "test", ""};
}

inline Route route_named(const std::string& name) {
  Route route;
  route.name = name;
  route.destination = "test:";
  return route;
}

/// Answers the core's store calls as a healthy store with the given events would, one at a time.
class Script {
 public:
  explicit Script(std::vector<Route> routes = {route_named("all")}, RelayOptions options = {})
      : core_("owner", options, std::move(routes), ids_, *random_) {}

  template <class Wanted>
  Wanted take() {
    for (auto action = pending_.begin(); action != pending_.end(); ++action) {
      if (auto* found = std::get_if<Wanted>(&*action)) {
        auto taken = std::move(*found);
        pending_.erase(action);
        return taken;
      }
    }
    ADD_FAILURE() << "the core did not ask for it";
    return {};
  }
  template <class Wanted>
  [[nodiscard]] bool wants() const {
    for (const auto& action : pending_) {
      if (std::holds_alternative<Wanted>(action)) return true;
    }
    return false;
  }

  void give(Input input) {
    for (auto& action : core_.step(std::move(input), clock_.steady())) {
      if (auto* notify = std::get_if<action::Notify>(&action)) {
        notices_.push_back(notify->notice);
      } else {
        pending_.push_back(std::move(action));
      }
    }
  }

  void begin(bool continuous = false, Suspicion suspicion = {}) {
    give(input::Begin{continuous});
    (void)take<action::Lease>();
    give(leased(1, suspicion));
    (void)take<action::TakeHeld>();
    give(input::TookHeld{});
  }
  [[nodiscard]] input::Leased leased(std::int64_t token = 1, Suspicion suspicion = {}) const {
    LeaseGrant grant;
    grant.leases.push_back({{Partition(0), FencingToken(token)}, true, ReadMark(), 0, suspicion});
    return {std::move(grant), clock_.steady()};
  }
  /// The answer of a store in which `owner` has a lease that lasts as long as ours would.
  [[nodiscard]] input::Leased owned_by(const std::string& owner) const {
    LeaseGrant grant;
    grant.foreign.push_back({Partition(0), owner, std::chrono::seconds(5)});
    return {std::move(grant), clock_.steady()};
  }
  [[nodiscard]] static input::Claimed claimed(std::vector<std::int64_t> seqs) {
    ClaimedBatch batch;
    for (const auto seq : seqs) {
      auto event = std::make_shared<Event>();
      event->seq = Seq(seq);
      event->type = "order.placed";
      event->aggregate = Aggregate{"order", std::to_string(seq)};
      batch.events.push_back({std::move(event), Partition(0), std::nullopt, ""});
    }
    batch.mark = ReadMark(seqs.empty() ? "0" : std::to_string(seqs.back()));
    return {std::move(batch)};
  }
  void read(std::vector<std::int64_t> seqs) {
    (void)take<action::TakeDue>();
    give(input::TookDue{});
    (void)take<action::Claim>();
    give(claimed(std::move(seqs)));
  }
  static input::Outcomes confirmed(const action::Submit& submit) {
    input::Outcomes outcomes;
    for (const auto& message : submit.messages) {
      outcomes.outcomes.push_back({message.attempt, Outcome::confirmed()});
    }
    return outcomes;
  }
  [[nodiscard]] bool was_told(NoticeKind kind) const {
    for (const auto& notice : notices_) {
      if (notice.kind == kind) return true;
    }
    return false;
  }

  testing::ManualClock clock_;
  std::unique_ptr<Random> random_ = seeded_random(1);
  IdGenerator ids_{clock_, *random_};
  RelayCore core_;
  std::vector<Action> pending_;
  std::vector<Notice> notices_;
};

}  // namespace postrider::core
