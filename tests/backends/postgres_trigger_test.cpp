// What the insert trigger promises to writers in every language: rules W1 to W4 of reading, and
// that a row arrives as it was written.

#include <fstream>
#include <thread>

#include "backends/postgres_database.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The server is shared with other tests.
constexpr const char* own_locks =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";

constexpr const char* insert_order_1 =
    "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) "
    "VALUES ('order', '1', 'order.placed', '{}')";

class PostgresTrigger : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_postgres()) return;
    database_ = std::make_unique<PostgresDatabase>();
    session_ = database_->open_session();
  }

  /// Payloads of everything, in order.
  std::vector<std::string> payloads() {
    const auto store = database_->open_store();
    ManualClock clock;
    Claimant relay(*store, clock);
    relay.lease();
    std::vector<std::string> payloads;
    for (const auto& claimed : relay.claim_all().events) {
      EXPECT_EQ(claimed.malformed, "");
      payloads.push_back(claimed.event->payload);
    }
    return payloads;
  }

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<PostgresSession> session_;
};

#define NEEDS_DATABASE() \
  if (database_ == nullptr) return

TEST_F(PostgresTrigger, W1_a_transaction_has_its_xid_before_it_has_a_number) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run(insert_order_1);

  EXPECT_EQ(session_->run("SELECT xid = pg_current_xact_id_if_assigned() FROM outbox_events"), "t");
  // The body's order is the rule; a rewrite that swaps the two loses rows once in 40,000.
  const auto body =
      session_->rows("SELECT prosrc FROM pg_proc WHERE proname = 'outbox_events_before_insert'")
          .at(0);
  const auto lock = body.find("pg_advisory_xact_lock");
  const auto xid = body.find("pg_current_xact_id()");
  const auto number = body.find("nextval");
  EXPECT_LT(lock, xid);
  EXPECT_LT(xid, number);
  EXPECT_NE(number, std::string::npos);
}

TEST_F(PostgresTrigger, W1_a_row_in_a_savepoint_carries_the_xid_of_the_whole_transaction) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run("SAVEPOINT a");
  session_->run(insert_order_1);
  session_->run("RELEASE a");
  EXPECT_EQ(session_->run("SELECT xid = pg_current_xact_id() FROM outbox_events"), "t");
}

TEST_F(PostgresTrigger, W2_the_sequence_keeps_nothing_in_store_and_a_supplied_seq_is_overwritten) {
  NEEDS_DATABASE();
  EXPECT_EQ(session_->run("SELECT concat(seqcache, seqincrement, seqcycle) FROM pg_sequence "
                          "WHERE seqrelid = 'outbox_events_seq'::regclass"),
            "11f");

  session_->run("INSERT INTO outbox_events (seq, type, payload) VALUES (1000, 'x', 'a')");

  EXPECT_EQ(session_->run("SELECT seq FROM outbox_events"), "1");
}

TEST_F(PostgresTrigger, W2_an_import_keeps_its_numbers) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run("SET LOCAL postrider.import = on");
  session_->run("INSERT INTO outbox_events (seq, type, payload) VALUES (1000, 'x', 'a')");
  session_->run("COMMIT");

  EXPECT_EQ(session_->run("SELECT seq FROM outbox_events"), "1000");
  session_->run("INSERT INTO outbox_events (seq, type, payload) VALUES (2000, 'x', 'b')");
  EXPECT_EQ(session_->run("SELECT min(seq) FROM outbox_events"), "1")
      << "it ends with its transaction";
}

TEST_F(PostgresTrigger, W2_a_writer_that_switches_triggers_off_writes_nothing_without_a_number) {
  NEEDS_DATABASE();
  session_->run("SET session_replication_role = replica");
  EXPECT_EQ(session_->refusal(insert_order_1), "23502");
  session_->run("RESET session_replication_role");
  EXPECT_EQ(session_->refusal(insert_order_1), "");
}

TEST_F(PostgresTrigger, W3_writers_of_one_aggregate_commit_in_the_order_of_their_numbers) {
  NEEDS_DATABASE();
  const auto second = database_->open_session();
  session_->run("BEGIN");
  session_->run(insert_order_1);

  second->send(insert_order_1);
  while (session_->run(
             "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
             "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") ==
         "0") {
  }
  EXPECT_TRUE(second->waits());
  session_->run("COMMIT");
  second->finish();

  EXPECT_THAT(session_->rows("SELECT seq FROM outbox_events ORDER BY xid"), ElementsAre("1", "2"));
}

