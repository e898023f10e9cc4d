// What people see of events and deliveries: the right rows, in pages, without payloads.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

EventPage events_of(StoreHarness& harness, const EventFilter& filter,
                    std::optional<Timestamp> now = std::nullopt) {
  return value_of(harness.open_operations()->events(filter, now, soon()));
}

DeliveryPage deliveries_of(StoreHarness& harness, const DeliveryFilter& filter,
                           std::optional<Timestamp> now = std::nullopt) {
  return value_of(harness.open_operations()->deliveries(filter, now, soon()));
}

NewEvent typed(std::string type, std::string order) {
  auto event = order_event(std::move(order));
  event.type = std::move(type);
  return event;
}

EventFilter in_state(EventState state) {
  EventFilter filter;
  filter.state = state;
  return filter;
}

DeliveryFilter in_status(DeliveryStatus status) {
  DeliveryFilter filter;
  filter.status = status;
  return filter;
}

TEST_P(StoreConformance, An_empty_database_lists_nothing) {
  EXPECT_THAT(events_of(*harness_, {}).events, IsEmpty());
  EXPECT_EQ(events_of(*harness_, {}).next, std::nullopt);
  EXPECT_THAT(deliveries_of(*harness_, {}).deliveries, IsEmpty());
  EXPECT_EQ(deliveries_of(*harness_, {}).next, std::nullopt);
  EXPECT_EQ(value_of(harness_->open_operations()->event(EventId(fresh_uuid()), true, soon())),
            std::nullopt);
}

TEST_P(StoreConformance, Events_are_listed_newest_first_with_all_but_payload_and_headers) {
  auto event = order_event("1", "four");
  event.aggregate_version = 7;
  event.content_type = "text/plain";
  event.headers = {{"tenant", "a"}};
  const auto first = add(*store_, {event});
  const auto second = add(*store_, {lone_event("")});

  const auto page = events_of(*harness_, {});

  ASSERT_THAT(ids_of(page), ElementsAre(second[0], first[0]));
  const auto& listed = page.events[1];
  EXPECT_EQ(listed.aggregate, (Aggregate{"order", "1"}));
  EXPECT_EQ(listed.aggregate_version, 7);
  EXPECT_EQ(listed.type, event.type);
  EXPECT_EQ(listed.content_type, "text/plain");
  EXPECT_EQ(listed.payload_bytes, 4);
  EXPECT_EQ(listed.state, EventState::unrouted);
  EXPECT_EQ(listed.routed_at, std::nullopt);
  EXPECT_EQ(page.events[0].aggregate, std::nullopt);
  EXPECT_EQ(page.events[0].payload_bytes, 0);
  EXPECT_EQ(page.next, std::nullopt);
}

TEST_P(StoreConformance, Events_are_found_by_type_and_by_aggregate) {
  const auto ids = add(*store_, {typed("a.b", "1"), typed("a.c", "1"), typed("a.b", "2")});
  EventFilter by_type;
  by_type.type = "a.b";
  EventFilter by_aggregate;
  by_aggregate.aggregate = Aggregate{"order", "1"};
  auto by_both = by_aggregate;
  by_both.type = "a.b";

  EXPECT_THAT(ids_of(events_of(*harness_, by_type)), ElementsAre(ids[2], ids[0]));
  EXPECT_THAT(ids_of(events_of(*harness_, by_aggregate)), ElementsAre(ids[1], ids[0]));
  EXPECT_THAT(ids_of(events_of(*harness_, by_both)), ElementsAre(ids[0]));
}

TEST_P(StoreConformance, Events_are_found_by_where_they_stand) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto routed = store_routed(*store_, relay, order_event("1"));
  const auto held = store_held(*store_, relay, order_event("2"));
  const auto unrouted = add(*store_, {order_event("3")});

  const auto all = events_of(*harness_, {});
  ASSERT_THAT(all.events, SizeIs(3));
  EXPECT_EQ(all.events[0].state, EventState::unrouted);
  EXPECT_EQ(all.events[1].state, EventState::held);
  EXPECT_EQ(all.events[2].state, EventState::routed);
  EXPECT_TRUE(all.events[2].routed_at);
  EXPECT_THAT(ids_of(events_of(*harness_, in_state(EventState::unrouted))),
              ElementsAre(unrouted[0]));
  EXPECT_THAT(ids_of(events_of(*harness_, in_state(EventState::held))), ElementsAre(held.event_id));
  EXPECT_THAT(ids_of(events_of(*harness_, in_state(EventState::routed))),
              ElementsAre(routed.event->id));
}

