// SQLite's store of jobs against the suite that defines one, and what only a file can show: plans,
// processes, lost answers, and waiting for another process to commit.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "backends/sqlite_faulty_files.hpp"
#include "backends/sqlite_job_database.hpp"
#include "base/timestamp_text.hpp"
#include "conformance/job_store_builders.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::testing {

INSTANTIATE_TEST_SUITE_P(
    Sqlite, JobStoreConformance,
    ::testing::Values(JobStoreCase{"wal", [] { return std::make_unique<SqliteJobHarness>(); }},
                      JobStoreCase{
                          "prefixed",
                          [] {
                            return std::make_unique<SqliteJobHarness>(SchemaNames{"", "shop_"});
                          }}),
    job_case_name);

namespace {

namespace statements = sql::store_sqlite;

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// A database with one worker, which says nothing more than that it runs.
class JobFile {
 public:
  JobFile() { worker_ = start_worker(*jobs_); }

  [[nodiscard]] const SqliteDatabase& database() const { return database_; }
  [[nodiscard]] Timestamp now() const { return clock_.wall(); }
  ManualClock& clock() { return clock_; }
  JobStore& jobs() { return *jobs_; }
  [[nodiscard]] std::unique_ptr<JobStore> open() const {
    return make_sqlite_job_store(database_.options());
  }

  WorkerId start_worker(JobStore& jobs) const {
    HeartbeatRequest request;
    request.worker = {WorkerId(fresh_uuid()), "worker", "host", ::getpid(), "1.0", {"mail"}};
    request.now = now();
    EXPECT_TRUE(value_of(jobs.heartbeat(request, soon())).known);
    return request.worker.id;
  }

  [[nodiscard]] TakeRequest take_request(std::size_t limit = 100) const {
    return {worker_, {{"mail", limit}}, limit, milliseconds(0), now()};
  }
  TaskBatch take(std::size_t limit = 100) {
    return value_of(jobs_->take(take_request(limit), soon()));
  }
  std::vector<RecordAnswer> record(std::vector<JobUpdate> updates) {
    return value_of(jobs_->record({std::move(updates), now()}, soon()));
  }

  void plant(std::size_t count, const std::string& columns = "", const std::string& values = "") {
    plant_many_jobs(database_, count, now(), columns, values);
  }
  [[nodiscard]] std::string value(const std::string& sql) const {
    return RawConnection(database_.path()).value(sql);
  }

