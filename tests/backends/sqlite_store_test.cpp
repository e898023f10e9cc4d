// SQLite against the suite that defines a store, and what an application may do beside it.

#include <map>

#include "backends/sqlite_database.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         ::testing::Values(StoreCase{"wal", make_sqlite_harness},
                                           StoreCase{"prefixed", make_prefixed_sqlite_harness}),
                         case_name);

namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

#define NEEDS_SQLITE_SHELL()                                                    \
  if (!has_sqlite_shell()) {                                                    \
    if (std::getenv("CI") != nullptr) FAIL() << "the sqlite3 shell is missing"; \
    GTEST_SKIP() << "the sqlite3 shell is missing: install sqlite3";            \
  }

std::vector<ClaimedEvent> claim_all(const SqliteDatabase& database) {
  ClaimRequest request;
  request.partitions = {Partition(0)};
  request.limit = 1000;
  request.bytes = 1U << 20U;
  return value_of(database.store()->claim(request, soon())).events;
}

TEST(SqliteShell, A_raw_insert_of_four_columns_is_a_complete_event) {
  NEEDS_SQLITE_SHELL();
  SqliteDatabase database;
  const auto run = run_sqlite_shell(database, R"(
INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)
VALUES ('order', '1', 'order.placed', '{"id":1}');)");
  ASSERT_EQ(run.exit_code, 0) << run.output;

  const auto events = claim_all(database);

  ASSERT_THAT(events, SizeIs(1));
  const auto& event = *events[0].event;
  EXPECT_EQ(events[0].malformed, "");
  EXPECT_EQ(event.seq, Seq(1));
  EXPECT_EQ(event.aggregate, (Aggregate{"order", "1"}));
  EXPECT_EQ(event.type, "order.placed");
  EXPECT_EQ(event.payload, R"({"id":1})");
  EXPECT_EQ(event.content_type, "application/json");
  EXPECT_THAT(event.headers, IsEmpty());
  EXPECT_EQ(event.available_at, std::nullopt);
  EXPECT_LT(std::chrono::abs(event.created_at - system_clock().wall()), hours(1));
}

TEST(SqliteShell, Its_default_id_is_a_uuid_of_version_7_with_the_time_in_front) {
  NEEDS_SQLITE_SHELL();
  SqliteDatabase database;
  std::string script;
  for (int i = 0; i < 200; ++i)
    script += "INSERT INTO outbox_events (type) VALUES ('t');\n";
  ASSERT_EQ(run_sqlite_shell(database, script).exit_code, 0);

  RawConnection raw(database.path());
  for (const auto& claimed : claim_all(database)) {
    EXPECT_THAT(claimed.event->id.value().to_string(),
                MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                             "[0-9a-f]{12}"));
    std::int64_t ms = 0;
    for (int i = 0; i < 6; ++i)
      ms = ms << 8 | claimed.event->id.value().bytes()[i];
    EXPECT_EQ(Timestamp(milliseconds(ms)), claimed.event->created_at);
  }
}

TEST(SqliteShell, A_blob_and_a_text_payload_arrive_as_the_bytes_that_they_are) {
  NEEDS_SQLITE_SHELL();
  SqliteDatabase database;
  const auto run = run_sqlite_shell(database, R"(
INSERT INTO outbox_events (type, payload) VALUES ('text', 'a\n''b" ü');
INSERT INTO outbox_events (type, payload) VALUES ('blob', x'00ff0a');
INSERT INTO outbox_events (type, payload_bytes) VALUES ('bytes', x'fe00');
INSERT INTO outbox_events (type) VALUES ('nothing');
INSERT INTO outbox_events (type, payload) VALUES ('spaces', '{ "b":1,  "a":1e2 }');)");
  ASSERT_EQ(run.exit_code, 0) << run.output;

  std::vector<std::string> payloads;
  for (const auto& claimed : claim_all(database))
    payloads.push_back(claimed.event->payload);

  EXPECT_THAT(payloads, ElementsAre("a\\n'b\" ü", std::string("\0\xff\n", 3),
                                    std::string("\xfe\0", 2), "", R"({ "b":1,  "a":1e2 })"));
}

TEST(SqliteShell, Headers_may_be_written_as_json_by_hand) {
  NEEDS_SQLITE_SHELL();
  SqliteDatabase database;
  const auto run = run_sqlite_shell(database, R"(
INSERT INTO outbox_events (type, headers)
VALUES ('t', json_object('tenant', 'a/1', 'big', 9007199254740993, 'on', json('true')));)");
  ASSERT_EQ(run.exit_code, 0) << run.output;

  const auto events = claim_all(database);

  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].event->headers,
            (Headers{{"big", "9007199254740993"}, {"on", "true"}, {"tenant", "a/1"}}));
}

TEST(SqliteShell, The_compact_view_shows_and_takes_events) {
  NEEDS_SQLITE_SHELL();
  SqliteDatabase database;
  const auto run = run_sqlite_shell(database, R"(
INSERT INTO outbox (event_type, payload) VALUES ('order.created', '{}');
SELECT id, event_type, payload, sent_at IS NULL FROM outbox;
UPDATE outbox_events SET routed_at = '2026-01-01T00:00:00.000000Z';
SELECT sent_at FROM outbox;)");

  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "1|order.created|{}|1\n2026-01-01T00:00:00.000000Z\n");
}

