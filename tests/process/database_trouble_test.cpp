// A database whose disk is full or whose clock jumps.
#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include "process/patience.hpp"
#include "process/relay_line.hpp"
#include "servers/moved_clock.hpp"
#include "servers/small_disk.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* disk_full = "53100";
constexpr int batch = 100;

/// A line whose tables stand on a small disk. The server's log does not: a server that cannot
/// write its log ends, and then there is nobody to talk to. Each result becomes a row, for which
/// there has to be room.
class CrampedLine {
 public:
  explicit CrampedLine(const std::string& name) : line_(name, rows_for_all(on_server(server_))) {
    PostgresSession admin(server_.conninfo("postgres"));
    admin.run("CREATE TABLESPACE cramped LOCATION '" + disk_.folder() + "'");
    admin.run("ALTER DATABASE " + line_.database().name() + " SET TABLESPACE cramped");
  }
  [[nodiscard]] RelayLine& line() { return line_; }
  [[nodiscard]] const SmallDisk& disk() const { return disk_; }

 private:
  static LineSettings rows_for_all(LineSettings settings) {
    settings.relay = "[relay]\nbatch = " + std::to_string(batch) + "\nsleep = \"10ms\"\n";
    settings.route = "record = \"all\"\n";
    return settings;
  }

  SmallDisk disk_{48U << 20U};
  PostgresServer server_;
  RelayLine line_;
};

/// True, with the reason told, when there is no small disk.
bool lacks_small_disk() {
  const auto why = why_no_small_disk();
  if (!why.empty()) [&] { GTEST_SKIP() << why; }();
  return !why.empty();
}

TEST(DatabaseTrouble, F34_on_a_full_disk_a_writer_fails_with_its_whole_transaction) {
  if (lacks_servers() || lacks_small_disk()) return;
  CrampedLine cramped("full-disk-writer");
  auto& line = cramped.line();
  line.sql("CREATE TABLE orders (id integer)");
  line.sql("INSERT INTO orders VALUES (1)");  // The page has room for more.
  cramped.disk().fill();
  const auto writer = line.database().open_session();
  writer->run("BEGIN");
  writer->run("INSERT INTO orders VALUES (2)");
  EXPECT_EQ(writer->refusal("INSERT INTO outbox_events (type, payload) SELECT 'order.changed', "
                            "string_agg(gen_random_uuid()::text, '') "
                            "FROM generate_series(1, 10000)"),
            disk_full);
  writer->run("COMMIT");  // Which is a rollback by now.
  EXPECT_EQ(line.count("orders"), 1);
  EXPECT_EQ(line.count("outbox_events"), 0);
}

TEST(DatabaseTrouble, F34_a_relay_that_finds_no_room_for_results_sends_little_again_and_recovers) {
  if (lacks_servers() || lacks_small_disk()) return;
  CrampedLine cramped("full-disk-relay");
  auto& line = cramped.line();
  auto run = line.run();
  run.events = 5 * batch;
  write_events(run, 0, batch);
  const auto relay = line.start_relay();
  ASSERT_TRUE(comes_true([&] { return line.unrouted() == 0; })) << relay->err();
  relay->signal(SIGSTOP);
  write_events(run, batch, run.events);
  cramped.disk().fill();
  relay->signal(SIGCONT);
  EXPECT_TRUE(tells(*relay, "store_failed")) << relay->err();
  EXPECT_THAT(relay->err(), HasSubstr("storage_failed"));
  // Time for some thirty tries, each of which could send all again.
  const auto until = line.sql("SELECT clock_timestamp() + interval '3 s'");
  EXPECT_TRUE(
      comes_true([&] { return line.sql("SELECT clock_timestamp() > '" + until + "'") == "t"; }));
  EXPECT_LT(repeats_among(line.arrived()), batch);
  EXPECT_LE(count_of(*relay, "store_failed"), 2U) << relay->err();

  cramped.disk().clear();
  EXPECT_TRUE(all_arrive(run)) << relay->err();
  EXPECT_TRUE(comes_true([&] { return line.unrouted() == 0; }));
  // What was read ahead when the disk was full, what was being settled, and one for each try.
  EXPECT_LT(repeats_among(line.arrived()), 3U * batch);
  EXPECT_TRUE(tells(*relay, "store_recovered"));
  expect_clean_stop(*relay);
  expect_sound(run, line.arrived());
}

bool lacks_faketime() {
  return lacks(why_no_moved_clock());
}

/// A line on a server whose clock is moved.
class MovedLine {
 public:
  explicit MovedLine(const std::string& name) : line_(name, on_server(server_)) {}
  [[nodiscard]] const MovedClock& clock() const { return clock_; }
  [[nodiscard]] RelayLine& line() { return line_; }

 private:
  MovedClock clock_;
  PostgresServer server_{{}, clock_.environment()};
  RelayLine line_;
};

TEST(DatabaseTrouble, F41_the_servers_clock_jumps_an_hour_ahead_and_back) {
  if (lacks_servers() || lacks_faketime()) return;
  MovedLine moved("moved-clock");
  auto& line = moved.line();
  auto run = line.run();
  run.portions = 6;
  run.events = 1200;
  auto working = line.start_relay();
  ASSERT_TRUE(tells(*working, "lease_gained"));
  auto waiting = line.start_relay();
  drain_disturbed(
      run, {[](int) {}, [&](int portion) { moved.clock().move(portion % 2 == 0 ? "+1h" : "+0"); }});
  EXPECT_TRUE(all_arrive(run)) << working->err() << waiting->err();
  expect_clean_stop(*working);
  expect_clean_stop(*waiting);
  expect_sound(run, line.arrived());
  EXPECT_EQ(line.count("outbox_deliveries WHERE attempts > 0"), 0);
}

TEST(DatabaseTrouble, F41_a_lease_that_a_clock_set_back_has_prolonged_is_taken_over) {
  if (lacks_servers() || lacks_faketime()) return;
  MovedLine moved("prolonged-lease");
  auto& line = moved.line();
  auto run = line.run();
  run.events = 200;
  moved.clock().move("+1h");
  const auto frozen = line.start_relay();
  ASSERT_TRUE(tells(*frozen, "lease_gained"));
  frozen->signal(SIGSTOP);
  moved.clock().move("+0");
  EXPECT_EQ(line.sql("SELECT min(leased_until) > clock_timestamp() + interval '50 min' "
                     "FROM outbox_partitions"),
            "t");
  write_events(run, 0, run.events);
  const auto other = line.start_relay();
  EXPECT_TRUE(all_arrive(run)) << other->err();
  frozen->signal(SIGCONT);
  EXPECT_TRUE(tells(*frozen, "lease_lost"));
  expect_clean_stop(*frozen);
  expect_clean_stop(*other);
  expect_sound(run, line.arrived());
}

}  // namespace
}  // namespace postrider::testing
