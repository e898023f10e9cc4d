// What goes wrong around a SQLite file: locks, forks, kills, full disks, failed syncs, damage.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "backends/sqlite_database.hpp"
#include "backends/sqlite_faulty_files.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Deadline no_patience() {
  return Deadline::after(milliseconds::zero());
}

std::string integrity(const SqliteDatabase& database) {
  return RawConnection(database.path()).lines("PRAGMA integrity_check");
}

/// Runs `body` in a child process, whose exit code is what it returns.
pid_t in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  // Without the atexit handlers of the test program.
  if (child == 0) ::_exit(body());
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SqliteFaults, F56_a_read_that_upgrades_fails_at_once_and_our_own_writes_never_do_that) {
  SqliteDatabase database;
  RawConnection application(database.path());
  sqlite3_busy_timeout(application.handle(), 20'000);
  application.must("BEGIN; SELECT count(*) FROM outbox_events");
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  add(*store, {order_event("1")});

  EXPECT_EQ(application.run("INSERT INTO outbox_events (type) VALUES ('t')"), SQLITE_BUSY_SNAPSHOT);

  // With that old snapshot still open, every writing call goes through.
  const auto batch = relay.claim();
  EXPECT_THAT(relay.settle(routing(relay.settle_request(), batch.events.at(0))).stale_events,
              IsEmpty());
  relay.release();
}

TEST(SqliteFaults, A_held_write_lock_is_waited_for_until_the_deadline) {
  SqliteDatabase database;
  const auto store = database.store();
  RawConnection application(database.path());
  application.must("BEGIN IMMEDIATE; INSERT INTO outbox_events (type) VALUES ('t')");

  const auto refused = store->add(std::vector{lone_event()}, Deadline::after(milliseconds(50)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  EXPECT_EQ(store->add(std::vector{lone_event()}, no_patience()).error().code, ErrorCode::busy);

  std::thread other([&] { application.must("COMMIT"); });
  EXPECT_TRUE(store->add(std::vector{lone_event()}, soon()).ok());
  other.join();
}

TEST(SqliteFaults, Reading_needs_no_lock_and_no_patience) {
  SqliteDatabase database;
  const auto store = database.store();
  add(*store, {order_event("1")});
  RawConnection application(database.path());
  application.must("BEGIN IMMEDIATE; INSERT INTO outbox_events (type) VALUES ('t')");

  ClaimRequest claim;
  claim.partitions = {Partition(0)};
  claim.limit = 10;
  claim.bytes = 1000;
  EXPECT_THAT(value_of(store->claim(claim, no_patience())).events, SizeIs(1));
  const auto operations = make_sqlite_operations(database.options());
  EXPECT_EQ(value_of(operations->status({}, no_patience())).events.total, 1);
  const auto purger = make_sqlite_purger(database.options());
  EXPECT_EQ(value_of(purger->purge({}, std::nullopt, no_patience())).rows, 0);
}

TEST(SqliteFaults, A_call_that_has_returned_holds_no_lock_and_no_transaction) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_delivery(*store, relay, order_event("1"));
  relay.claim_all();
  relay.due();
  relay.held();

  RawConnection application(database.path());
  EXPECT_EQ(application.run("BEGIN EXCLUSIVE"), SQLITE_OK);
  EXPECT_EQ(application.run("COMMIT"), SQLITE_OK);
  // A reader that was left open would keep the log from being emptied.
  EXPECT_EQ(application.value("PRAGMA wal_checkpoint(TRUNCATE)"), "0");
}

TEST(SqliteFaults, F62_an_object_from_before_a_fork_is_refused_in_the_child) {
  SqliteDatabase database;
  auto store = database.store();
  add(*store, {order_event("1")});

  const int code = exit_code_of(in_child([&] {
    const auto added = store->add(std::vector{lone_event()}, soon());
    const bool refused = !added.ok() && added.error().code == ErrorCode::invalid_argument &&
                         added.error().message.find("fork") != std::string::npos;
    // Destroying it must not empty or delete the log that the parent still writes.
    store.reset();
    const bool log_is_there = std::filesystem::exists(database.path() + "-wal");
    const bool fresh_one_works = database.store()->add(std::vector{lone_event()}, soon()).ok();
    return refused && log_is_there && fresh_one_works ? 0 : 1;
  }));

  EXPECT_EQ(code, 0);
  EXPECT_TRUE(store->add(std::vector{lone_event()}, soon()).ok());
  EXPECT_EQ(RawConnection(database.path()).value("SELECT count(*) FROM outbox_events"), "3");
  EXPECT_EQ(integrity(database), "ok\n");
}

/// Lets the store make the id: children of one process would all make the test's next one.
NewEvent without_id(NewEvent event) {
  event.id.reset();
  return event;
}

/// Adds and settles events until it is killed, and tells of each when it is committed.
int write_until_killed(const SqliteDatabase& database, int to_parent) {
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock, "relay-" + std::to_string(::getpid()));
  for (;;) {
    const auto event = without_id(order_event("1", std::string(3000, 'x')));
    const auto added = store->add(std::vector{event}, soon());
    if (!added.ok()) return 1;
    const auto text = added.value()[0].value().to_string() + "\n";
    if (::write(to_parent, text.data(), text.size()) < 0) return 1;
    relay.lease();
    const auto batch = relay.claim();
    for (const auto& claimed : batch.events) {
      relay.settle(routing(relay.settle_request(), claimed, {delivery_of(claimed)}));
    }
  }
}

/// Complete lines read from `from` until there are `count`.
std::vector<std::string> read_lines(int from, std::size_t count) {
  std::vector<std::string> lines;
  std::string line;
  char byte = 0;
  while (lines.size() < count && ::read(from, &byte, 1) == 1) {
    if (byte != '\n') {
      line += byte;
      continue;
    }
    lines.push_back(std::move(line));
    line.clear();
  }
  return lines;
}

TEST(SqliteFaults, F58_kill_9_in_the_middle_of_writing_loses_nothing_that_was_committed) {
  SqliteDatabase database;
  const auto random = seeded_random(58);
  std::vector<std::string> committed;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = in_child([&] { return write_until_killed(database, ends[1]); });
    ::close(ends[1]);
    // Enough for several checkpoints in the longer rounds.
    auto lines = read_lines(ends[0], 1 + random->next() % 250);
    ::kill(child, SIGKILL);
    EXPECT_EQ(exit_code_of(child), -1) << "the child ended by itself";
    ::close(ends[0]);
    ASSERT_THAT(lines, Not(IsEmpty()));
    committed.insert(committed.end(), lines.begin(), lines.end());

    ASSERT_EQ(integrity(database), "ok\n");
    ASSERT_EQ(RawConnection(database.path()).lines("PRAGMA foreign_key_check"), "");
  }
  RawConnection raw(database.path());
  for (const auto& id : committed) {
    ASSERT_EQ(raw.value("SELECT count(*) FROM outbox_events WHERE id = '" + id + "'"), "1");
  }
  // A settle is one transaction: a routed event has its delivery, the others have none.
  EXPECT_EQ(raw.value("SELECT count(*) FROM outbox_events AS e WHERE (routed_at IS NOT NULL) <> "
                      "EXISTS (SELECT 1 FROM outbox_deliveries WHERE event_seq = e.seq)"),
            "0");
}

