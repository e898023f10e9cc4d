// What the doctor finds in PostgreSQL: each fault is planted in a real server.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backends/postgres_database.hpp"
#include "conformance/store_builders.hpp"
#include "servers/pgbouncer.hpp"

namespace postrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Severity = FindingSeverity;

::testing::Matcher<const Finding&> finding(const std::string& code, Severity severity) {
  return AllOf(Field("code", &Finding::code, code), Field("severity", &Finding::severity, severity),
               Field("subject", &Finding::subject, Not(IsEmpty())),
               Field("what", &Finding::what, Not(IsEmpty())),
               Field("why", &Finding::why, Not(IsEmpty())),
               Field("fix", &Finding::fix, Not(IsEmpty())));
}

class PostgresDoctor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!lacks_postgres()) open();
  }

  void open(Postgres* server = nullptr) {
    database_ = std::make_unique<PostgresDatabase>(PostgresOptions{}, server);
    session_ = database_->open_session();
  }

  std::vector<Finding> examine(const Examination& examination = {}) {
    return examine_by(database_->conninfo(), examination);
  }

  std::vector<Finding> examine_by(const std::string& conninfo,
                                  const Examination& examination = {}) {
    auto options = database_->options();
    options.conninfo = conninfo;
    return value_of(make_postgres_doctor(options)->examine(examination, soon())).findings;
  }

  std::string by_role(const std::string& role) {
    return database_->server().tcp_conninfo(database_->name(), role);
  }

  // Makes a role that goes with the test.
  void make_role(const std::string& role, const std::string& more = "") {
    session_->run("DROP ROLE IF EXISTS " + role + "; CREATE ROLE " + role + " LOGIN " + more);
    roles_.push_back(role);
  }

  void TearDown() override {
    if (!session_) return;
    // What a test that failed has left would keep the database.
    for (const auto& gid :
         session_->rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")) {
      session_->run("ROLLBACK PREPARED '" + gid + "'");
    }
    for (const auto& role : roles_)
      session_->run("DROP OWNED BY " + role + "; DROP ROLE " + role);
  }

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<PostgresSession> session_;
  std::vector<std::string> roles_;
};

#define NEEDS_DATABASE() POSTRIDER_NEEDS_POSTGRES()

constexpr auto insert =
    "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ('order', '1', 't')";

Examination deep() {
  Examination examination;
  examination.deep = true;
  return examination;
}

TEST_F(PostgresDoctor, A_healthy_database_gives_no_finding_deep_or_not) {
  NEEDS_DATABASE();
  EXPECT_THAT(examine(), IsEmpty());
  const ManualClock clock;
  const auto store = database_->open_store();
  Claimant relay(*store, clock);
  relay.lease();
  store_delivery(*store, relay, order_event("1"));
  store_held(*store, relay, order_event("2"));

  EXPECT_THAT(examine(), IsEmpty());
  EXPECT_THAT(examine(deep()), IsEmpty());
}