 private:
  ManualClock clock_;
  SqliteDatabase database_;
  std::unique_ptr<JobStore> jobs_ = open();
  WorkerId worker_;
};

/// Runs `body` in a child process, whose exit code is what it returns.
pid_t fork_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

bool succeeded(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// A pipe of lines from children.
class Lines {
 public:
  Lines() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Lines() {
    close_writer();
    ::close(ends_[0]);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// Lines shorter than PIPE_BUF do not mix.
  void write(const std::string& line) const {
    const auto text = line + "\n";
    if (::write(ends_[1], text.data(), text.size()) < 0) ::_exit(9);
  }
  /// Until all writers are gone; call `close_writer` first.
  std::vector<std::string> read_all() const {
    std::vector<std::string> lines;
    std::string line;
    for (char byte = 0; ::read(ends_[0], &byte, 1) == 1;) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      lines.push_back(std::move(line));
      line.clear();
    }
    return lines;
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string without_prefixes(std::string_view statement) {
  constexpr std::string_view placeholder = "{prefix}";
  std::string sql(statement);
  for (std::size_t at = 0; (at = sql.find(placeholder, at)) != std::string::npos;)
    sql.erase(at, placeholder.size());
  return sql;
}

std::string plan_of(RawConnection& raw, std::string_view statement) {
  std::string plan;
  const auto add = [](void* to, int, char** values, char**) {
    static_cast<std::string*>(to)->append(values[3]).append("\n");
    return 0;
  };
  const auto explain = "EXPLAIN QUERY PLAN " + without_prefixes(statement);
  EXPECT_EQ(sqlite3_exec(raw.handle(), explain.c_str(), add, &plan, nullptr), SQLITE_OK)
      << raw.last_message();
  return plan;
}

TEST(SqliteJobs, Statements_use_the_indexes_that_they_name) {
  const SqliteDatabase database;
  RawConnection raw(database.path());
  const std::map<std::string_view, std::string> expected = {
      {statements::jobs_next_priority, "outbox_jobs_take (queue=? AND priority>?)"},
      {statements::jobs_due,
       "outbox_jobs_take (queue=? AND priority=? AND (available_at,id)>(?,?) AND available_at<?)"},
      {statements::jobs_next_due, "outbox_jobs_take (queue=? AND priority=? AND available_at>?)"},
      {statements::jobs_due_by_route,
       "outbox_jobs_hand_out (route=? AND (available_at,id)>(?,?) AND available_at<?)"},
      {statements::jobs_next_due_by_route, "outbox_jobs_hand_out (route=? AND available_at>?)"},
      {statements::jobs_serial_first, "outbox_jobs_serial (queue=? AND serial_key=?)"},
      {statements::jobs_serial_slots, "COVERING INDEX outbox_jobs_serial_slot"},
      {statements::jobs_dispatch, "(id=?)"},
      {statements::jobs_get_dispatched, "(id=?)"},
      {statements::jobs_start, "(id=?)"},
      {statements::jobs_record, "(id=?)"},
      {statements::jobs_recorded, "(id=?)"},
      {statements::jobs_attempt, "(id=?)"},
      {statements::jobs_touch, "(id=?)"},
      {statements::jobs_running, "outbox_jobs_worker (worker=?)"},
      {statements::jobs_next_worker, "outbox_jobs_worker (worker>?)"},
      {statements::jobs_of_worker, "outbox_jobs_worker (worker=?)"},
      {statements::jobs_overdue, "outbox_jobs_timeout (delivery_timeout_at<?)"},
      {statements::workers_expire, "outbox_workers_alive (last_seen_at<?)"},
      {statements::workers_on_host, "outbox_workers_alive"}};
  for (const auto& [statement, part] : expected) {
    const auto plan = plan_of(raw, statement);
    EXPECT_THAT(plan, HasSubstr(part)) << statement;
    EXPECT_THAT(plan, Not(HasSubstr("TEMP B-TREE"))) << statement;
  }
}

TEST(SqliteJobs, Thousands_that_wait_for_their_key_do_not_hide_a_job_behind_them) {
  JobFile file;
  file.plant(2500, "serial_key, serial_limit", "'customer-1', 1");
  file.plant(1);

  const auto batch = file.take(2);

  ASSERT_THAT(batch.tasks, SizeIs(2));
  EXPECT_EQ(batch.tasks[0].job.event_seq, Seq(1));
  EXPECT_EQ(batch.tasks[1].job.event_seq, Seq(2501));
  EXPECT_FALSE(batch.more);
}

TEST(SqliteJobs, Keys_with_different_limits_are_each_judged_by_their_own_rows) {
  JobFile file;
  file.plant(1, "serial_key, serial_limit", "'customer-1', 1");
  file.plant(3, "serial_key, serial_limit", "'customer-1', 3");

  const auto batch = file.take();

  ASSERT_THAT(batch.tasks, SizeIs(3)) << "the fourth has three in front of it";
  EXPECT_EQ(file.value("SELECT group_concat(serial_slot) FROM (SELECT * FROM outbox_deliveries "
                       "ORDER BY event_seq)"),
            "0,1,2");
}

TEST(SqliteJobs, A_clock_that_goes_back_does_not_stop_a_queue_with_a_rate) {
  JobFile file;
  file.plant(5);
  const auto ahead = timestamp_text(file.now() + hours(24));
  RawConnection(file.database().path())
      .must(
          "INSERT INTO outbox_queues (queue, rate_limit, rate_period_ms, tokens, refilled_at) "
          "VALUES ('mail', 1, 1000, 0, '" +
          ahead + "')");

  EXPECT_THAT(file.take().tasks, IsEmpty());
  file.clock().advance(seconds(1));

  EXPECT_THAT(file.take().tasks, SizeIs(1));
}

TEST(SqliteJobs, A_damaged_row_is_handed_on_with_its_reason_beside_sound_ones) {
  JobFile file;
  file.plant(2);
  RawConnection raw(file.database().path());
  raw.must("PRAGMA ignore_check_constraints = ON");
  raw.must("UPDATE outbox_deliveries SET retry_delays = '[1,\"soon\"]' WHERE event_seq = 1");

  const auto batch = file.take();

  ASSERT_THAT(batch.tasks, SizeIs(2));
  EXPECT_THAT(batch.tasks[0].malformed, HasSubstr("retry_delays"));
  EXPECT_EQ(batch.tasks[1].malformed, "");
}

TEST(SqliteJobs, What_an_attempt_may_not_write_is_refused_with_both_numbers) {
  JobFile file;
  file.plant(1);
  const auto batch = file.take();
  ASSERT_THAT(batch.tasks, SizeIs(1));
  const auto refused = [&](const std::function<void(AttemptUpdate&)>& change) {
    auto update = attempt_of(batch.tasks[0]);
    change(update);
    const auto answer = file.jobs().touch(update, soon());
    return answer.ok() ? std::string("accepted") : answer.error().message;
  };

  EXPECT_THAT(refused([](auto& update) { update.percent = 101; }), HasSubstr("0 to 100"));
  EXPECT_THAT(refused([](auto& update) { update.percent = -1; }), HasSubstr("0 to 100"));
  EXPECT_THAT(refused([](auto& update) { update.extend = milliseconds(0); }), HasSubstr("1 ms"));
  EXPECT_THAT(refused([](auto& update) { update.note = std::string(201, 'x'); }),
              HasSubstr("201 bytes and may have 200"));
  EXPECT_THAT(refused([](auto& update) { update.checkpoint = std::string(65'537, 'x'); }),
              HasSubstr("65537 bytes and may have 65536"));
  EXPECT_EQ(file.value("SELECT percent IS NULL AND note IS NULL FROM outbox_deliveries"), "1");
}

TEST(SqliteJobs, A_new_attempt_begins_without_the_progress_of_the_last_one) {
  JobFile file;
  file.plant(1);
  const auto first = file.take();
  ASSERT_THAT(first.tasks, SizeIs(1));
  auto update = attempt_of(first.tasks[0]);
  update.percent = 90;
  update.note = "page 9";
  update.checkpoint = "9";
  update.now = file.now();
  EXPECT_TRUE(value_of(file.jobs().touch(update, soon())).current);
  file.record({retried(first.tasks[0], milliseconds(0))});

  const auto second = file.take();

  ASSERT_THAT(second.tasks, SizeIs(1));
  EXPECT_EQ(second.tasks[0].checkpoint, "9");
  EXPECT_EQ(file.value("SELECT percent IS NULL AND note IS NULL FROM outbox_deliveries"), "1");
}

TEST(SqliteJobs, A_route_whose_queue_was_renamed_is_handed_out_behind_its_paused_old_one) {
  JobFile file;
  file.plant(3);
  RawConnection raw(file.database().path());
  raw.must("UPDATE outbox_deliveries SET transport = 'broker'");
  raw.must("UPDATE outbox_deliveries SET queue = 'post' WHERE event_seq = 3");
  raw.must("INSERT INTO outbox_queues (queue, paused_at, paused_by) VALUES ('mail', '" +
           timestamp_text(file.now()) + "', 'ann')");

  const auto batch = value_of(file.jobs().hand_out({{"mailing"}, 10, file.now()}, soon()));

  ASSERT_THAT(batch.tasks, SizeIs(1));
  EXPECT_EQ(batch.tasks[0].job.queue, "post");
}

// Processes

/// Takes and records until nothing is left, and tells of each job that it took.
int work_until_empty(const JobFile& file, const Lines& lines) {
  const auto jobs = file.open();
  auto request = file.take_request(3);
  request.worker = file.start_worker(*jobs);
  for (;;) {
    const auto batch = jobs->take(request, soon());
    if (!batch.ok()) return 1;
    if (batch->tasks.empty()) return 0;
    std::vector<JobUpdate> ends;
    for (const auto& task : batch->tasks) {
      lines.write(task.job.delivery_id.value().to_string());
      ends.push_back(completed(task));
    }
    const auto answers = jobs->record({ends, request.now}, soon());
    if (!answers.ok()) return 2;
    for (const auto answer : *answers) {
      if (answer != RecordAnswer::recorded) return 3;
    }
  }
}

TEST(SqliteJobs, Four_processes_share_a_file_and_each_job_is_taken_once) {
  constexpr std::size_t jobs = 200;
  JobFile file;
  file.plant(jobs);
  Lines lines;

  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(fork_child([&] { return work_until_empty(file, lines); }));
  lines.close_writer();
  const auto taken = lines.read_all();

  for (const auto child : children)
    EXPECT_TRUE(succeeded(child)) << "waiting for the lock is no error";
  EXPECT_THAT(taken, SizeIs(jobs));
  EXPECT_THAT(std::set<std::string>(taken.begin(), taken.end()), SizeIs(jobs));
  EXPECT_EQ(file.value("SELECT count(*) FROM outbox_deliveries WHERE status = 'completed'"),
            std::to_string(jobs));
}

TEST(SqliteJobs, F134_a_record_whose_answer_was_lost_can_be_repeated) {
  JobFile file;
  file.plant(2);
  const auto tasks = file.take().tasks;
  ASSERT_THAT(tasks, SizeIs(2));
  const std::vector<JobUpdate> ends = {retried(tasks[0], hours(1)), completed(tasks[1])};

  // Dies between the commit and the answer.
  EXPECT_TRUE(succeeded(fork_child([&] {
    return file.open()->record({ends, file.now()}, soon()).ok() ? 0 : 1;
  })));

  EXPECT_THAT(file.record(ends), Each(RecordAnswer::repeated));
  EXPECT_EQ(file.value("SELECT sum(attempts) FROM outbox_deliveries"), "1");
}

TEST(SqliteJobs, F134_a_record_whose_commit_failed_to_sync_has_one_effect_when_it_is_repeated) {
  JobFile file;
  file.plant(1);
  const auto tasks = file.take().tasks;
  ASSERT_THAT(tasks, SizeIs(1));
  const FaultyFiles faults;
  const auto failing = file.open();
  expect_ok(failing->check_schema(soon()));

  FaultyFiles::fail_sync = true;
  const auto lost = failing->record({{retried(tasks[0], hours(1))}, file.now()}, soon());
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, ErrorCode::storage_failed);
  FaultyFiles::fail_sync = false;
  EXPECT_FALSE(failing->record({{retried(tasks[0], hours(1))}, file.now()}, soon()).ok())
      << "nobody knows what a later success would mean";

  const auto answers = file.record({retried(tasks[0], hours(1))});
  EXPECT_THAT(answers, Each(AnyOf(RecordAnswer::recorded, RecordAnswer::repeated)));
  EXPECT_THAT(file.record({retried(tasks[0], hours(1))}), Each(RecordAnswer::repeated));
  EXPECT_EQ(file.value("SELECT attempts || status FROM outbox_deliveries"), "1pending");
}

TEST(SqliteJobs, A_full_disk_takes_nothing_and_loses_nothing) {
  JobFile file;
  file.plant(2);
  const auto task = file.take(1).tasks.at(0);
  const FaultyFiles faults;
  const auto jobs = file.open();
  expect_ok(jobs->check_schema(soon()));

  FaultyFiles::disk_full = true;
  EXPECT_EQ(jobs->take(file.take_request(), soon()).error().code, ErrorCode::storage_failed);
  EXPECT_EQ(jobs->record({{completed(task)}, file.now()}, soon()).error().disposition,
            Disposition::retry);
  FaultyFiles::disk_full = false;

  EXPECT_THAT(value_of(jobs->record({{completed(task)}, file.now()}, soon())),
              ElementsAre(RecordAnswer::recorded));
  EXPECT_THAT(value_of(jobs->take(file.take_request(), soon())).tasks, SizeIs(1));
}

// A writer that is still open would lock out everybody, a reader would keep the log from being
// emptied.
TEST(SqliteJobs, JT_28_no_transaction_is_left_open_by_a_call_that_failed) {
  JobFile file;
  file.plant(2);
  const auto task = file.take(1).tasks.at(0);
  RawConnection other(file.database().path());
  const auto nobody_else_is_in = [&] {
    return other.run("BEGIN IMMEDIATE; ROLLBACK") == SQLITE_OK &&
           other.value("PRAGMA wal_checkpoint(TRUNCATE)") == "0";
  };
  const FaultyFiles faults;
  const auto jobs = file.open();
  expect_ok(jobs->check_schema(soon()));
  const auto fail_both = [&] {
    const auto deadline = [] { return Deadline::after(milliseconds(100)); };
    EXPECT_FALSE(jobs->take(file.take_request(), deadline()).ok());
    EXPECT_FALSE(jobs->record({{completed(task)}, file.now()}, deadline()).ok());
  };

  other.must("BEGIN IMMEDIATE");
  fail_both();  // their time is over while another one writes
  other.must("ROLLBACK");
  EXPECT_TRUE(nobody_else_is_in());

  FaultyFiles::disk_full = true;
  fail_both();  // at COMMIT
  FaultyFiles::disk_full = false;
  EXPECT_TRUE(nobody_else_is_in());
}

TEST(SqliteJobs, F135_what_was_taken_by_a_process_that_died_is_found_by_its_worker) {
  JobFile file;
  file.plant(1);
  EXPECT_TRUE(succeeded(fork_child([&] {
    const auto jobs = file.open();
    auto request = file.take_request();
    request.worker = file.start_worker(*jobs);
    const auto batch = jobs->take(request, soon());
    return batch.ok() && batch->tasks.size() == 1 ? 0 : 1;
  })));
  EXPECT_THAT(file.take().tasks, IsEmpty());

  file.clock().advance(seconds(30));
  const auto batch = value_of(file.jobs().lost({seconds(30), 10, file.now()}, soon()));

  ASSERT_THAT(batch.attempts, SizeIs(1));
  EXPECT_TRUE(batch.attempts[0].worker_died);
  EXPECT_EQ(batch.attempts[0].job.deaths, 0);
  EXPECT_EQ(file.value("SELECT deaths FROM outbox_deliveries"), "1") << "until its end is recorded";
}

TEST(SqliteJobs, A_take_and_a_record_end_at_their_deadlines_and_hold_nothing_then) {
  JobFile file;
  file.plant(2);
  const auto task = file.take(1).tasks.at(0);
  RawConnection application(file.database().path());
  application.must("BEGIN IMMEDIATE");

  const auto taken = file.jobs().take(file.take_request(), Deadline::after(milliseconds(50)));
  const auto recorded =
      file.jobs().record({{completed(task)}, file.now()}, Deadline::after(milliseconds(50)));

  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::busy);
  ASSERT_FALSE(recorded.ok());
  EXPECT_EQ(recorded.error().disposition, Disposition::retry);
  application.must("COMMIT");
  EXPECT_EQ(application.run("BEGIN EXCLUSIVE; COMMIT"), SQLITE_OK);
  EXPECT_THAT(file.record({completed(task)}), ElementsAre(RecordAnswer::recorded));
}

// Waiting

/// How long a wait took, for tests that tell one that was ended from one that ran out.
milliseconds wait_for_work(JobStore& jobs, milliseconds patience) {
  const auto begun = steady_clock::now();
  expect_ok(jobs.await_work({"mail"}, Deadline::after(patience)));
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun);
}

/// After this a wait ends only by what happens from now on: the first one begins the watch, and
/// what the store itself has written ends one, too.
void begin_to_wait(JobFile& file) {
  for (int i = 0; i < 2; ++i)
    wait_for_work(file.jobs(), milliseconds(1));
  EXPECT_THAT(file.take().tasks, IsEmpty());
}

TEST(SqliteJobs, A_commit_of_another_process_ends_a_wait) {
  JobFile file;
  begin_to_wait(file);
  const auto child = fork_child([&] {
    // So that the wait has begun, mostly; if it has not, the commit ends it all the same.
    std::this_thread::sleep_for(milliseconds(50));
    plant_many_jobs(file.database(), 1, file.now());
    return 0;
  });

  const auto waited = wait_for_work(file.jobs(), seconds(30));
  const auto batch = file.take();

  EXPECT_LT(waited, seconds(10));
  EXPECT_THAT(batch.tasks, SizeIs(1)) << "a take waits for the commit that woke it";
  EXPECT_TRUE(succeeded(child));
}

TEST(SqliteJobs, A_commit_between_a_take_and_the_wait_is_not_missed) {
  JobFile file;
  begin_to_wait(file);
  file.plant(1);

  EXPECT_LT(wait_for_work(file.jobs(), seconds(30)), seconds(10));
  EXPECT_THAT(file.take().tasks, SizeIs(1));
}

TEST(SqliteJobs, A_commit_before_the_first_wait_is_not_missed) {
  JobFile file;
  EXPECT_THAT(file.take().tasks, IsEmpty());
  file.plant(1);

  EXPECT_LT(wait_for_work(file.jobs(), seconds(30)), seconds(10));
}

TEST(SqliteJobs, Takes_that_find_nothing_wake_nobody) {
  JobFile file;
  const auto other = file.open();
  begin_to_wait(file);
  EXPECT_THAT(value_of(other->take(file.take_request(), soon())).tasks, IsEmpty());
  EXPECT_THAT(value_of(file.jobs().lost({hours(1), 10, file.now()}, soon())).attempts, IsEmpty());
  EXPECT_THAT(file.take().tasks, IsEmpty());

  EXPECT_GE(wait_for_work(file.jobs(), milliseconds(60)), milliseconds(60));
}

TEST(SqliteJobs, A_wake_leaves_a_commit_for_the_next_wait) {
  JobFile file;
  begin_to_wait(file);
  file.plant(1);
  file.jobs().wake();

  EXPECT_LT(wait_for_work(file.jobs(), seconds(30)), seconds(10));
  EXPECT_LT(wait_for_work(file.jobs(), seconds(30)), seconds(10));
}

TEST(SqliteJobs, The_file_is_watched_where_a_link_leads) {
  JobFile file;
  const auto folder = file.database().folder() / "elsewhere";
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(file.database().path(), folder / "link.db");
  auto options = file.database().options();
  options.path = (folder / "link.db").string();
  const auto jobs = make_sqlite_job_store(options);
  wait_for_work(*jobs, milliseconds(1));
  file.plant(1);

  EXPECT_LT(wait_for_work(*jobs, seconds(30)), seconds(10));
}

/// Leaves this process no descriptor to open.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::dup(0);
    ::close(next);
    auto few = before_;
    few.rlim_cur = static_cast<rlim_t>(next);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(SqliteJobs, Without_a_watch_a_commit_still_ends_a_wait) {
  JobFile file;
  RawConnection application(file.database().path());
  application.must("SELECT count(*) FROM outbox_events");
  EXPECT_THAT(file.take().tasks, IsEmpty());
  const NoDescriptors none;
  wait_for_work(file.jobs(), milliseconds(1));

  EXPECT_GE(wait_for_work(file.jobs(), milliseconds(60)), milliseconds(60)) << "nothing happened";
  application.must("INSERT INTO outbox_events (type) VALUES ('t')");
  EXPECT_LT(wait_for_work(file.jobs(), seconds(30)), seconds(10)) << "before the wait";
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    application.must("INSERT INTO outbox_events (type) VALUES ('t')");
  });
  EXPECT_LT(wait_for_work(file.jobs(), seconds(30)), seconds(10)) << "during the wait";
  other.join();
}

TEST(SqliteJobs, F62_a_store_from_before_a_fork_is_refused_in_the_child) {
  JobFile file;
  begin_to_wait(file);

  EXPECT_TRUE(succeeded(fork_child([&] {
    const auto taken = file.jobs().take(file.take_request(), soon());
    const auto waited = file.jobs().await_work({"mail"}, soon());
    return taken.ok() || waited.ok() ? 1 : 0;
  })));
  EXPECT_THAT(file.take().tasks, IsEmpty());
}

}  // namespace
}  // namespace postrider::testing