TEST_F(PostgresTrigger, W3_other_aggregates_and_events_without_one_do_not_wait) {
  NEEDS_DATABASE();
  const auto second = database_->open_session();
  session_->run("BEGIN");
  session_->run(insert_order_1);

  second->run("SET lock_timeout = '1s'");
  second->run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) "
      "VALUES ('order', '2', 'x')");
  second->run("INSERT INTO outbox_events (type) VALUES ('x')");
  EXPECT_EQ(second->refusal(insert_order_1), "55P03");
}

TEST_F(PostgresTrigger, W3_ordering_off_takes_no_lock) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run("SET LOCAL postrider.ordering = off");
  session_->run(insert_order_1);
  EXPECT_EQ(session_->run(own_locks), "0");
}

TEST_F(PostgresTrigger, W3_a_lock_that_a_savepoint_gave_back_is_taken_again) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run("SAVEPOINT a");
  session_->run(insert_order_1);
  session_->run("ROLLBACK TO a");
  EXPECT_EQ(session_->run(own_locks), "0");
  session_->run(insert_order_1);
  EXPECT_EQ(session_->run(own_locks), "1");
}

TEST_F(PostgresTrigger, W3_the_lock_goes_over_to_a_prepared_transaction) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run(insert_order_1);
  session_->run("PREPARE TRANSACTION 'order-1'");
  session_->run("SET lock_timeout = '50ms'");
  EXPECT_EQ(session_->refusal(insert_order_1), "55P03");
  session_->run("COMMIT PREPARED 'order-1'");
  EXPECT_EQ(session_->refusal(insert_order_1), "");
}

TEST_F(PostgresTrigger, W4_a_writer_that_does_not_wait_for_the_disk_waits_for_this_commit) {
  NEEDS_DATABASE();
  session_->run("SET synchronous_commit = off");
  session_->run("BEGIN");
  session_->run(insert_order_1);
  EXPECT_EQ(session_->run("SHOW synchronous_commit"), "local");
  session_->run("COMMIT");
  EXPECT_EQ(session_->run("SHOW synchronous_commit"), "off");
  session_->run("SET synchronous_commit = remote_apply");
  session_->run("BEGIN");
  session_->run(insert_order_1);
  EXPECT_EQ(session_->run("SHOW synchronous_commit"), "remote_apply");
  session_->run("ROLLBACK");
}

TEST_F(PostgresTrigger, A_hundred_thousand_aggregates_in_one_transaction_harm_nobody) {
  NEEDS_DATABASE();
  // With the defaults of a server, which make the table of locks smaller than our tests' own do.
  PostgresServer server({"max_prepared_transactions=0", "shared_buffers=128MB"});
  PostgresDatabase database({}, &server);
  database.migrate();
  const auto session = database.open_session();
  session->run("BEGIN");
  session->run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) "
      "SELECT 'order', n::text, 'x' FROM generate_series(1, 100000) AS n");
  EXPECT_EQ(session->run(own_locks), "512");

  const auto other = database.open_session();
  other->run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) "
      "SELECT 'invoice', n::text, 'x' FROM generate_series(1, 200) AS n");
  session->run("COMMIT");

  EXPECT_EQ(session->run("SELECT count(DISTINCT seq) FROM outbox_events"), "100200");
}

TEST_F(PostgresTrigger, A_slot_is_the_same_here_and_in_cpp) {
  NEEDS_DATABASE();
  for (const auto& [type, id] : std::vector<std::pair<std::string, std::string>>{
           {"order", "1"},
           {"\xd0\xb7\xd0\xb0\xd0\xba\xd0\xb0\xd0\xb7", "\xf0\x9f\x93\xae"},
           {"a/b", "c"}}) {
    const auto slot = session_->run(
        "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ($1, $2, 'x') "
        "RETURNING slot",
        {type, id});
    EXPECT_EQ(slot, std::to_string(slot_of(Aggregate{type, id}))) << type;
  }
  const auto lone =
      session_->rows("INSERT INTO outbox_events (type) VALUES ('x') RETURNING id, slot");
  const auto id = EventId(*Uuid::parse(lone.at(0).substr(0, 36)));
  EXPECT_EQ(lone.at(0).substr(37), std::to_string(slot_of(id)));
}