TEST_F(PostgresDoctor, What_the_catalog_shows_is_told) {
  NEEDS_DATABASE();
  struct Row {
    std::string plant;
    std::string code;
    std::string subject;
    Severity severity = Severity::error;
  };
  const std::vector<Row> rows = {
      {"ALTER SEQUENCE outbox_events_seq CACHE 10", "sequence_changed", "outbox_events_seq"},
      {"ALTER SEQUENCE outbox_events_seq INCREMENT 2", "sequence_changed", "outbox_events_seq"},
      {"ALTER SEQUENCE outbox_events_seq CYCLE", "sequence_changed", "outbox_events_seq"},
      {"ALTER TABLE outbox_events DISABLE TRIGGER outbox_events_before_insert", "trigger_disabled",
       "outbox_events_before_insert"},
      {"ALTER TABLE outbox_events ENABLE REPLICA TRIGGER outbox_events_before_insert",
       "trigger_disabled", "outbox_events_before_insert"},
      {"DROP TRIGGER outbox_partitions_token_ascends ON outbox_partitions", "trigger_missing",
       "outbox_partitions_token_ascends"},
      {"DROP TRIGGER outbox_jobs_tell_of_new ON outbox_deliveries", "trigger_missing",
       "outbox_jobs_tell_of_new"},
      {"ALTER TABLE outbox_keys SET UNLOGGED", "table_unlogged", "outbox_keys"},
      {"ALTER TABLE outbox_events ENABLE ROW LEVEL SECURITY", "row_security", "outbox_events"},
      {"ALTER TABLE outbox_events SET (autovacuum_enabled = false)", "autovacuum_off",
       "outbox_events", Severity::warning},
      {"DROP TABLE outbox_keys", "table_missing", "outbox_keys"},
      {"UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
       "'outbox_events_xid_idx'::regclass",
       "index_invalid", "outbox_events_xid_idx"},
      {"DELETE FROM postrider_schema WHERE number = 2", "schema_mismatch", "public"},
      {"DROP TABLE postrider_schema", "schema_missing", "public"},
  };
  for (const auto& row : rows) {
    open();
    session_->run(row.plant);
    const auto findings = examine();
    ASSERT_THAT(findings, ElementsAre(finding(row.code, row.severity))) << row.plant;
    EXPECT_EQ(findings[0].subject, row.subject) << row.plant;
  }
}

TEST_F(PostgresDoctor, A_trigger_that_fires_always_is_no_finding) {
  NEEDS_DATABASE();
  session_->run("ALTER TABLE outbox_events ENABLE ALWAYS TRIGGER outbox_events_before_insert");
  EXPECT_THAT(examine(), IsEmpty());
}

TEST_F(PostgresDoctor, What_a_database_or_role_is_set_to_is_told) {
  NEEDS_DATABASE();
  struct Row {
    std::string setting;
    std::string code;
    Severity severity;
  };
  const std::vector<Row> rows = {
      {"synchronous_commit = off", "synchronous_commit_off", Severity::warning},
      {"session_replication_role = replica", "triggers_bypassed", Severity::error},
      {"default_transaction_read_only = on", "read_only", Severity::error},
      {"statement_timeout = '5s'", "statement_timeout_short", Severity::warning},
  };
  for (const auto& row : rows) {
    open();
    session_->run("ALTER DATABASE " + database_->name() + " SET " + row.setting);
    EXPECT_THAT(examine(), ElementsAre(finding(row.code, row.severity))) << row.setting;
  }
}

TEST_F(PostgresDoctor, F35_a_writers_role_with_asynchronous_commits_is_named) {
  NEEDS_DATABASE();
  make_role("doctor_writer");
  make_role("doctor_stranger");
  for (const auto* role : {"doctor_writer", "doctor_stranger"}) {
    session_->run(std::string("ALTER ROLE ") + role + " SET synchronous_commit = off");
  }
  session_->run("GRANT INSERT ON outbox_events TO doctor_writer");

  const auto findings = examine();

  ASSERT_THAT(findings, ElementsAre(finding("synchronous_commit_off", Severity::warning)));
  EXPECT_EQ(findings[0].subject, "role doctor_writer");
}

TEST_F(PostgresDoctor, A_timeout_longer_than_a_call_is_no_finding) {
  NEEDS_DATABASE();
  session_->run("ALTER DATABASE " + database_->name() + " SET statement_timeout = '5s'");
  Examination examination;
  examination.store_timeout = std::chrono::seconds(5);
  EXPECT_THAT(examine(examination), IsEmpty());
}

TEST_F(PostgresDoctor, What_the_servers_settings_endanger_is_told) {
  NEEDS_DATABASE();
  PostgresServer server({"fsync=off", "full_page_writes=off", "autovacuum=off",
                         "synchronous_commit=off", "max_connections=7",
                         "superuser_reserved_connections=3", "max_wal_senders=0"});
  session_.reset();
  open(&server);
  const auto second = database_->open_session();
  const auto third = database_->open_session();

  EXPECT_THAT(examine(),
              ::testing::UnorderedElementsAre(finding("fsync_off", Severity::error),
                                              finding("full_page_writes_off", Severity::warning),
                                              finding("autovacuum_off", Severity::warning),
                                              finding("synchronous_commit_off", Severity::warning),
                                              finding("connections_scarce", Severity::warning)));
  session_.reset();
  database_.reset();
}

