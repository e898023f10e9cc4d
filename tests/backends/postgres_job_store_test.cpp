// PostgreSQL as a store of jobs: against the suite that defines one, and what several sessions, a
// lost connection and the planner can do to it.

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include <postrider/testing/job_store_conformance.hpp>

#include "backends/postgres_job_harness.hpp"
#include "conformance/job_store_builders.hpp"
#include "servers/chaos_proxy.hpp"
#include "store_postgres_sql.hpp"

namespace postrider::testing {
namespace {

JobStoreCase with_options(const char* name, const PostgresOptions& options) {
  return {name, [options]() -> std::unique_ptr<JobStoreHarness> {
            if (lacks_postgres()) return nullptr;
            return std::make_unique<PostgresJobStoreHarness>(options);
          }};
}

PostgresOptions named() {
  PostgresOptions options;
  options.names = {"shop", "app_"};
  options.partitions = 4;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Postgres, JobStoreConformance,
                         ::testing::Values(with_options("defaults", {}),
                                           with_options("schema_and_prefix", named())),
                         job_case_name);

using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// The suite's short words, on a PostgreSQL whose sessions can be reached into.
class PostgresJobs : public JobStoreConformance {
 protected:
  void SetUp() override {
    JobStoreConformance::SetUp();
    if (harness_ == nullptr) return;
    postgres_ = dynamic_cast<PostgresJobStoreHarness*>(harness_.get());
    ASSERT_NE(postgres_, nullptr);
  }

  [[nodiscard]] PostgresSession& session() { return postgres_->session(); }
  void wait_until(const std::string& condition) {
    while (session().run("SELECT (" + condition + ")::text") != "true")
      std::this_thread::yield();
  }
  /// Until a session of ours waits for a lock.
  void wait_for_a_waiter() {
    wait_until(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND "
        "application_name = 'postrider' AND wait_event_type = 'Lock'");
  }