TEST_F(PostgresTrigger, An_id_that_is_left_out_is_a_uuid_of_version_7_of_this_moment) {
  NEEDS_DATABASE();
  const auto row = session_
                       ->rows(
                           "INSERT INTO outbox_events (type) VALUES ('x') RETURNING id, "
                           "floor(extract(epoch FROM created_at) * 1000)::bigint")
                       .at(0);
  const auto id = row.substr(0, 36);
  EXPECT_EQ(id[14], '7');
  EXPECT_THAT(std::string("89ab"), HasSubstr(std::string(1, id[19])));
  const auto ms = std::stoll(id.substr(0, 8) + id.substr(9, 4), nullptr, 16);
  EXPECT_NEAR(static_cast<double>(ms), std::stod(row.substr(37)), 1000);
}

TEST_F(PostgresTrigger, Literals_and_parameters_arrive_byte_for_byte) {
  NEEDS_DATABASE();
  // Through a real psql, as a person would type them.
  const auto file = database_->server().scratch().file("insert.sql");
  std::ofstream(file) << R"(
INSERT INTO outbox_events (type, payload) VALUES ('x', '{"a":"\\"}');
INSERT INTO outbox_events (type, payload) VALUES ('x', '{"a":"\n"}');
INSERT INTO outbox_events (type, payload) VALUES ('x', '{"a":"\u0041"}');
INSERT INTO outbox_events (type, payload) VALUES ('x', '\x41');
INSERT INTO outbox_events (type, payload) VALUES ('x', E'two\nlines');
INSERT INTO outbox_events (type, payload_bytes) VALUES ('x', '\x00ff5c');
INSERT INTO outbox_events (type) VALUES ('x');
)";
  const auto out = database_->server().run_program(
      "psql", {"-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, "-d", database_->conninfo()});
  EXPECT_EQ(out, "");
  session_->run("INSERT INTO outbox_events (type, payload) VALUES ('x', $1)", {R"(\x5c \\ \n)"});
  session_->copy("COPY outbox_events (type, payload) FROM STDIN", {R"(x	{"c":"\\\\n"})"});

  EXPECT_THAT(payloads(), ElementsAre(R"({"a":"\\"})", R"({"a":"\n"})", R"({"a":"\u0041"})",
                                      R"(\x41)", "two\nlines", std::string("\0\xff\\", 3), "",
                                      R"(\x5c \\ \n)", R"({"c":"\\n"})"));
}

TEST_F(PostgresTrigger, Headers_are_kept_as_they_were_written) {
  NEEDS_DATABASE();
  session_->run(
      R"(INSERT INTO outbox_events (type, headers) VALUES ('x', '{"b": 1e2,  "a":"2"}'))");
  EXPECT_EQ(session_->run("SELECT headers FROM outbox_events"), R"({"b": 1e2,  "a":"2"})");
}

struct RefusedInsert {
  const char* description;
  const char* columns;
  const char* values;
  const char* state;
};

TEST_F(PostgresTrigger, What_could_not_be_delivered_cannot_be_written) {
  NEEDS_DATABASE();
  const std::vector<RefusedInsert> cases = {
      {"no type", "payload", "'a'", "23502"},
      {"empty type", "type", "''", "23514"},
      {"long type", "type", "repeat('a', 256)", "23514"},
      {"empty content type", "type, content_type", "'x', ''", "23514"},
      {"control character", "type", "E'a\\nb'", "23514"},
      {"control character in an id", "type, aggregate_type, aggregate_id", "'x', 'a', E'b\\x7f'",
       "23514"},
      {"half an aggregate", "type, aggregate_id", "'x', '1'", "23514"},
      {"empty aggregate", "type, aggregate_type, aggregate_id", "'x', 'order', ''", "23514"},
      {"version without aggregate", "type, aggregate_version", "'x', 1", "23514"},
      {"two payloads", "type, payload, payload_bytes", "'x', 'a', 'b'", "23514"},
      {"headers that are a list", "type, headers", "'x', '[]'", "23514"},
      {"headers that are no JSON", "type, headers", "'x', '{'", "22P02"},
      {"a time without end", "type, available_at", "'x', 'infinity'", "23514"},
  };
  for (const auto& row : cases) {
    EXPECT_EQ(session_->refusal(std::string("INSERT INTO outbox_events (") + row.columns +
                                ") VALUES (" + row.values + ")"),
              row.state)
        << row.description;
  }
  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_events"), "0");
}

TEST_F(PostgresTrigger, Four_names_of_255_bytes_are_not_too_long) {
  NEEDS_DATABASE();
  session_->run(
      "INSERT INTO outbox_events (type, content_type, aggregate_type, aggregate_id) "
      "SELECT n, n, n, n FROM repeat('a', 255) AS n");
  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_events"), "1");
}

TEST_F(PostgresTrigger, An_event_is_immutable_and_routed_once) {
  NEEDS_DATABASE();
  session_->run(insert_order_1);
  for (const auto* change : {"payload = 'b'", "type = 'y'", "seq = 9", "xid = '3'", "slot = 1",
                             "id = gen_random_uuid()", "created_at = now()"}) {
    EXPECT_EQ(session_->refusal(std::string("UPDATE outbox_events SET ") + change), "PR002")
        << change;
  }
  EXPECT_EQ(session_->refusal("UPDATE outbox_events SET routed_at = now()"), "");
  EXPECT_EQ(session_->refusal("UPDATE outbox_events SET routed_at = now()"), "PR002");
  EXPECT_EQ(session_->refusal("UPDATE outbox_events SET routed_at = NULL"), "PR002");
}

TEST_F(PostgresTrigger, A_final_delivery_a_token_and_the_audit_do_not_go_back) {
  NEEDS_DATABASE();
  session_->run(insert_order_1);
  session_->run(
      "INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, route, status, "
      "retry_delays, timeout_ms, on_failed, available_at, finished_at) SELECT id, seq, id, slot, "
      "'out', 'completed', '[]', 1, 'halt', now(), now() FROM outbox_events");
  EXPECT_EQ(
      session_->refusal("UPDATE outbox_deliveries SET status = 'pending', finished_at = NULL"),
      "PR002");
  EXPECT_EQ(session_->refusal("DELETE FROM outbox_events"), "23503");
  session_->run("UPDATE outbox_partitions SET token = 5");
  EXPECT_EQ(session_->refusal("UPDATE outbox_partitions SET token = 4"), "PR002");
  session_->run(
      "INSERT INTO postrider_audit (at, who, action, object, reason) "
      "VALUES (now(), 'ann', 'route_pause', 'out', '')");
  EXPECT_EQ(session_->refusal("UPDATE postrider_audit SET who = 'bob'"), "PR002");
}

TEST_F(PostgresTrigger, The_compact_view_takes_and_shows_events) {
  NEEDS_DATABASE();
  session_->run("INSERT INTO outbox (event_type, payload) VALUES ('order.created', '{\"id\":1}')");

  EXPECT_THAT(session_->rows("SELECT id, event_type, payload, sent_at IS NULL FROM outbox"),
              ElementsAre("1|order.created|{\"id\":1}|t"));
  EXPECT_THAT(payloads(), ElementsAre("{\"id\":1}"));
}

TEST_F(PostgresTrigger, A_role_with_the_documented_grants_writes_and_sees_nothing) {
  NEEDS_DATABASE();
  session_->run(
      "DROP ROLE IF EXISTS test_writer; CREATE ROLE test_writer LOGIN;"
      "GRANT INSERT ON outbox_events TO test_writer;"
      "GRANT USAGE ON SEQUENCE outbox_events_seq TO test_writer");
  {
    PostgresSession writer(database_->server().tcp_conninfo(database_->name(), "test_writer"));
    writer.run(insert_order_1);
    EXPECT_EQ(writer.refusal("SELECT payload FROM outbox_events"), "42501");
    EXPECT_EQ(writer.refusal("UPDATE outbox_events SET routed_at = now()"), "42501");
  }
  EXPECT_THAT(payloads(), SizeIs(1));
  session_->run("DROP OWNED BY test_writer; DROP ROLE test_writer");
}

TEST_F(PostgresTrigger, F33_several_aggregates_of_one_add_never_deadlock) {
  NEEDS_DATABASE();
  const auto worker = [&](bool backwards) {
    const auto store = database_->open_store();
    for (int round = 0; round < 50; ++round) {
      std::vector<NewEvent> events;
      for (int i = 0; i < 10; ++i) {
        events.push_back(order_event(std::to_string(backwards ? 9 - i : i)));
      }
      add(*store, events);
    }
  };
  std::thread other([&] { worker(true); });
  worker(false);
  other.join();

  EXPECT_EQ(session_->run("SELECT count(*) FROM outbox_events"), "1000");
}

}  // namespace
}  // namespace postrider::testing