TEST_F(PostgresDoctor, A_standby_is_told) {
  NEEDS_DATABASE();
  PostgresServer server;
  session_.reset();
  open(&server);
  session_.reset();
  server.stop_fast();
  std::ofstream(server.folder() + "/data/standby.signal").close();
  server.start();

  EXPECT_THAT(examine(), Contains(finding("standby", Severity::error)));
  server.stop_immediate();  // a standby drops no database
  database_.reset();
}

TEST_F(PostgresDoctor, F28_a_prepared_transaction_is_named_with_its_age_and_who_waits) {
  NEEDS_DATABASE();
  const auto writer = database_->open_session();
  writer->run("BEGIN");
  writer->run(insert);
  writer->run("PREPARE TRANSACTION 'doctor_lost'");
  EXPECT_THAT(examine(), IsEmpty()) << "a young one that blocks nobody is at work";
  Examination at_once;
  at_once.prepared_age = milliseconds(0);
  const auto findings = examine(at_once);
  ASSERT_THAT(findings, ElementsAre(finding("prepared_transaction", Severity::warning)));
  EXPECT_EQ(findings[0].subject, "doctor_lost");
  EXPECT_THAT(findings[0].what, HasSubstr("locks of 1 aggregates, and 0 sessions"));

  writer->send(insert);
  while (session_->run("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
                       "AND database = (SELECT oid FROM pg_database WHERE datname = "
                       "current_database())") == "0") {
    ASSERT_TRUE(writer->waits());
  }

  const auto blocking = examine();
  ASSERT_THAT(blocking, ElementsAre(finding("prepared_transaction", Severity::error)));
  EXPECT_THAT(blocking[0].what, HasSubstr("and 1 sessions wait"));
  session_->run("ROLLBACK PREPARED 'doctor_lost'");
  writer->finish();
}

TEST_F(PostgresDoctor, F29_the_oldest_open_transaction_is_named) {
  NEEDS_DATABASE();
  session_->run("BEGIN");
  session_->run("SELECT count(*) FROM outbox_events");
  EXPECT_THAT(examine(), IsEmpty());
  Examination at_once;
  at_once.transaction_age = milliseconds(0);

  const auto findings = examine(at_once);

  ASSERT_THAT(findings, ElementsAre(finding("transaction_old", Severity::warning)));
  EXPECT_EQ(findings[0].subject, "process " + std::to_string(session_->backend_pid()));
  EXPECT_THAT(findings[0].what, HasSubstr("idle in transaction"));
  session_->run("ROLLBACK");
}

TEST_F(PostgresDoctor, A_clock_that_differs_is_told_with_its_difference) {
  NEEDS_DATABASE();
  ManualClock clock;
  clock.advance(std::chrono::duration_cast<milliseconds>(system_clock().wall() - clock.wall()) +
                std::chrono::hours(1));
  const auto examine_at = [&] {
    return value_of(make_postgres_doctor(database_->options(), clock)->examine({}, soon()))
        .findings;
  };
  auto findings = examine_at();
  ASSERT_THAT(findings, ElementsAre(finding("clocks_differ", Severity::warning)));
  EXPECT_THAT(findings[0].what, HasSubstr("behind"));
}

TEST_F(PostgresDoctor, F37_marks_numbers_and_xids_of_another_server_are_told) {
  NEEDS_DATABASE();
  session_->run(insert);
  session_->run(
      "UPDATE outbox_partitions SET position = 1, in_flight = '0|', server_identity = '77/1' WHERE "
      "partition = 0");
  auto findings = examine();
  ASSERT_THAT(findings, ElementsAre(finding("marks_of_another_server", Severity::warning)));
  EXPECT_THAT(findings[0].what, HasSubstr("system 77"));

  session_->run("SET session_replication_role = replica");
  session_->run(
      "INSERT INTO outbox_events (seq, xid, slot, type) VALUES (1000, '99999999999', 0, 't')");
  EXPECT_THAT(examine(), ElementsAre(finding("marks_of_another_server", Severity::warning),
                                     finding("sequence_behind", Severity::error),
                                     finding("xid_ahead", Severity::note)));
}

