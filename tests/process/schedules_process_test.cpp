// Schedules with real relays on real databases: a slot runs once, whatever dies and whoever races.
//
// Schedules here are yearly. A test makes years due by moving back what is decided, so that nobody
// waits for a minute of the clock and none comes by itself.
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "process/job_line.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

class Schedules : public JobProcesses {
 protected:
  /// A schedule that runs all years that are due, up to a hundred, as jobs of the queue "work".
  void prepare_yearly() {
    prepare("", route("report") +
                    "[[schedules]]\nname = \"yearly\"\ncron = \"@yearly\"\n"
                    "type = \"report.wanted\"\nmissed = \"all\"\nmost_missed = 100\n");
  }
  [[nodiscard]] bool is_postgres() const { return GetParam().name == "postgres"; }

  /// From now on, the slots of so many years are due.
  void make_due(int years) {
    const auto time = std::to_string(this_year() - years) + "-06-01";
    database_.rows(is_postgres()
                       ? "UPDATE outbox_schedules SET decided_until = '" + time + " 00:00:00+00'"
                       : "UPDATE outbox_schedules SET decided_until = '" + time +
                             "T00:00:00.000000Z'");
  }
  int number(const std::string& of) { return std::stoi(value("SELECT count(*) FROM " + of)); }
  /// By the database's clock.
  int this_year() {
    return std::stoi(value(is_postgres() ? "SELECT extract(year FROM now() AT TIME ZONE 'UTC')::int"
                                         : "SELECT strftime('%Y', 'now')"));
  }
  bool events_come_to(int wanted) {
    return comes_true([&] { return number("outbox_events") == wanted; });
  }
  /// The yearly slot that everything is decided up to.
  bool all_is_decided() {
    return comes_true([&] {
      return number(std::string("outbox_schedules WHERE decided_until >= ") +
                    (is_postgres()
                         ? "date_trunc('year', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"
                         : "strftime('%Y-01-01T00:00:00', 'now')")) == 1;
    });
  }
  bool is_registered() {
    return comes_true([&] { return number("outbox_schedules") == 1; });
  }
};

TEST_P(Schedules, JT_13_three_relays_of_one_name_on_one_host_run_a_slot_once) {
  prepare_yearly();
  std::vector<std::unique_ptr<Running>> relays;
  for (int i = 0; i < 3; ++i)
    relays.push_back(start_relay());
  ASSERT_TRUE(is_registered());
  // One slot after the other, further back each time, so that it has not run before.
  for (int years = 1; years <= 10; ++years) {
    make_due(years);
    ASSERT_TRUE(all_is_decided());
    ASSERT_TRUE(events_come_to(years)) << number("outbox_events") << " events";
  }
  // Many at once.
  constexpr int events = 60;
  make_due(events);
  ASSERT_TRUE(events_come_to(events)) << number("outbox_events") << " events of " << events;
  ASSERT_TRUE(come_to(events, "status = 'pending'")) << "each is a job";
  EXPECT_EQ(number("outbox_schedule_slots"), events);
  for (auto& relay : relays)
    stop_cleanly(*relay);
  EXPECT_EQ(number("outbox_events"), events);
  int told_in_all = 0;
  for (const auto& relay : relays)
    told_in_all += told(*relay, "schedule_fired");
  EXPECT_EQ(told_in_all, events) << "each is told by the one that ran it";
}

