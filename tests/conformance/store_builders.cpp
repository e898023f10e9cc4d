#include "conformance/store_builders.hpp"

#include <ostream>

#include "conformance/skip_list.hpp"

namespace postrider::testing {
namespace {

constexpr std::size_t plenty_of_rows = 10'000;
constexpr std::size_t plenty_of_bytes = 1U << 30U;

}  // namespace

void StoreConformance::SetUp() {
  harness_ = GetParam().make();
  if (IsSkipped()) return;  // by a harness whose server is not there
  ASSERT_NE(harness_, nullptr);
  store_ = harness_->open_store();
  ASSERT_NE(store_, nullptr);
}

void StoreConformance::TearDown() {
  // Without a harness its server is missing; that is no decision of the backend.
  if (harness_ != nullptr) expect_known_skip(GetParam().name);
  store_.reset();
  harness_.reset();
}

std::string case_name(const ::testing::TestParamInfo<StoreCase>& info) {
  return info.param.name;
}

void PrintTo(const StoreCase& store_case, std::ostream* out) {
  *out << store_case.name;
}

NewEvent lone_event(std::string payload) {
  NewEvent event;
  event.id = EventId(fresh_uuid());
  event.type = "order.placed";
  event.payload = std::move(payload);
  return event;
}

NewEvent order_event(std::string id, std::string payload) {
  auto event = lone_event(std::move(payload));
  event.aggregate = Aggregate{"order", std::move(id)};
  return event;
}

std::vector<NewEvent> order_events(std::string id, std::size_t count) {
  std::vector<NewEvent> events;
  for (std::size_t i = 0; i < count; ++i)
    events.push_back(order_event(id, std::to_string(i)));
  return events;
}

std::vector<std::string> one_order_per_partition(std::int32_t partitions, std::size_t count) {
  std::vector<std::string> orders(count);
  std::size_t found = 0;
  for (int id = 1; found < count; ++id) {
    const auto text = std::to_string(id);
    const auto partition = static_cast<std::size_t>(slot_of({"order", text}) % partitions);
    if (partition >= count || !orders[partition].empty()) continue;
    orders[partition] = text;
    ++found;
  }
  return orders;
}

std::vector<EventId> add(Store& store, std::vector<NewEvent> events) {
  return value_of(store.add(events, soon()));
}

LeaseGrant Claimant::lease(std::size_t at_most) {
  LeaseRequest request;
  request.owner = owner_;
  request.lease_time = lease_time;
  request.at_most = at_most;
  request.now = clock_->wall();
  auto grant = value_of(store_->lease(request, soon()));
  leases_.clear();
  for (const auto& granted : grant.leases)
    leases_.push_back(granted.lease);
  return grant;
}

void Claimant::release() {
  expect_ok(store_->release(leases_, soon()));
}

std::vector<Partition> Claimant::partitions() const {
  std::vector<Partition> partitions;
  for (const auto& lease : leases_)
    partitions.push_back(lease.partition);
  return partitions;
}

ClaimRequest Claimant::claim_request(std::vector<ReadMark> after) const {
  ClaimRequest request;
  request.after = std::move(after);
  request.partitions = partitions();
  request.limit = plenty_of_rows;
  request.bytes = plenty_of_bytes;
  request.now = clock_->wall();
  return request;
}

DueRequest Claimant::due_request(std::vector<std::string> routes) const {
  DueRequest request;
  request.partitions = partitions();
  request.routes = std::move(routes);
  request.limit = plenty_of_rows;
  request.bytes = plenty_of_bytes;
  request.now = clock_->wall();
  return request;
}

HeldRequest Claimant::held_request() const {
  HeldRequest request;
  request.partitions = partitions();
  request.limit = plenty_of_rows;
  request.now = clock_->wall();
  return request;
}

SettleRequest Claimant::settle_request() const {
  SettleRequest request;
  request.leases = leases_;
  request.now = clock_->wall();
  return request;
}

ClaimedBatch Claimant::claim(const ClaimRequest& request) {
  auto batch = value_of(store_->claim(request, soon()));
  mark_ = batch.mark;
  return batch;
}

ClaimedBatch Claimant::claim() {
  return claim(claim_request({mark_}));
}

ClaimedBatch Claimant::claim_all() {
  return claim(claim_request({ReadMark()}));
}

DueBatch Claimant::due(const DueRequest& request) {
  return value_of(store_->due(request, soon()));
}

DueBatch Claimant::due(std::vector<std::string> routes) {
  return due(due_request(std::move(routes)));
}

HeldBatch Claimant::held(const HeldRequest& request) {
  return value_of(store_->held(request, soon()));
}

HeldBatch Claimant::held() {
  return held(held_request());
}

SettleResult Claimant::settle(const SettleRequest& request) {
  return value_of(store_->settle(request, soon()));
}

NewDelivery delivery_of(const ClaimedEvent& claimed, const Change& change) {
  NewDelivery delivery;
  delivery.id = DeliveryId(fresh_uuid());
  delivery.event_seq = claimed.event->seq;
  delivery.event_id = claimed.event->id;
  delivery.partition = claimed.partition;
  delivery.route = "out";
  delivery.ordering_key = ordering_key(Order::aggregate, *claimed.event);
  delivery.timeout = std::chrono::seconds(10);
  delivery.retry_delays = {std::chrono::seconds(1), std::chrono::seconds(5)};
  if (change) change(delivery);
  return delivery;
}

DeliveryUpdate update_of(const DueDelivery& row, DeliveryStatus status) {
  DeliveryUpdate update;
  update.id = row.delivery.id;
  update.partition = row.partition;
  update.expected_status = row.delivery.status;
  update.expected_dispatch_id = row.delivery.dispatch_id;
  update.status = status;
  update.attempts = row.delivery.attempts;
  update.dispatch_id = row.delivery.dispatch_id;
  return update;
}

DeliveryUpdate update_of(const NewDelivery& row, DeliveryStatus status) {
  DeliveryUpdate update;
  update.id = row.id;
  update.partition = row.partition;
  update.expected_status = row.status;
  update.expected_dispatch_id = row.dispatch_id;
  update.status = status;
  update.attempts = row.attempts;
  update.dispatch_id = row.dispatch_id;
  return update;
}

SettleRequest routing(SettleRequest request, const ClaimedEvent& claimed,
                      std::vector<NewDelivery> deliveries) {
  request.routed.push_back({claimed.event->seq, claimed.partition});
  for (auto& delivery : deliveries)
    request.deliveries.push_back(std::move(delivery));
  return request;
}

SettleRequest updating(SettleRequest request, std::vector<DeliveryUpdate> updates) {
  for (auto& update : updates)
    request.updates.push_back(std::move(update));
  return request;
}

NewDelivery store_delivery(Store& store, Claimant& relay, NewEvent event, const Change& change) {
  add(store, {std::move(event)});
  const auto batch = relay.claim();
  if (batch.events.size() != 1) {
    ADD_FAILURE() << "claimed " << batch.events.size() << " events instead of the one added";
    return {};
  }
  auto delivery = delivery_of(batch.events[0], change);
  const auto settled = relay.settle(routing(relay.settle_request(), batch.events[0], {delivery}));
  EXPECT_TRUE(settled.lost.empty() && settled.stale_events.empty());
  return delivery;
}

NewDelivery store_held(Store& store, Claimant& relay, NewEvent event) {
  add(store, {std::move(event)});
  const auto batch = relay.claim();
  if (batch.events.size() != 1) {
    ADD_FAILURE() << "claimed " << batch.events.size() << " events instead of the one added";
    return {};
  }
  auto row = delivery_of(batch.events[0],
                         all_of({with_status(DeliveryStatus::held), unordered(), on_route("")}));
  row.retry_delays.clear();
  row.timeout = milliseconds(0);
  auto request = relay.settle_request();
  request.deliveries = {row};
  EXPECT_TRUE(relay.settle(request).lost.empty());
  return row;
}

ClaimedEvent store_routed(Store& store, Claimant& relay, NewEvent event) {
  add(store, {std::move(event)});
  const auto batch = relay.claim();
  if (batch.events.size() != 1) {
    ADD_FAILURE() << "claimed " << batch.events.size() << " events instead of the one added";
    return {};
  }
  EXPECT_TRUE(relay.settle(routing(relay.settle_request(), batch.events[0])).lost.empty());
  return batch.events[0];
}

Change with_status(DeliveryStatus status) {
  return [status](NewDelivery& delivery) {
    delivery.status = status;
    if (status == DeliveryStatus::dispatched) delivery.dispatch_id = DispatchId(fresh_uuid());
  };
}

Change dead(OnFailed on_failed) {
  return [on_failed](NewDelivery& delivery) {
    delivery.status = DeliveryStatus::failed;
    delivery.on_failed = on_failed;
    delivery.attempts = 1;
    delivery.dispatch_id = DispatchId(fresh_uuid());
    delivery.failure_code = "unroutable";
    delivery.failure_detail = "no queue took it";
  };
}

Change on_route(std::string route) {
  return [route = std::move(route)](NewDelivery& delivery) { delivery.route = route; };
}

Change due_in(milliseconds wait) {
  return [wait](NewDelivery& delivery) { delivery.available_in = wait; };
}

Change unordered() {
  return [](NewDelivery& delivery) { delivery.ordering_key.reset(); };
}

Change ordered_globally() {
  return [](NewDelivery& delivery) { delivery.ordering_key = std::string(global_ordering_key); };
}

Change job(std::string unique_key) {
  return [unique_key = std::move(unique_key)](NewDelivery& row) {
    row.route = "ship";
    row.ordering_key.reset();
    row.on_failed = OnFailed::skip;
    NewJob made;
    made.policy.job = "ReserveStock";
    made.policy.queue = "shipping";
    made.policy.timeout_limit = std::chrono::hours(1);
    made.policy.unique_key = unique_key;
    row.job = std::move(made);
  };
}

Change failed_job(std::string unique_key) {
  return all_of({job(std::move(unique_key)), [](NewDelivery& row) {
                   row.status = DeliveryStatus::failed;
                   row.failure_code = "undecodable";
                   row.failure_detail = "no such header";
                 }});
}

Change all_of(std::initializer_list<Change> changes) {
  return [changes = std::vector<Change>(changes)](NewDelivery& delivery) {
    for (const auto& change : changes)
      change(delivery);
  };
}

std::vector<EventId> ids_of(const ClaimedBatch& batch) {
  std::vector<EventId> ids;
  for (const auto& claimed : batch.events)
    ids.push_back(claimed.event->id);
  return ids;
}

std::vector<DeliveryId> ids_of(const DueBatch& batch) {
  std::vector<DeliveryId> ids;
  for (const auto& due : batch.deliveries)
    ids.push_back(due.delivery.id);
  return ids;
}

std::vector<DeliveryId> ids_of(const HeldBatch& batch) {
  std::vector<DeliveryId> ids;
  for (const auto& held : batch.events)
    ids.push_back(held.delivery);
  return ids;
}

std::vector<DeliveryId> ids_of(const std::vector<DeadLetter>& letters) {
  std::vector<DeliveryId> ids;
  for (const auto& letter : letters)
    ids.push_back(letter.delivery.id);
  return ids;
}

std::vector<EventId> ids_of(const EventPage& page) {
  std::vector<EventId> ids;
  for (const auto& event : page.events)
    ids.push_back(event.id);
  return ids;
}

std::vector<DeliveryId> ids_of(const DeliveryPage& page) {
  std::vector<DeliveryId> ids;
  for (const auto& listed : page.deliveries)
    ids.push_back(listed.delivery.id);
  return ids;
}

}  // namespace postrider::testing