TEST_F(PostgresDoctor, Marks_of_this_server_are_no_finding_on_any_timeline) {
  NEEDS_DATABASE();
  session_->run(
      "UPDATE outbox_partitions SET position = 0, in_flight = '0|', server_identity = (SELECT "
      "system_identifier FROM pg_control_system()) || '/9'");
  EXPECT_THAT(examine(), IsEmpty());
}

TEST_F(PostgresDoctor, Rows_that_contradict_each_other_are_told_when_it_looks_deep) {
  NEEDS_DATABASE();
  const ManualClock clock;
  const auto store = database_->open_store();
  Claimant relay(*store, clock);
  relay.lease();
  store_held(*store, relay, order_event("1"));
  session_->run("UPDATE outbox_events SET routed_at = clock_timestamp()");
  EXPECT_THAT(examine(), IsEmpty());
  const auto findings = examine(deep());
  ASSERT_THAT(findings, ElementsAre(finding("rows_contradict", Severity::error)));
  EXPECT_THAT(findings[0].what, HasSubstr("1 held"));
}

TEST_F(PostgresDoctor, A_role_with_the_rights_that_are_named_can_work_as_a_worker) {
  NEEDS_DATABASE();
  make_role("doctor_worker");
  Examination worker;
  worker.purpose = Purpose::worker;

  const auto missing = examine_by(by_role("doctor_worker"), worker);
  for (const auto& right : missing) {
    if (right.code == "right_missing") session_->run(right.fix);
  }
  EXPECT_THAT(examine_by(by_role("doctor_worker"), worker), IsEmpty());

  auto options = database_->options();
  options.conninfo = by_role("doctor_worker");
  const auto jobs = make_postgres_job_store(options);
  expect_ok(jobs->check_schema(soon()));
  HeartbeatRequest beat;
  beat.worker = {WorkerId(fresh_uuid()), "worker", "host", 1, "1.0", {"mail"}};
  EXPECT_TRUE(value_of(jobs->heartbeat(beat, soon())).known);
  const TakeRequest request{beat.worker.id, {{"mail", 10}}, 10, milliseconds(0), std::nullopt};
  EXPECT_THAT(value_of(jobs->take(request, soon())).tasks, IsEmpty());
  JobUpdate end;
  end.delivery_id = DeliveryId(fresh_uuid());
  end.dispatch_id = DispatchId(fresh_uuid());
  EXPECT_THAT(value_of(jobs->record({{end}, std::nullopt}, soon())),
              ElementsAre(RecordAnswer::stale));
}

TEST_F(PostgresDoctor, Rights_that_a_role_lacks_are_named_for_what_it_is_used_for) {
  NEEDS_DATABASE();
  make_role("doctor_app");
  session_->run(
      "GRANT INSERT ON outbox_events TO doctor_app; GRANT USAGE ON SEQUENCE outbox_events_seq TO "
      "doctor_app");
  Examination writer;
  writer.purpose = Purpose::writer;
  Examination reader;
  reader.purpose = Purpose::reader;

  EXPECT_THAT(examine_by(by_role("doctor_app"), writer), IsEmpty());
  const auto as_reader = examine_by(by_role("doctor_app"), reader);
  EXPECT_THAT(as_reader, Contains(AllOf(finding("right_missing", Severity::error),
                                        Field(&Finding::what, HasSubstr("lacks SELECT")))));
  EXPECT_THAT(as_reader, Contains(finding("not_examined", Severity::note)));
  session_->run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctor_app");
  EXPECT_THAT(examine_by(by_role("doctor_app"), reader), IsEmpty());
  const auto as_relay = examine_by(by_role("doctor_app"));
  EXPECT_THAT(as_relay, Not(IsEmpty()));
  EXPECT_THAT(as_relay, Each(finding("right_missing", Severity::error)));
  for (const auto& missing : as_relay)
    session_->run(missing.fix);
  EXPECT_THAT(examine_by(by_role("doctor_app")), IsEmpty()) << "the advice is what helps";
  auto options = database_->options();
  options.conninfo = by_role("doctor_app");
  const auto jobs = make_postgres_job_store(options);
  value_of(jobs->lost({std::chrono::seconds(30), 10, std::nullopt}, soon()));
  value_of(jobs->hand_out({{"broker"}, 10, std::nullopt}, soon()));
}