TEST_P(Schedules, A_slot_becomes_a_job_and_a_worker_does_it) {
  prepare_yearly();
  const auto relay = start_relay();
  const auto worker = start_worker("cat > event.json\n");
  ASSERT_TRUE(is_registered());
  make_due(1);
  ASSERT_TRUE(come_to(1, "status = 'completed'")) << worker->err();
  EXPECT_THAT(shop_.read("event.json"),
              HasSubstr("\"postrider-slot\":\"" + std::to_string(this_year()) +
                        "-01-01T00:00:00.000000Z\""));
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(Schedules, A_relay_that_is_killed_between_slot_and_commit_has_run_nothing) {
  prepare_yearly();
  ASSERT_EQ(shop_.run({"relay"}).code, 0);
  ASSERT_TRUE(is_registered());
  // A slot takes for ever to be written: the relay stays between it and the commit.
  if (is_postgres()) {
    database_.rows(
        "CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$");
  }
  database_.rows(is_postgres()
                     ? "CREATE TRIGGER be_slow AFTER INSERT ON outbox_schedule_slots "
                       "FOR EACH ROW EXECUTE FUNCTION be_slow()"
                     : "CREATE TRIGGER be_slow AFTER INSERT ON outbox_schedule_slots BEGIN "
                       "SELECT count(*) FROM sqlite_master a, sqlite_master b, sqlite_master c, "
                       "sqlite_master d, sqlite_master e, sqlite_master f, sqlite_master g; END");
  make_due(1);
  {
    const auto relay = start_relay();
    if (is_postgres()) {
      ASSERT_TRUE(comes_true([&] {
        return number(
                   "pg_stat_activity WHERE query LIKE '%outbox_schedule_slots%' "
                   "AND datname = current_database() AND wait_event = 'PgSleep'") > 0;
      }));
    } else {
      // It holds the only write lock: nothing else of ours is written for so long.
      ASSERT_TRUE(comes_true([&] {
        const auto tried = shop_.run_program(
            {"sqlite3", "-cmd", ".timeout 500", "app.db", "BEGIN IMMEDIATE; ROLLBACK"});
        return tried.code != 0;
      }));
    }
    kill_9(*relay);
  }
  database_.rows(is_postgres() ? "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                 "WHERE wait_event = 'PgSleep' AND datname = current_database()"
                               : "SELECT 1");
  database_.rows(is_postgres() ? "DROP TRIGGER be_slow ON outbox_schedule_slots"
                               : "DROP TRIGGER be_slow");
  EXPECT_EQ(number("outbox_events"), 0);
  EXPECT_EQ(number("outbox_schedule_slots"), 0);
  const auto heir = start_relay();
  ASSERT_TRUE(events_come_to(1));
  stop_cleanly(*heir);
  EXPECT_EQ(number("outbox_events"), 1);
}

TEST_P(Schedules, A_relay_that_is_killed_at_any_moment_leaves_no_slot_out_and_doubles_none) {
  prepare_yearly();
  ASSERT_EQ(shop_.run({"relay"}).code, 0);
  for (int round = 0; round < 5; ++round) {
    make_due(10 * (round + 1));
    const auto relay = start_relay();
    kill_9(*relay);
  }
  const auto heir = start_relay();
  make_due(60);
  ASSERT_TRUE(events_come_to(60));
  stop_cleanly(*heir);
  EXPECT_EQ(number("outbox_schedule_slots"), number("outbox_events"));
}

TEST_P(Schedules, A_schedule_that_cannot_be_written_stops_neither_its_neighbours_nor_the_relay) {
  prepare("", route("report") +
                  "[[schedules]]\nname = \"bad\"\ncron = \"@yearly\"\ntype = \"bad.report\"\n"
                  "[[schedules]]\nname = \"good\"\ncron = \"@yearly\"\ntype = \"good.report\"\n");
  ASSERT_EQ(shop_.run({"relay"}).code, 0);
  database_.rows(
      is_postgres()
          ? "ALTER TABLE outbox_events ADD CONSTRAINT no_bad CHECK (type <> 'bad.report')"
          : "CREATE TRIGGER no_bad BEFORE INSERT ON outbox_events WHEN NEW.type = 'bad.report' "
            "BEGIN SELECT RAISE(ABORT, 'no bad ones'); END");
  make_due(1);
  const auto relay = start_relay();
  ASSERT_TRUE(events_come_to(1)) << relay->err();
  ASSERT_TRUE(relay->says("schedule_failed"));
  write_events(1, 2);
  ASSERT_TRUE(come_to(2, "status = 'pending'")) << "the relay goes on";
  database_.rows(is_postgres() ? "ALTER TABLE outbox_events DROP CONSTRAINT no_bad"
                               : "DROP TRIGGER no_bad");
  ASSERT_TRUE(events_come_to(3)) << "mended, it is caught up";
  stop_cleanly(*relay);
  EXPECT_EQ(told(*relay, "schedule_failed"), 1);
}

INSTANTIATE_TEST_SUITE_P(Databases, Schedules, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