TEST(SqliteClaim, A_time_in_any_form_that_strftime_reads_is_understood) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  const std::map<std::string, std::string> forms = {
      {"2031-02-03 04:05", "2031-02-03T04:05:00.000000Z"},
      {"2031-02-03 04:05:06.789", "2031-02-03T04:05:06.789000Z"},
      {"2031-02-03T04:05:06+02:00", "2031-02-03T02:05:06.000000Z"},
      {"2031-02-03T04:05:06.123456Z", "2031-02-03T04:05:06.123456Z"}};
  for (const auto& [written, read] : forms) {
    raw.must("INSERT INTO outbox_events (type, content_type, available_at) VALUES ('t', '" + read +
             "', '" + written + "')");
  }

  const auto events = claim_all(database);

  ASSERT_THAT(events, SizeIs(forms.size()));
  for (const auto& claimed : events) {
    EXPECT_EQ(claimed.malformed, "");
    ASSERT_TRUE(claimed.event->available_at);
    NewEvent same = order_event("1");
    same.available_at = claimed.event->available_at;
    EXPECT_TRUE(claimed.delay);
    value_of(database.store()->add(std::vector{same}, soon()));
    EXPECT_EQ(raw.value("SELECT available_at FROM outbox_events ORDER BY seq DESC LIMIT 1"),
              claimed.event->content_type);
  }
}

TEST(SqliteClaim, A_row_that_cannot_be_read_is_handed_on_with_its_reason) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("PRAGMA ignore_check_constraints = ON");
  raw.must("INSERT INTO outbox_events (type, headers) VALUES ('nested', '{\"a\":{}}')");
  raw.must("INSERT INTO outbox_events (type, headers) VALUES ('broken', '{')");
  raw.must("INSERT INTO outbox_events (type, id) VALUES ('id', 'no uuid')");
  raw.must("INSERT INTO outbox_events (type, created_at) VALUES ('time', 'today')");
  raw.must("INSERT INTO outbox_events (type, aggregate_type) VALUES ('half', 'order')");
  raw.must("INSERT INTO outbox_events (type) VALUES ('sound')");

  std::map<std::string, std::string> reasons;
  for (const auto& claimed : claim_all(database)) {
    reasons[claimed.event->type] = claimed.malformed;
  }

  EXPECT_THAT(reasons["nested"], HasSubstr("is an object"));
  EXPECT_THAT(reasons["broken"], HasSubstr("not valid JSON"));
  EXPECT_THAT(reasons["id"], HasSubstr("not a UUID"));
  EXPECT_THAT(reasons["time"], HasSubstr("creation time"));
  EXPECT_THAT(reasons["half"], HasSubstr("not both"));
  EXPECT_EQ(reasons["sound"], "");
}

TEST(SqliteClaim, A_malformed_event_can_be_put_aside_as_a_dead_letter) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("PRAGMA ignore_check_constraints = ON");
  raw.must("INSERT INTO outbox_events (type, id) VALUES ('id', 'no uuid')");
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  const auto batch = relay.claim();

  const auto settled = relay.settle(routing(relay.settle_request(), batch.events.at(0),
                                            {delivery_of(batch.events.at(0), dead())}));

  EXPECT_THAT(settled.stale_events, IsEmpty());
  const auto letters =
      value_of(make_sqlite_operations(database.options())->dead_letters({}, soon()));
  EXPECT_THAT(letters, SizeIs(1));
}

TEST(SqliteClaim, History_is_not_walked_over_again_when_nothing_is_left) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  for (int i = 0; i < 3; ++i)
    store_routed(*store, relay, lone_event());

  const auto batch = relay.claim_all();

  EXPECT_THAT(batch.events, IsEmpty());
  EXPECT_EQ(batch.mark, ReadMark("3"));
}

TEST(SqliteClaim, A_mark_of_another_store_is_refused) {
  SqliteDatabase database;
  const auto store = database.store();
  for (const auto* text : {"12;7", "-1", "x", "99999999999999999999"}) {
    ClaimRequest request;
    request.partitions = {Partition(0)};
    request.after = {ReadMark(text)};
    request.limit = 1;
    const auto claimed = store->claim(request, soon());
    ASSERT_FALSE(claimed.ok()) << text;
    EXPECT_EQ(claimed.error().code, ErrorCode::invalid_argument);
  }
}