TEST_F(PostgresDoctor, A_relay_with_schedules_needs_more_rights_and_the_advice_is_what_helps) {
  NEEDS_DATABASE();
  make_role("doctor_scheduler");
  session_->run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctor_scheduler");
  for (const auto& missing : examine_by(by_role("doctor_scheduler")))
    session_->run(missing.fix);
  EXPECT_THAT(examine_by(by_role("doctor_scheduler")), IsEmpty());
  Examination with_schedules;
  with_schedules.schedules = true;
  const auto lacks = examine_by(by_role("doctor_scheduler"), with_schedules);
  EXPECT_THAT(lacks, Not(IsEmpty()));
  EXPECT_THAT(lacks, Each(finding("right_missing", Severity::error)));
  for (const auto& missing : lacks)
    session_->run(missing.fix);
  EXPECT_THAT(examine_by(by_role("doctor_scheduler"), with_schedules), IsEmpty());
  auto options = database_->options();
  options.conninfo = by_role("doctor_scheduler");
  const auto schedules = make_postgres_schedule_store(options);
  Schedule yearly;
  yearly.name = "yearly";
  yearly.cron = "@yearly";
  yearly.type = "tick";
  ASSERT_TRUE(schedules->register_all({{yearly}, std::nullopt}, soon()));
  const auto state = value_of(schedules->states(std::nullopt, soon())).schedules.at(0);
  FireRequest request{yearly.name,
                      definition_hash(yearly),
                      state.decided_until,
                      state.decided_until + std::chrono::seconds(1),
                      {},
                      std::nullopt};
  request.slots.push_back({request.decide_until, event_of(yearly, request.decide_until)});
  EXPECT_TRUE(value_of(schedules->fire(request, soon())).fired);
}

TEST_F(PostgresDoctor, R_224_a_role_that_may_only_select_sees_status_events_and_deliveries) {
  NEEDS_DATABASE();
  make_role("doctor_reader");
  session_->run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctor_reader");
  auto options = database_->options();
  options.conninfo = by_role("doctor_reader");
  const auto operations = make_postgres_operations(options);

  const auto status = value_of(operations->status(std::nullopt, soon()));
  EXPECT_EQ(status.events.total, 0);
  EXPECT_THAT(status.routes, IsEmpty());
  EXPECT_THAT(value_of(operations->deliveries({}, std::nullopt, soon())).deliveries, IsEmpty());
  const auto ids = add(*database_->open_store(), {order_event("1")});
  EXPECT_EQ(value_of(operations->events({}, std::nullopt, soon())).events.at(0).id, ids[0]);
  EXPECT_TRUE(value_of(operations->event(ids[0], true, soon())));
}

TEST_F(PostgresDoctor, F38_a_pooler_is_told_and_its_mode_is_found_out) {
  NEEDS_DATABASE();
  if (lacks(why_no_pgbouncer())) return;
  for (const auto& [mode, expected] :
       {std::pair("session", finding("pooler", Severity::note)),
        std::pair("transaction", finding("pooler_in_transaction_mode", Severity::error))}) {
    const Pgbouncer pooler(database_->server(), mode);
    const auto conninfo =
        "host=127.0.0.1 port=" + std::to_string(pooler.port()) +
        " user=postgres sslmode=disable gssencmode=disable dbname=" + database_->name();
    EXPECT_THAT(examine_by(conninfo), ElementsAre(expected)) << mode;
    EXPECT_THAT(examine_by(conninfo), ElementsAre(expected)) << mode << ", asked again";
  }
  session_.reset();
  database_->end_sessions();  // the poolers' own
}

}  // namespace
}  // namespace postrider::testing