TEST(SqliteFaults, F64_four_processes_on_one_file_all_get_their_turn) {
  SqliteDatabase database;
  constexpr int each = 100;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(in_child([&] {
      const auto store = database.store();
      for (int n = 0; n < each; ++n) {
        if (!store->add(std::vector{without_id(order_event(std::to_string(i)))}, soon()).ok()) {
          return 1;
        }
      }
      return 0;
    }));
  }
  for (const auto child : children)
    EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(RawConnection(database.path()).value("SELECT count(*) FROM outbox_events"), "400");
  EXPECT_EQ(integrity(database), "ok\n");
}

TEST(SqliteFaults, F63_a_full_disk_reaches_the_caller_and_heals) {
  SqliteDatabase database;
  FaultyFiles faulty;
  const auto store = database.store();
  add(*store, {order_event("1")});

  FaultyFiles::disk_full = true;
  const auto refused = store->add(std::vector{order_event("2"), order_event("3")}, soon());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::storage_failed);
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  EXPECT_THAT(refused.error().message, HasSubstr("Free space"));

  FaultyFiles::disk_full = false;
  add(*store, {order_event("4")});
  EXPECT_EQ(RawConnection(database.path()).lines("SELECT aggregate_id FROM outbox_events"),
            "1\n4\n");
}

TEST(SqliteFaults, F63_max_page_count_is_a_full_disk_as_well) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("PRAGMA max_page_count = 1");  // Cannot go below what is there: the file is full now.
  EXPECT_EQ(raw.run("INSERT INTO outbox_events (type, payload) VALUES ('t', zeroblob(100000))"),
            SQLITE_FULL);
  EXPECT_EQ(raw.value("SELECT count(*) FROM outbox_events"), "0");
}

