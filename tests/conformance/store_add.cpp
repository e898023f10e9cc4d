// What `Store::add` promises: all events or none, in order, byte for byte.

#include <set>
#include <thread>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

NewEvent versioned(std::string id, std::int64_t version) {
  auto event = order_event(std::move(id));
  event.aggregate_version = version;
  return event;
}

void expect_taken(const Result<std::vector<EventId>>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::already_exists);
  EXPECT_EQ(result.error().disposition, Disposition::reject);
}

TEST_P(StoreConformance, Added_events_are_answered_with_their_ids_in_the_order_given) {
  const auto first = order_event("1");
  const auto second = order_event("2");

  EXPECT_THAT(add(*store_, {first, second}), ElementsAre(*first.id, *second.id));
}

TEST_P(StoreConformance, An_event_without_an_id_is_given_one_of_its_own) {
  auto event = order_event("1");
  event.id.reset();

  const auto ids = add(*store_, {event, event});

  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(std::set<EventId>(ids.begin(), ids.end()), SizeIs(2));
  EXPECT_THAT(ids_of(relay.claim()), ElementsAreArray(ids));
}

TEST_P(StoreConformance, The_order_of_writing_is_the_order_of_seq) {
  const auto earlier = add(*store_, {order_event("2"), order_event("1"), lone_event()});
  const auto later = add(*store_, {order_event("1"), order_event("3")});
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  EXPECT_THAT(ids_of(batch), ElementsAre(earlier[0], earlier[1], earlier[2], later[0], later[1]));
  Seq before(0);
  for (const auto& claimed : batch.events) {
    EXPECT_GT(claimed.event->seq, before);
    before = claimed.event->seq;
  }
}

TEST_P(StoreConformance, Adding_nothing_writes_nothing) {
  EXPECT_THAT(add(*store_, {}), IsEmpty());

  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(relay.claim().events, IsEmpty());
}

TEST_P(StoreConformance, A_taken_id_leaves_nothing_of_the_call) {
  const auto first = order_event("1");
  add(*store_, {first});
  auto second = order_event("2");
  auto same_id = order_event("3");
  same_id.id = first.id;

  expect_taken(store_->add(std::vector{second, same_id}, soon()));

  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(ids_of(relay.claim()), ElementsAre(*first.id));
}

TEST_P(StoreConformance, An_id_given_twice_in_one_call_leaves_nothing) {
  const auto event = order_event("1");

  expect_taken(store_->add(std::vector{event, event}, soon()));

  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(relay.claim().events, IsEmpty());
}

TEST_P(StoreConformance, A_taken_version_of_an_aggregate_leaves_nothing_of_the_call) {
  const auto first = versioned("1", 7);
  add(*store_, {first});

  expect_taken(store_->add(std::vector{versioned("1", 8), versioned("1", 7)}, soon()));

  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(ids_of(relay.claim()), ElementsAre(*first.id));
}

TEST_P(StoreConformance, After_a_refused_call_the_next_one_works) {
  const auto event = order_event("1");
  expect_taken(store_->add(std::vector{event, event}, soon()));

  EXPECT_THAT(add(*store_, {event}), ElementsAre(*event.id));
}

TEST_P(StoreConformance, Versions_are_taken_per_aggregate_and_only_when_given) {
  EXPECT_THAT(add(*store_, {versioned("1", 7), versioned("2", 7), versioned("1", 8),
                            order_event("1"), order_event("1")}),
              SizeIs(5));
}

TEST_P(StoreConformance, Aggregates_are_told_apart_byte_by_byte) {
  auto other_type = versioned("abc", 1);
  other_type.aggregate->type = "Order";

  EXPECT_THAT(add(*store_, {versioned("abc", 1), versioned("ABC", 1), versioned("abc ", 1),
                            versioned("\xc3\xa4", 1), versioned("a\xcc\x88", 1), other_type}),
              SizeIs(6));
}

TEST_P(StoreConformance, Every_field_of_an_event_arrives_as_it_was_written) {
  auto written = order_event("\xd0\xb7-1/2 %_'\"\\", "<order/>");
  written.aggregate_version = 9'007'199'254'740'993;  // no double holds it
  written.type = "order.placed.v2";
  written.content_type = "application/xml; charset=utf-8";
  written.headers = {{"trace", "00-ab-01"},
                     {"\xd1\x8f", "\"quoted\" \\ \xf0\x9f\x93\xae"},
                     {"empty", ""},
                     {"number", "1234567890123456789"}};
  written.available_at = clock_.wall() + std::chrono::microseconds(1'234'567);
  add(*store_, {written});
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(1));
  const auto& event = *batch.events[0].event;
  EXPECT_EQ(event.id, *written.id);
  EXPECT_EQ(event.aggregate, written.aggregate);
  EXPECT_EQ(event.aggregate_version, written.aggregate_version);
  EXPECT_EQ(event.type, written.type);
  EXPECT_EQ(event.payload, written.payload);
  EXPECT_EQ(event.content_type, written.content_type);
  EXPECT_EQ(event.headers, written.headers);
  EXPECT_EQ(event.available_at, written.available_at);
}