  PostgresJobStoreHarness* postgres_ = nullptr;
};

#define NEEDS_HARNESS() \
  if (harness_ == nullptr) return

INSTANTIATE_TEST_SUITE_P(Postgres, PostgresJobs, ::testing::Values(with_options("defaults", {})),
                         job_case_name);

TEST_P(PostgresJobs, Under_eight_takers_every_job_is_taken_and_recorded_exactly_once) {
  NEEDS_HARNESS();
  constexpr std::size_t jobs = 600;
  for (std::size_t i = 0; i < jobs; ++i) {
    const auto number = static_cast<int>(i);
    plant(i % 3 == 0 ? serial("customer-" + std::to_string(number % 7), 1 + number % 2)
                     : with_priority(number % 5));
  }
  std::vector<WorkerId> workers;
  for (int i = 0; i < 8; ++i)
    workers.push_back(start_worker());
  const auto request = take_request(5);
  std::mutex mutex;
  std::map<DeliveryId, int> taken;
  std::vector<std::string> failures;
  std::atomic<std::size_t> recorded{0};
  const auto deadline = Deadline::after(seconds(60));
  const auto failed = [&](const Error& error) {
    const std::lock_guard lock(mutex);
    failures.push_back(describe(error));
  };

  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&, worker] {
      const auto store = harness_->open_job_store();
      auto own = request;
      own.worker = worker;
      while (recorded < jobs && !deadline.passed()) {
        const auto batch = store->take(own, soon());
        if (!batch.ok()) {
          failed(batch.error());
          continue;
        }
        RecordRequest ends;
        ends.now = request.now;
        for (const auto& task : batch->tasks) {
          const std::lock_guard lock(mutex);
          ++taken[task.job.delivery_id];
          ends.updates.push_back(completed(task));
        }
        const auto answers = store->record(ends, soon());
        if (!answers.ok()) {
          failed(answers.error());
          continue;
        }
        for (const auto answer : *answers)
          recorded += answer == RecordAnswer::recorded ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(recorded.load(), jobs);
  EXPECT_THAT(failures, IsEmpty());
  EXPECT_THAT(taken, SizeIs(jobs));
  for (const auto& [id, times] : taken)
    EXPECT_EQ(times, 1) << id.value().to_string();
}

TEST_P(PostgresJobs, A_taker_does_not_wait_for_a_row_that_somebody_has_locked) {
  NEEDS_HARNESS();
  const auto ids = plant_many(2);
  session().run("BEGIN");
  session().run("SELECT 1 FROM outbox_deliveries WHERE id = $1::uuid FOR UPDATE",
                {ids[0].value().to_string()});

  EXPECT_THAT(ids_of(take()), ElementsAre(ids[1]));
  session().run("ROLLBACK");
  EXPECT_THAT(ids_of(take()), ElementsAre(ids[0]));
}

TEST_P(PostgresJobs, F133_a_reaper_that_waited_for_the_worker_changes_nothing) {
  NEEDS_HARNESS();
  const auto id = plant();
  const auto task = take_one();
  clock_.advance(seconds(10));
  ASSERT_THAT(lost().attempts, SizeIs(1));
  auto reaped = retried(task, milliseconds(0));
  reaped.result = "timed_out";
  session().run("BEGIN");
  session().run(
      "UPDATE outbox_deliveries SET status = 'completed', finished_at = now(), "
      "delivery_timeout_at = NULL, result = 'done' WHERE id = $1::uuid",
      {id.value().to_string()});

  RecordAnswer answer = RecordAnswer::recorded;
  std::thread reaper([&] { answer = record(reaped); });
  {
    const auto other = postgres_->database().open_session();
    while (other->run("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                      "AND application_name = 'postrider' AND wait_event_type = 'Lock'") == "0") {
    }
  }
  session().run("COMMIT");
  reaper.join();

  EXPECT_EQ(answer, RecordAnswer::conflict);
  EXPECT_EQ(row(id).status, DeliveryStatus::completed);
}

TEST_P(PostgresJobs, F134_after_a_lost_answer_to_commit_the_same_end_is_a_repetition) {
  NEEDS_HARNESS();
  const auto id = plant();
  const auto task = take_one();
  const auto& database = postgres_->database();
  ChaosProxy proxy(database.server().port());
  auto options = database.options();
  options.conninfo = database.server().tcp_conninfo(database.name(), "postgres", proxy.port());
  const auto through_proxy = make_postgres_job_store(options);
  expect_ok(through_proxy->check_schema(soon()));

  proxy.tell("down drop");
  const auto refused =
      through_proxy->record({{completed(task)}, now()}, Deadline::after(seconds(1)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::commit_unknown) << describe(refused.error());
  EXPECT_EQ(refused.error().disposition, Disposition::in_doubt);
  proxy.tell("both reset");
  proxy.tell("down pass");
  wait_until("SELECT status = 'completed' FROM outbox_deliveries");

  EXPECT_THAT(value_of(through_proxy->record({{completed(task)}, now()}, soon())),
              ElementsAre(RecordAnswer::repeated));
  EXPECT_EQ(row(id).status, DeliveryStatus::completed);
}

TEST_P(PostgresJobs, J_22_an_application_that_writes_of_the_aggregate_holds_up_no_end) {
  NEEDS_HARNESS();
  const auto id = plant();
  const auto task = take_one();
  session().run("BEGIN");
  session().run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES ('order', "
      "'17', 'order.paid', '{}')");
  auto update = failed(task);
  update.keeps_failure = true;
  update.events.emplace_back();
  update.events[0].type = "ship.failed";
  update.events[0].aggregate = Aggregate{"order", "17"};

  EXPECT_EQ(record(update), RecordAnswer::recorded);

  EXPECT_EQ(row(id).status, DeliveryStatus::failed);
  session().run("COMMIT");
  EXPECT_EQ(session().run("SELECT count(*)::text FROM outbox_events WHERE aggregate_id = '17'"),
            "2");
}

TEST_P(PostgresJobs, F134_after_a_lost_answer_to_commit_a_worker_gets_what_it_has_taken) {
  NEEDS_HARNESS();
  const auto ids = plant_many(3);
  const auto request = take_request(2);
  const auto& database = postgres_->database();
  ChaosProxy proxy(database.server().port());
  auto options = database.options();
  options.conninfo = database.server().tcp_conninfo(database.name(), "postgres", proxy.port());
  const auto through_proxy = make_postgres_job_store(options);
  expect_ok(through_proxy->check_schema(soon()));

  proxy.tell("down drop");
  const auto refused = through_proxy->take(request, Deadline::after(seconds(1)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().disposition, Disposition::in_doubt) << describe(refused.error());
  proxy.tell("both reset");
  proxy.tell("down pass");
  wait_until("SELECT count(*) = 2 FROM outbox_deliveries WHERE status = 'dispatched'");

  const auto again = value_of(through_proxy->take(request, soon()));
  EXPECT_THAT(ids_of(again), ElementsAre(ids[0], ids[1]));
  EXPECT_TRUE(again.more);
  EXPECT_EQ(row(ids[0]).deaths, 1) << "it is one dispatch";
  EXPECT_THAT(value_of(through_proxy->record({{completed(again.tasks[0])}, now()}, soon())),
              ElementsAre(RecordAnswer::recorded));
  EXPECT_THAT(ids_of(value_of(through_proxy->take(request, soon()))), ElementsAre(ids[2]));
}

TEST_P(PostgresJobs, Two_takers_that_want_one_slot_of_a_key_get_it_one_after_the_other) {
  NEEDS_HARNESS();
  NewEvent early;
  early.id = EventId(fresh_uuid());
  early.type = "order.placed";
  value_of(store_->add(std::vector{early}, soon()));
  const auto first = plant(serial("customer-1"));
  const auto late =
      plant(with({serial("customer-1"), [&](NewDelivery& job) { job.event_id = *early.id; }}));
  const auto other = plant();
  const auto request = take_request();
  // Another taker, which began before `late` was there.
  session().run("BEGIN");
  session().run(
      "UPDATE outbox_deliveries SET status = 'dispatched', serial_slot = 0, dispatch_id = "
      "gen_random_uuid(), dispatched_at = now(), delivery_timeout_at = now() WHERE id = $1::uuid",
      {first.value().to_string()});

  std::vector<DeliveryId> taken;
  std::thread taker([&] { taken = ids_of(take(request)); });
  {
    const auto watcher = postgres_->database().open_session();
    while (watcher->run("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND application_name = 'postrider' AND wait_event_type = 'Lock'") == "0") {
    }
  }
  session().run("COMMIT");
  taker.join();

  EXPECT_THAT(taken, ElementsAre(other));
  EXPECT_EQ(row(late).status, DeliveryStatus::pending);
}

TEST_P(PostgresJobs,
       A_record_that_loses_a_deadlock_is_repeated_and_its_caller_hears_nothing_of_it) {
  NEEDS_HARNESS();
  plant();
  plant();
  const auto request = take_request();
  const auto batch = take(request);
  ASSERT_THAT(batch.tasks, SizeIs(2));
  const auto [low, high] =
      std::minmax(batch.tasks[0].job.delivery_id, batch.tasks[1].job.delivery_id);
  // As a taker that passed over both rows with an old snapshot; the record finds the ring first.
  session().run("BEGIN");
  session().run("SET LOCAL deadlock_timeout = '60s'");
  const std::string lock = "SELECT id FROM outbox_deliveries WHERE id = $1::uuid FOR UPDATE";
  session().run(lock, {high.value().to_string()});
  RecordRequest ends;
  ends.now = request.now;
  for (const auto& task : batch.tasks)
    ends.updates.push_back(completed(task));
  Result<std::vector<RecordAnswer>> answers = std::vector<RecordAnswer>();
  std::thread recorder([&] { answers = jobs_->record(ends, soon()); });
  {
    const auto watcher = postgres_->database().open_session();
    while (watcher->run("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND application_name = 'postrider' AND wait_event_type = 'Lock'") == "0") {
    }
  }
  session().run(lock, {low.value().to_string()});
  session().run("COMMIT");
  recorder.join();

  ASSERT_TRUE(answers.ok()) << describe(answers.error());
  EXPECT_THAT(*answers, Each(RecordAnswer::recorded));
}

// Their speed is a figure of the benchmark: jobs_4_limited.
TEST_P(PostgresJobs, JT_21_takers_of_a_key_with_a_great_limit_take_turns_and_refuse_nobody) {
  NEEDS_HARNESS();
  constexpr std::size_t jobs = 160;
  constexpr int takers = 4;
  plant_many(jobs, serial("all", 40));
  const auto request = take_request(10);
  const auto until = soon();
  std::atomic<std::size_t> done{0};
  std::atomic<int> refused{0};

  std::vector<std::thread> threads;
  for (int i = 0; i < takers; ++i) {
    threads.emplace_back([&] {
      const auto store = harness_->open_job_store();
      while (done < jobs && !until.passed()) {
        const auto batch = store->take(request, soon());
        if (!batch.ok()) ++refused;
        if (!batch.ok() || batch->tasks.empty()) continue;
        RecordRequest ends;
        ends.now = request.now;
        for (const auto& task : batch->tasks)
          ends.updates.push_back(completed(task));
        if (store->record(ends, soon()).ok()) done += ends.updates.size();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(done.load(), jobs);
  EXPECT_EQ(refused.load(), 0);
}

TEST_P(PostgresJobs, JT_28_no_transaction_is_left_open_by_a_call_that_failed) {
  NEEDS_HARNESS();
  plant();
  const auto request = take_request();
  const auto lock = harness_->lock_database();

  EXPECT_FALSE(jobs_->take(request, Deadline::after(milliseconds(300))).ok());

  EXPECT_EQ(session().run("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND application_name = 'postrider' AND state LIKE "
                          "'idle in transaction%'"),
            "0");
}

// Waiting

TEST_P(PostgresJobs, A_job_that_is_written_by_hand_wakes_who_listens_for_its_queue) {
  NEEDS_HARNESS();
  expect_ok(jobs_->await_work({"mail"}, soon()));  // begins to listen
  plant(in_queue("print"));
  plant(with({delayed(std::chrono::hours(24 * 365 * 10))}));
  plant(over_broker());
  const auto begun = std::chrono::steady_clock::now();
  expect_ok(jobs_->await_work({"mail"}, Deadline::after(milliseconds(200))));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(190))
      << "another queue, a delayed job and one for a broker concern nobody here";

  plant();
  expect_ok(jobs_->await_work({"mail"}, soon()));

  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(5));
}

TEST_P(PostgresJobs, A_job_that_is_due_again_and_a_queue_that_is_resumed_wake) {
  NEEDS_HARNESS();
  plant();
  const auto task = take_one();
  expect_ok(jobs_->await_work({"mail"}, soon()));
  const auto begun = std::chrono::steady_clock::now();

  record(retried(task, milliseconds(0)));
  expect_ok(jobs_->await_work({"mail"}, soon()));
  pause("mail");
  session().run("UPDATE outbox_queues SET paused_at = NULL, paused_by = NULL");
  expect_ok(jobs_->await_work({"mail"}, soon()));
  pause("mail");
  session().run("DELETE FROM outbox_queues");
  expect_ok(jobs_->await_work({"mail"}, soon()));

  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(5));
}

TEST_P(PostgresJobs, Deliveries_of_publish_routes_tell_nobody) {
  NEEDS_HARNESS();
  expect_ok(jobs_->await_work({"mail"}, soon()));
  session().run(
      "INSERT INTO outbox_events (type) VALUES ('x'); INSERT INTO outbox_deliveries (id, "
      "event_seq, event_id, slot, route, status, retry_delays, timeout_ms, on_failed, "
      "available_at) SELECT outbox_uuidv7(), seq, id, slot, 'r', 'pending', '[]', 0, 'halt', "
      "now() FROM outbox_events");

  const auto begun = std::chrono::steady_clock::now();
  expect_ok(jobs_->await_work({"mail"}, Deadline::after(milliseconds(200))));

  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(190));
}

TEST_P(PostgresJobs, Whoever_lost_the_connection_that_listens_looks_again_and_goes_on) {
  NEEDS_HARNESS();
  expect_ok(jobs_->await_work({"mail"}, soon()));
  harness_->lose_connections();
  const auto begun = std::chrono::steady_clock::now();

  expect_ok(jobs_->await_work({"mail"}, soon()));
  plant();
  expect_ok(jobs_->await_work({"mail"}, soon()));

  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(5));
}

// Plans

/// The plan of `statement` for `arguments`, or for nulls, as a worker's session has it.
std::string plan_of(PostgresSession& session, const std::string& statement,
                    std::string arguments = "", const std::string& how = "EXPLAIN") {
  std::string text;
  for (const auto& row : sql::store_postgres::statements) {
    if (row.name == statement) text = row.text;
  }
  for (const auto* placeholder : {"{schema}", "{prefix}"}) {
    for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder))
      text.erase(at, 8);
  }
  session.run("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off");
  session.run("PREPARE planned AS " + text);
  if (arguments.empty()) {
    arguments = session.run(
        "SELECT '(' || array_to_string(array_fill('null'::text, "
        "ARRAY[cardinality(parameter_types)]), ', ') || ')' FROM pg_prepared_statements WHERE "
        "name = 'planned'");
  }
  std::string plan;
  for (const auto& line : session.rows(how + " EXECUTE planned " + arguments))
    plan += line + "\n";
  session.run("DEALLOCATE planned");
  return plan;
}

const std::string some_id = "00000000-0000-0000-0000-000000000001";

void expect_rows_are_found_by_id(PostgresSession& session) {
  for (const auto* name : {"jobs_record", "jobs_touch", "jobs_attempt", "jobs_start", "jobs_get"}) {
    const auto plan = plan_of(session, name);
    EXPECT_THAT(plan, HasSubstr("outbox_deliveries_pkey")) << name << "\n" << plan;
    EXPECT_THAT(plan, Not(HasSubstr("outbox_deliveries_timeout_idx"))) << name << "\n" << plan;
  }
  EXPECT_THAT(plan_of(session, "jobs_running"), HasSubstr("outbox_jobs_worker_idx"));
  EXPECT_THAT(plan_of(session, "jobs_lost"), HasSubstr("outbox_jobs_worker_idx"));
}

/// Jobs by SQL: `count` rows with this status, due time and priority.
void write_jobs(PostgresSession& session, int count, const std::string& status,
                const std::string& available_at, int priority = 0) {
  const bool dispatched = status == "dispatched";
  session.run(
      "WITH e AS (INSERT INTO outbox_events (type) SELECT 'x' FROM generate_series(1, " +
      std::to_string(count) +
      ") RETURNING seq, id, slot) INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, "
      "route, status, retry_delays, timeout_ms, on_failed, available_at, kind, job, queue, "
      "transport, priority, on_worker_death, max_deaths, timeout_limit_ms, finished_at, "
      "dispatch_id, dispatched_at, delivery_timeout_at) SELECT outbox_uuidv7(), seq, id, slot, "
      "'r', '" +
      status + "', '[]', 1000, 'skip', " + available_at + ", 'job', 'send', 'mail', 'database', " +
      std::to_string(priority) + ", 'fail', 2, 1000, " +
      (status == "completed" ? "now()" : "NULL") + ", gen_random_uuid(), now(), " +
      (dispatched ? "now() + interval '1 hour'" : "NULL") + " FROM e");
}

// A plan from a partial index of running rows, which look empty, reads all of them for each row:
// measured, a batch of 100 ends took five times as long.
TEST_P(PostgresJobs, Rows_are_found_by_their_ids_whatever_the_statistics_say) {
  NEEDS_HARNESS();
  const auto own = postgres_->database().open_session();
  expect_rows_are_found_by_id(*own);
  own->run("ANALYZE");
  expect_rows_are_found_by_id(*own);
  write_jobs(*own, 5000, "pending", "now()");
  own->run("ANALYZE");
  expect_rows_are_found_by_id(*own);
  write_jobs(*own, 5000, "dispatched", "now()");
  own->run("ANALYZE");
  expect_rows_are_found_by_id(*own);
}

/// Pages that the statement looked at, from EXPLAIN (ANALYZE, BUFFERS).
int pages_of(const std::string& plan) {
  const auto at = plan.find("shared hit=");
  return at == std::string::npos ? 0 : std::stoi(plan.substr(at + 11));
}

TEST_P(PostgresJobs, A_take_costs_what_it_returns_and_not_what_waits_or_has_ended) {
  NEEDS_HARNESS();
  const auto own = postgres_->database().open_session();
  own->run("INSERT INTO outbox_workers VALUES ('" + some_id +
           "', 'w', 'h', 1, '1', '[]', 'running', now(), now())");
  std::string ten_ids = some_id;
  for (int i = 1; i < 10; ++i)
    ten_ids += "," + fresh_uuid().to_string();
  const auto pages_of_a_take = [&] {
    own->run("BEGIN");
    const auto plan =
        plan_of(*own, "jobs_take",
                "(null, '" + some_id + "', '{mail}', '{10}', 0, 10, '{" + ten_ids + "}')",
                "EXPLAIN (ANALYZE, BUFFERS)");
    own->run("ROLLBACK");
    return pages_of(plan);
  };
  write_jobs(*own, 100, "pending", "now() - interval '1 s'", 5);
  own->run("VACUUM ANALYZE");
  const int alone = pages_of_a_take();

  write_jobs(*own, 10'000, "pending", "now() + interval '1 day'", -5);
  write_jobs(*own, 10'000, "completed", "now()");
  write_jobs(*own, 5'000, "dispatched", "now()", 5);
  own->run("VACUUM ANALYZE");

  EXPECT_LT(pages_of_a_take(), 2 * alone + 100);
}

}  // namespace
}  // namespace postrider::testing
