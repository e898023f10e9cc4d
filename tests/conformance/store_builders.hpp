#pragma once
/// \file
/// What the store suite is written with: short ways to make events, deliveries and settles.

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/testing/store_conformance.hpp>

#include "conformance/common_builders.hpp"

namespace postrider::testing {

/// An event of aggregate order/`id`.
[[nodiscard]] NewEvent order_event(std::string id, std::string payload = "{}");
/// An event without aggregate.
[[nodiscard]] NewEvent lone_event(std::string payload = "{}");
/// `count` events of aggregate order/`id`.
[[nodiscard]] std::vector<NewEvent> order_events(std::string id, std::size_t count);
/// Aggregate ids whose events lie in partitions 0, 1, …, `count` - 1 of `partitions`.
[[nodiscard]] std::vector<std::string> one_order_per_partition(std::int32_t partitions,
                                                               std::size_t count);

std::vector<EventId> add(Store& store, std::vector<NewEvent> events);

/// One relay's hands: leases, reads and settles at the test's time.
class Claimant {
 public:
  Claimant(Store& store, const ManualClock& clock, std::string owner = "relay-1")
      : store_(&store), clock_(&clock), owner_(std::move(owner)) {}

  static constexpr milliseconds lease_time{30'000};

  /// Takes what it can get, up to `at_most` partitions.
  LeaseGrant lease(std::size_t at_most = 1024);
  void release();
  [[nodiscard]] const std::vector<Lease>& leases() const { return leases_; }
  [[nodiscard]] std::vector<Partition> partitions() const;

  /// Requests that name all partitions of this relay, ready to be narrowed.
  [[nodiscard]] ClaimRequest claim_request(std::vector<ReadMark> after) const;
  [[nodiscard]] DueRequest due_request(std::vector<std::string> routes = {"out"}) const;
  [[nodiscard]] HeldRequest held_request() const;
  /// With all leases, the current time and nothing to do.
  [[nodiscard]] SettleRequest settle_request() const;

  ClaimedBatch claim(const ClaimRequest& request);
  /// After what this relay claimed before.
  ClaimedBatch claim();
  /// From the first row on.
  ClaimedBatch claim_all();
  DueBatch due(const DueRequest& request);
  DueBatch due(std::vector<std::string> routes = {"out"});
  HeldBatch held(const HeldRequest& request);
  HeldBatch held();
  SettleResult settle(const SettleRequest& request);

 private:
  Store* store_;
  const ManualClock* clock_;
  std::string owner_;
  std::vector<Lease> leases_;
  ReadMark mark_;
};

/// A change of a builder's default.
using Change = std::function<void(NewDelivery&)>;

/// A pending delivery of `claimed` on the route "out", due at once, ordered by aggregate.
[[nodiscard]] NewDelivery delivery_of(const ClaimedEvent& claimed, const Change& change = {});
/// An update of `row` to `status` that sees the row as it is.
[[nodiscard]] DeliveryUpdate update_of(const DueDelivery& row, DeliveryStatus status);
[[nodiscard]] DeliveryUpdate update_of(const NewDelivery& row, DeliveryStatus status);

/// The request with `claimed` marked as routed, and these deliveries stored.
[[nodiscard]] SettleRequest routing(SettleRequest request, const ClaimedEvent& claimed,
                                    std::vector<NewDelivery> deliveries = {});
[[nodiscard]] SettleRequest updating(SettleRequest request, std::vector<DeliveryUpdate> updates);

/// Adds `event`, claims it and settles it as routed with one delivery. Requires: `relay` has
/// leases.
NewDelivery store_delivery(Store& store, Claimant& relay, NewEvent event,
                           const Change& change = {});
/// The same for an event that is held. Returns the row.
NewDelivery store_held(Store& store, Claimant& relay, NewEvent event);
/// Adds `event`, claims it and settles it as routed, with nothing left open.
ClaimedEvent store_routed(Store& store, Claimant& relay, NewEvent event);

/// Changes for `delivery_of`.
[[nodiscard]] Change with_status(DeliveryStatus status);
[[nodiscard]] Change dead(OnFailed on_failed = OnFailed::halt);
[[nodiscard]] Change on_route(std::string route);
[[nodiscard]] Change due_in(milliseconds wait);
[[nodiscard]] Change unordered();
[[nodiscard]] Change ordered_globally();
/// A job of the route "ship": ReserveStock in the queue "shipping".
[[nodiscard]] Change job(std::string unique_key = "");
/// The same, failed before any attempt.
[[nodiscard]] Change failed_job(std::string unique_key = "");
/// All of them, in the order given.
[[nodiscard]] Change all_of(std::initializer_list<Change> changes);

[[nodiscard]] std::vector<EventId> ids_of(const ClaimedBatch& batch);
[[nodiscard]] std::vector<DeliveryId> ids_of(const DueBatch& batch);
[[nodiscard]] std::vector<DeliveryId> ids_of(const HeldBatch& batch);
[[nodiscard]] std::vector<DeliveryId> ids_of(const std::vector<DeadLetter>& letters);
[[nodiscard]] std::vector<EventId> ids_of(const EventPage& page);
[[nodiscard]] std::vector<DeliveryId> ids_of(const DeliveryPage& page);

}  // namespace postrider::testing