TEST(SqliteAdd, Payloads_are_stored_as_text_where_text_can_hold_them) {
  SqliteDatabase database;
  const auto store = database.store();
  const auto with = [](std::string payload) {
    auto event = lone_event();
    event.payload = std::move(payload);
    return event;
  };
  value_of(store->add(std::vector{with("{}"), with(""), with(std::string("a\0b", 3)),
                                  with("\xc3\x28"), with("\xef\xbb\xbf{}")},
                      soon()));

  RawConnection raw(database.path());
  EXPECT_EQ(raw.lines("SELECT typeof(payload) || '/' || typeof(payload_bytes) FROM outbox_events "
                      "ORDER BY seq"),
            "text/null\ntext/null\nnull/blob\nnull/blob\ntext/null\n");
  std::vector<std::string> payloads;
  for (const auto& claimed : claim_all(database))
    payloads.push_back(claimed.event->payload);
  EXPECT_THAT(payloads,
              ElementsAre("{}", "", std::string("a\0b", 3), "\xc3\x28", "\xef\xbb\xbf{}"));
}

TEST(SqliteSettle, A_second_row_for_the_same_event_and_route_is_stale) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  const auto held = store_held(*store, relay, order_event("1"));
  auto second = held;
  second.id = DeliveryId(fresh_uuid());
  auto request = relay.settle_request();
  request.deliveries = {second};

  const auto settled = relay.settle(request);

  EXPECT_THAT(settled.stale_deliveries, ElementsAre(second.id));
  EXPECT_THAT(ids_of(relay.held()), ElementsAre(held.id));
}

TEST(SqliteSettle, A_delivery_of_an_event_that_is_not_there_applies_nothing) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  add(*store, {order_event("1")});
  const auto batch = relay.claim();
  auto orphan = delivery_of(batch.events.at(0));
  orphan.event_seq = Seq(77);

  const auto settled =
      store->settle(routing(relay.settle_request(), batch.events[0], {orphan}), soon());

  ASSERT_FALSE(settled.ok());
  EXPECT_EQ(settled.error().code, ErrorCode::not_found);
  EXPECT_THAT(relay.claim_all().events, SizeIs(1));
}

TEST(SqliteDispatch, Its_deadline_is_the_dispatch_plus_the_timeout_and_goes_with_a_retry) {
  SqliteDatabase database;
  const auto store = database.store();
  ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  const auto row = store_delivery(*store, relay, order_event("1"), [](NewDelivery& delivery) {
    delivery.timeout = milliseconds(1500);
    delivery.retry_delays = {milliseconds(1000)};
  });
  auto dispatch = update_of(row, DeliveryStatus::dispatched);
  dispatch.dispatch_id = DispatchId(fresh_uuid());
  relay.settle(updating(relay.settle_request(), {dispatch}));
  RawConnection raw(database.path());
  const auto times = "SELECT dispatched_at || ' ' || delivery_timeout_at FROM outbox_deliveries";
  EXPECT_EQ(raw.value(times), "2026-01-01T00:00:00.000000Z 2026-01-01T00:00:01.500000Z");
  EXPECT_EQ(relay.due().next_in, milliseconds(1500));
  clock.advance(milliseconds(1500));
  const auto due = relay.due();
  ASSERT_THAT(due.deliveries, SizeIs(1));
  EXPECT_TRUE(due.deliveries[0].overdue);

  auto retry = update_of(due.deliveries[0], DeliveryStatus::pending);
  retry.attempts = 1;
  retry.available_in = milliseconds(1000);
  relay.settle(updating(relay.settle_request(), {retry}));

  EXPECT_EQ(raw.value(times), "(null)");
  EXPECT_EQ(relay.due().next_in, milliseconds(1000));
}

TEST(SqliteAudit, Every_change_by_a_person_leaves_a_line) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  const auto before = relay.lease().leases.at(0).generation;
  const auto retried = store_delivery(*store, relay, order_event("1"), dead());
  const auto discarded = store_delivery(*store, relay, order_event("2"), dead());
  const auto operations = make_sqlite_operations(database.options());
  const Operator eve{"eve", "ticket 7"};
  DeadFilter first;
  first.ids = {retried.id};
  DeadFilter second;
  second.ids = {discarded.id};

  value_of(operations->dead_retry(first, eve, clock.wall(), soon()));
  value_of(operations->dead_discard(second, eve, clock.wall(), soon()));
  value_of(operations->route_pause("out", eve, clock.wall(), soon()));
  value_of(operations->route_pause("out", eve, clock.wall(), soon()));
  value_of(operations->route_resume("out", eve, clock.wall(), soon()));

  RawConnection raw(database.path());
  EXPECT_EQ(raw.lines("SELECT at || ' ' || who || ' ' || action || ' ' || object || ' ' || reason "
                      "FROM postrider_audit ORDER BY id"),
            "2026-01-01T00:00:00.000000Z eve dead_retry " + retried.id.value().to_string() +
                " ticket 7\n2026-01-01T00:00:00.000000Z eve dead_discard " +
                discarded.id.value().to_string() +
                " ticket 7\n2026-01-01T00:00:00.000000Z eve route_pause out ticket 7\n"
                "2026-01-01T00:00:00.000000Z eve route_resume out ticket 7\n");
  EXPECT_EQ(relay.lease().leases.at(0).generation, before + 4);
  EXPECT_EQ(raw.run("UPDATE postrider_audit SET who = 'bob'"), SQLITE_CONSTRAINT_TRIGGER);
}

}  // namespace
}  // namespace postrider::testing