TEST_P(StoreConformance, Held_events_are_found_by_the_other_filters_too) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, typed("a.b", "1"));
  const auto wanted = store_held(*store_, relay, typed("a.c", "2"));
  auto filter = in_state(EventState::held);
  filter.type = "a.c";
  filter.aggregate = Aggregate{"order", "2"};

  EXPECT_THAT(ids_of(events_of(*harness_, filter)), ElementsAre(wanted.event_id));
}

TEST_P(StoreConformance, Events_are_found_by_their_age) {
  const auto ids = add(*store_, {order_event("1")});
  const auto created = events_of(*harness_, {}).events.at(0).created_at;
  EventFilter young;
  young.since = minutes(10);
  EventFilter old;
  old.until = minutes(10);

  EXPECT_THAT(ids_of(events_of(*harness_, young, created + minutes(9))), ElementsAre(ids[0]));
  EXPECT_THAT(events_of(*harness_, young, created + minutes(11)).events, IsEmpty());
  EXPECT_THAT(events_of(*harness_, old, created + minutes(9)).events, IsEmpty());
  EXPECT_THAT(ids_of(events_of(*harness_, old, created + minutes(11))), ElementsAre(ids[0]));
}

TEST_P(StoreConformance, Pages_of_events_meet_and_neither_overlap_nor_leave_one_out) {
  auto expected = add(*store_, order_events("1", 7));
  std::reverse(expected.begin(), expected.end());
  EventFilter filter;
  filter.limit = 3;

  std::vector<EventId> seen;
  for (int pages = 0; pages < 5; ++pages) {
    const auto page = events_of(*harness_, filter);
    const auto ids = ids_of(page);
    seen.insert(seen.end(), ids.begin(), ids.end());
    if (!page.next) break;
    filter.after = page.next;
  }

  EXPECT_EQ(seen, expected);
}

TEST_P(StoreConformance, A_search_of_events_ends_after_so_many_rows_and_goes_on_where_it_ended) {
  const auto wanted = add(*store_, {typed("rare.kind", "1")});
  add(*store_, order_events("1", 5));
  EventFilter filter;
  filter.type = "rare.kind";
  filter.examine = 3;

  const auto first = events_of(*harness_, filter);
  EXPECT_THAT(first.events, IsEmpty());
  ASSERT_TRUE(first.next);
  filter.after = first.next;

  EXPECT_THAT(ids_of(events_of(*harness_, filter)), ElementsAre(wanted[0]));
}

TEST_P(StoreConformance, One_event_is_shown_with_the_names_of_its_headers) {
  auto event = order_event("1", std::string("a\0\xff", 3));
  event.headers = {{"tenant", "secret"}, {"lang", "de"}};
  const auto ids = add(*store_, {event});
  const auto operations = harness_->open_operations();

  const auto without = value_of(operations->event(ids[0], false, soon()));
  const auto with = value_of(operations->event(ids[0], true, soon()));

  ASSERT_TRUE(without && with);
  EXPECT_EQ(without->summary.id, ids[0]);
  EXPECT_THAT(without->header_names, ElementsAre("lang", "tenant"));
  EXPECT_EQ(without->malformed, "");
  EXPECT_EQ(without->payload, std::nullopt);
  EXPECT_EQ(with->payload, event.payload);
}

TEST_P(StoreConformance, An_event_with_text_or_without_payload_is_shown_as_it_is) {
  const auto ids = add(*store_, {order_event("1", "text"), order_event("1", "")});
  const auto operations = harness_->open_operations();

  EXPECT_EQ(value_of(operations->event(ids[0], true, soon()))->payload, "text");
  EXPECT_EQ(value_of(operations->event(ids[1], true, soon()))->payload, "");
}