TEST_P(StoreConformance, What_an_event_leaves_out_stays_out) {
  add(*store_, {lone_event()});
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(1));
  const auto& event = *batch.events[0].event;
  EXPECT_EQ(event.aggregate, std::nullopt);
  EXPECT_EQ(event.aggregate_version, std::nullopt);
  EXPECT_EQ(event.available_at, std::nullopt);
  EXPECT_EQ(event.headers, Headers{});
  EXPECT_EQ(event.content_type, "application/json");
}

TEST_P(StoreConformance, An_event_is_stamped_by_the_database) {
  using std::chrono::hours;
  const auto before = system_clock().wall() - hours(1);

  add(*store_, {lone_event()});

  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_GT(batch.events[0].event->created_at, before);
  EXPECT_LT(batch.events[0].event->created_at, before + hours(2));
}

TEST_P(StoreConformance, Payloads_are_bytes_from_insert_to_claim) {
  const auto payloads = difficult_payloads();
  std::vector<NewEvent> events;
  for (const auto& payload : payloads)
    events.push_back(order_event("1", payload));
  add(*store_, events);
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(payloads.size()));
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    EXPECT_TRUE(batch.events[i].event->payload == payloads[i]) << "payload number " << i;
    EXPECT_EQ(batch.events[i].malformed, "") << "payload number " << i;
  }
}

TEST_P(StoreConformance, Payloads_are_bytes_from_insert_over_a_stored_delivery) {
  const auto payloads = difficult_payloads();
  Claimant relay(*store_, clock_);
  relay.lease();
  for (const auto& payload : payloads)
    store_delivery(*store_, relay, order_event("1", payload));

  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(payloads.size()));
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    EXPECT_TRUE(batch.deliveries[i].event->payload == payloads[i]) << "payload number " << i;
  }
}

TEST_P(StoreConformance, The_partition_is_the_slot_modulo_the_number_of_partitions) {
  const auto partitions = store_->traits().partitions;
  std::vector<NewEvent> events;
  for (int id = 1; id <= 20; ++id)
    events.push_back(order_event(std::to_string(id)));
  for (int i = 0; i < 20; ++i)
    events.push_back(lone_event());
  add(*store_, events);
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(events.size()));
  for (const auto& claimed : batch.events) {
    const auto& event = *claimed.event;
    const auto slot = event.aggregate ? slot_of(*event.aggregate) : slot_of(event.id);
    EXPECT_EQ(claimed.partition, Partition(slot % partitions));
  }
}

TEST_P(StoreConformance, Thousands_of_events_are_one_call) {
  std::vector<NewEvent> events;
  for (int i = 0; i < 3000; ++i)
    events.push_back(order_event(std::to_string(i)));

  const auto ids = add(*store_, events);

  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(ids_of(relay.claim()), ElementsAreArray(ids));
}

TEST_P(StoreConformance, An_event_with_a_key_is_written_once_per_key) {
  const auto event = order_event("1");
  auto repeated = order_event("1");
  const IdempotencyKey key{"api", "request-1"};

  const auto first = value_of(store_->add_once(event, key, soon()));
  const auto second = value_of(store_->add_once(repeated, key, soon()));
  const auto elsewhere = value_of(store_->add_once(repeated, {"other", "request-1"}, soon()));

  EXPECT_EQ(first, *event.id);
  EXPECT_EQ(second, *event.id);
  EXPECT_EQ(elsewhere, *repeated.id);
  EXPECT_EQ(value_of(store_->add_once(event, key, soon())), *event.id) << "with the very same id";
  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(ids_of(relay.claim()), ElementsAre(*event.id, *repeated.id));
}

TEST_P(StoreConformance, A_key_that_was_used_for_other_content_writes_nothing) {
  value_of(store_->add_once(order_event("1"), {"api", "request-1"}, soon()));

  const auto refused =
      store_->add_once(order_event("1", R"({"other":1})"), {"api", "request-1"}, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::key_reused);
  EXPECT_EQ(refused.error().disposition, Disposition::reject);
  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(relay.claim().events, SizeIs(1));
}

TEST_P(StoreConformance, A_key_whose_event_could_not_be_written_is_not_taken) {
  add(*store_, {versioned("1", 7)});
  const auto refused = store_->add_once(versioned("1", 7), {"api", "request-1"}, soon());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::already_exists);

  const auto event = versioned("1", 8);
  EXPECT_EQ(value_of(store_->add_once(event, {"api", "request-1"}, soon())), *event.id);
}

TEST_P(StoreConformance, A_key_that_is_empty_or_too_long_is_refused) {
  for (const auto& key : {IdempotencyKey{"", "k"}, IdempotencyKey{"s", ""},
                          IdempotencyKey{"s", std::string(256, 'k')}}) {
    EXPECT_FALSE(store_->add_once(order_event("1"), key, soon()).ok());
  }
}

TEST_P(StoreConformance, Requests_with_one_key_at_once_write_one_event) {
  constexpr int rounds = 10;
  const auto other_store = harness_->open_store();
  for (int round = 0; round < rounds; ++round) {
    const IdempotencyKey key{"api", std::to_string(round)};
    EventId others;
    std::thread other(
        [&] { others = value_of(other_store->add_once(order_event("1"), key, soon())); });
    const auto mine = value_of(store_->add_once(order_event("1"), key, soon()));
    other.join();
    EXPECT_EQ(mine, others);
  }
  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(relay.claim().events, SizeIs(rounds));
}

}  // namespace
}  // namespace postrider::testing