TEST(SqliteFaults, F63_a_failed_sync_is_final_for_the_object) {
  SqliteDatabase database;
  FaultyFiles faulty;
  const auto store = database.store();
  add(*store, {order_event("1")});

  FaultyFiles::fail_sync = true;
  const auto refused = store->add(std::vector{order_event("2")}, soon());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::storage_failed);
  EXPECT_EQ(refused.error().disposition, Disposition::stop);

  FaultyFiles::fail_sync = false;
  const auto again = store->add(std::vector{order_event("2")}, soon());
  ASSERT_FALSE(again.ok()) << "a later success would not say what became of the lost sync";
  EXPECT_EQ(again.error().code, ErrorCode::storage_failed);

  add(*database.store(), {order_event("3")});
  EXPECT_EQ(integrity(database), "ok\n");
}

TEST(SqliteFaults, F63_a_read_only_file_can_be_looked_at_and_not_written) {
  SqliteDatabase database;
  // Keeps the log and its index in place, as a running relay does.
  const auto keeper = database.store();
  add(*keeper, {order_event("1")});
  for (const auto* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::permissions(database.path() + suffix, std::filesystem::perms(0444));
  }
  std::filesystem::permissions(database.folder(), std::filesystem::perms(0555));

  const int code = exit_code_of(in_child([&] {
    constexpr uid_t nobody = 65534;
    if (::getuid() == 0 && ::setuid(nobody) != 0) return 1;
    const auto status = make_sqlite_operations(database.options())->status({}, soon());
    if (!status.ok() || status.value().events.total != 1) return 2;
    const auto added = database.store()->add(std::vector{lone_event()}, soon());
    if (added.ok()) return 3;
    return added.error().code == ErrorCode::primary_not_writable ? 0 : 4;
  }));

  EXPECT_EQ(code, 0);
  std::filesystem::permissions(database.folder(), std::filesystem::perms(0755));
}

TEST(SqliteFaults, A_place_without_a_write_ahead_log_is_refused) {
  FaultyFiles faulty;
  FaultyFiles::no_shared_memory = true;
  SqliteDatabase database({}, false);

  const auto refused = make_sqlite_migrator(database.options(true))->up({}, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("local disk"));
}

TEST(SqliteFaults, A_file_that_is_no_database_is_told) {
  SqliteDatabase database({}, false);
  FILE* file = std::fopen(database.path().c_str(), "w");
  ASSERT_NE(file, nullptr);
  for (int i = 0; i < 1000; ++i)
    std::fputs("not a database ", file);
  std::fclose(file);

  const auto checked = database.store()->check_schema(soon());

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::storage_failed);
}

TEST(SqliteFaults, A_folder_in_place_of_the_file_is_told) {
  SqliteDatabase database({}, false);
  std::filesystem::create_directory(database.path());

  const auto checked = database.store()->check_schema(soon());

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::unavailable);
  EXPECT_EQ(checked.error().disposition, Disposition::stop);
}

TEST(SqliteFaults, A_store_opens_again_after_its_file_could_not_be_opened) {
  SqliteDatabase database({}, false);
  const auto store = database.store();
  EXPECT_FALSE(store->check_schema(soon()).ok());

  value_of(make_sqlite_migrator(database.options(true))->up({}, soon()));

  expect_ok(store->check_schema(soon()));
}

TEST(SqliteFaults, A_damaged_delivery_row_is_handed_on_with_its_reason) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_held(*store, relay, order_event("0"));
  store_delivery(*store, relay, order_event("1"));
  RawConnection raw(database.path());
  raw.must("PRAGMA ignore_check_constraints = ON");
  raw.must("UPDATE outbox_deliveries SET retry_delays = '[1.5]' WHERE status = 'pending'");
  EXPECT_THAT(relay.due().deliveries.at(0).malformed, HasSubstr("retry_delays"));
  raw.must(
      "UPDATE outbox_deliveries SET retry_delays = '[]', on_failed = 'halt', id = 'x' "
      "WHERE status = 'pending'");
  EXPECT_THAT(relay.due().deliveries.at(0).malformed, HasSubstr("not a UUID"));
  raw.must("UPDATE outbox_deliveries SET id = 'y' WHERE status = 'held'");
  EXPECT_THAT(relay.held().events.at(0).claimed.malformed, HasSubstr("damaged id"));
}

TEST(SqliteFaults, A_delivery_whose_event_was_deleted_behind_our_back_stops_the_store) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_delivery(*store, relay, order_event("1"));
  RawConnection raw(database.path());
  raw.must("DELETE FROM outbox_events");  // SQLite's default leaves foreign keys unchecked.

  const auto due = store->due(relay.due_request(), soon());

  ASSERT_FALSE(due.ok());
  EXPECT_EQ(due.error().code, ErrorCode::storage_failed);
  EXPECT_EQ(due.error().disposition, Disposition::stop);
}

}  // namespace
}  // namespace postrider::testing