TEST_P(StoreConformance, A_malformed_event_is_listed_and_shown_with_its_reason) {
  if (!harness_->plant_malformed_event()) GTEST_SKIP() << "no malformed event can be written";

  const auto page = events_of(*harness_, {});
  ASSERT_THAT(page.events, SizeIs(1));
  const auto shown = value_of(harness_->open_operations()->event(page.events[0].id, false, soon()));

  ASSERT_TRUE(shown);
  EXPECT_NE(shown->malformed, "");
}

TEST_P(StoreConformance, Deliveries_are_listed_by_falling_seq_with_their_event) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, typed("a.b", "1"));
  const auto second = store_delivery(*store_, relay, order_event("2"), dead());

  const auto page = deliveries_of(*harness_, {});

  ASSERT_THAT(ids_of(page), ElementsAre(second.id, first.id));
  const auto& listed = page.deliveries[1];
  EXPECT_EQ(listed.event_type, "a.b");
  EXPECT_EQ(listed.aggregate, (Aggregate{"order", "1"}));
  EXPECT_TRUE(listed.current);
  EXPECT_EQ(listed.delivery.route, "out");
  EXPECT_EQ(listed.delivery.status, DeliveryStatus::pending);
  EXPECT_EQ(listed.delivery.event_id, first.event_id);
}

TEST_P(StoreConformance, Deliveries_are_found_by_each_status) {
  using S = DeliveryStatus;
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto pending = store_delivery(*store_, relay, order_event("1"));
  const auto dispatched =
      store_delivery(*store_, relay, order_event("2"), with_status(S::dispatched));
  const auto completed =
      store_delivery(*store_, relay, order_event("3"), with_status(S::completed));
  const auto failed = store_delivery(*store_, relay, order_event("4"), dead());
  const auto held = store_held(*store_, relay, order_event("5"));

  EXPECT_THAT(ids_of(deliveries_of(*harness_, in_status(S::pending))), ElementsAre(pending.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, in_status(S::dispatched))),
              ElementsAre(dispatched.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, in_status(S::completed))), ElementsAre(completed.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, in_status(S::failed))), ElementsAre(failed.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, in_status(S::held))), ElementsAre(held.id));
  EXPECT_THAT(deliveries_of(*harness_, in_status(S::discarded)).deliveries, IsEmpty());
}

TEST_P(StoreConformance, Deliveries_are_found_by_route_aggregate_event_and_id) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto out = store_delivery(*store_, relay, order_event("1"));
  const auto audit = store_delivery(*store_, relay, order_event("2"), on_route("audit"));
  DeliveryFilter by_route;
  by_route.route = "audit";
  DeliveryFilter by_aggregate;
  by_aggregate.aggregate = Aggregate{"order", "1"};
  DeliveryFilter by_event;
  by_event.event = audit.event_id;
  DeliveryFilter by_id;
  by_id.id = out.id;
  DeliveryFilter by_event_and_status = in_status(DeliveryStatus::pending);
  by_event_and_status.event = out.event_id;
  DeliveryFilter unknown;
  unknown.event = EventId(fresh_uuid());

  EXPECT_THAT(ids_of(deliveries_of(*harness_, by_route)), ElementsAre(audit.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, by_aggregate)), ElementsAre(out.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, by_event)), ElementsAre(audit.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, by_id)), ElementsAre(out.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, by_event_and_status)), ElementsAre(out.id));
  EXPECT_THAT(deliveries_of(*harness_, unknown).deliveries, IsEmpty());
}

TEST_P(StoreConformance, Deliveries_that_are_due_are_found) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto now = store_delivery(*store_, relay, order_event("1"));
  const auto later = store_delivery(*store_, relay, order_event("2"), due_in(hours(1)));
  store_delivery(*store_, relay, order_event("3"), dead());
  DeliveryFilter due;
  due.due = true;

  EXPECT_THAT(ids_of(deliveries_of(*harness_, due, clock_.wall())), ElementsAre(now.id));
  EXPECT_THAT(ids_of(deliveries_of(*harness_, due, clock_.wall() + hours(2))),
              ElementsAre(later.id, now.id));
}

TEST_P(StoreConformance, Generations_before_the_current_one_are_history) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto old = store_delivery(*store_, relay, order_event("1"), dead());
  const auto operations = harness_->open_operations();
  const auto made = value_of(operations->dead_retry({}, {"ann", "mended"}, clock_.wall(), soon()));
  ASSERT_THAT(made, SizeIs(1));
  DeliveryFilter all;
  all.event = old.event_id;
  all.history = true;
  DeliveryFilter by_id;
  by_id.id = old.id;

  EXPECT_THAT(ids_of(deliveries_of(*harness_, {})), ElementsAre(made[0]));
  EXPECT_THAT(deliveries_of(*harness_, in_status(DeliveryStatus::failed)).deliveries, IsEmpty());
  const auto history = deliveries_of(*harness_, all);
  ASSERT_THAT(ids_of(history), ElementsAre(made[0], old.id));
  EXPECT_EQ(history.deliveries[0].delivery.generation, 2);
  EXPECT_TRUE(history.deliveries[0].current);
  EXPECT_FALSE(history.deliveries[1].current);
  EXPECT_THAT(ids_of(deliveries_of(*harness_, by_id)), ElementsAre(old.id));
}

TEST_P(StoreConformance, Pages_of_deliveries_meet_in_the_middle_of_an_event) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1"), order_event("2")});
  const auto batch = relay.claim();
  for (const auto& claimed : batch.events) {
    relay.settle(routing(relay.settle_request(), claimed,
                         {delivery_of(claimed, on_route("a")), delivery_of(claimed, on_route("b")),
                          delivery_of(claimed, on_route("c"))}));
  }
  for (const auto& pattern : {DeliveryFilter{}, in_status(DeliveryStatus::pending)}) {
    auto filter = pattern;
    filter.limit = 2;
    std::vector<std::string> seen;
    for (int pages = 0; pages < 5; ++pages) {
      const auto page = deliveries_of(*harness_, filter);
      for (const auto& listed : page.deliveries)
        seen.push_back(listed.aggregate->id + listed.delivery.route);
      if (!page.next) break;
      filter.after = page.next;
    }
    EXPECT_THAT(seen, ElementsAre("2c", "2b", "2a", "1c", "1b", "1a"));
  }
}

TEST_P(StoreConformance, A_search_of_deliveries_ends_after_so_many_rows_and_goes_on_there) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto wanted = store_delivery(*store_, relay, order_event("1"), on_route("audit"));
  for (int i = 0; i < 5; ++i)
    store_delivery(*store_, relay, order_event("2"));
  for (const std::size_t examine : {1, 3}) {
    DeliveryFilter filter;
    filter.route = "audit";
    filter.examine = examine;
    auto page = deliveries_of(*harness_, filter);
    EXPECT_THAT(page.deliveries, IsEmpty());
    for (int pages = 1; pages < 7 && page.deliveries.empty() && page.next; ++pages) {
      filter.after = page.next;
      page = deliveries_of(*harness_, filter);
    }
    EXPECT_THAT(ids_of(page), ElementsAre(wanted.id)) << examine;
  }
}

TEST_P(StoreConformance, A_page_without_bounds_is_refused) {
  const auto operations = harness_->open_operations();
  for (const auto size : {std::size_t{0}, most_listed + 1}) {
    EventFilter events;
    events.limit = size;
    DeliveryFilter deliveries;
    deliveries.limit = size;
    const auto listed = operations->events(events, std::nullopt, soon());
    const auto rows = operations->deliveries(deliveries, std::nullopt, soon());
    ASSERT_FALSE(listed.ok() || rows.ok());
    EXPECT_EQ(listed.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(rows.error().code, ErrorCode::invalid_argument);
  }
}

TEST_P(StoreConformance, A_lease_that_ran_out_is_told_from_one_that_was_given_back) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto operations = harness_->open_operations();
  const auto later = clock_.wall() + Claimant::lease_time + minutes(1);

  const auto lapsed = value_of(operations->status(later, soon()));
  EXPECT_EQ(lapsed.partitions.at(0).owner, "");
  EXPECT_EQ(lapsed.partitions.at(0).lapsed, minutes(1));

  relay.release();
  EXPECT_EQ(value_of(operations->status(later, soon())).partitions.at(0).lapsed, std::nullopt);
}

}  // namespace
}  // namespace postrider::testing
