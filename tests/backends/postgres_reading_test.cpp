// Reading beside writers of every kind: each committed row is claimed once, none is lost, and the
// events of an aggregate come in order.

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "backends/postgres_database.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string insert(const std::string& payload, const std::string& aggregate = "") {
  if (aggregate.empty()) {
    return "INSERT INTO outbox_events (type, payload) VALUES ('x', '" + payload + "')";
  }
  return "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES ('order', "
         "'" +
         aggregate + "', 'x', '" + payload + "')";
}

/// A relay that only reads: what it claims it never settles, so it must never see it again.
class PostgresReading : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_postgres()) return;
    database_ = std::make_unique<PostgresDatabase>();
    store_ = database_->open_store();
    relay_ = std::make_unique<Claimant>(*store_, clock_);
    relay_->lease();
    a_ = database_->open_session();
    b_ = database_->open_session();
  }

  std::vector<std::string> read() {
    std::vector<std::string> payloads;
    const auto batch = relay_->claim(relay_->claim_request({mark_}));
    mark_ = batch.mark;
    for (const auto& claimed : batch.events)
      payloads.push_back(claimed.event->payload);
    return payloads;
  }

  ReadMark mark_;
  ManualClock clock_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Claimant> relay_;
  std::unique_ptr<PostgresSession> a_;
  std::unique_ptr<PostgresSession> b_;
};

#define NEEDS_DATABASE() \
  if (database_ == nullptr) return

TEST_F(PostgresReading, F32_a_lower_number_that_commits_later_is_read_when_it_commits) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  a_->run(insert("late"));
  b_->run(insert("early"));

  EXPECT_THAT(read(), ElementsAre("early"));
  EXPECT_THAT(read(), IsEmpty());
  a_->run("COMMIT");
  EXPECT_THAT(read(), ElementsAre("late"));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(PostgresReading, A_transaction_above_the_snapshots_xmax_is_not_given_up) {
  NEEDS_DATABASE();
  // A reader that retires by the snapshot's xmax loses row 2 here, on every quiet server.
  a_->run("BEGIN");
  a_->run(insert("1"));
  b_->run("BEGIN");
  b_->run(insert("2"));
  a_->run(insert("3"));
  a_->run("COMMIT");

  EXPECT_THAT(read(), ElementsAre("1", "3"));
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_THAT(read(), IsEmpty());
  b_->run("COMMIT");
  EXPECT_THAT(read(), ElementsAre("2"));
}

TEST_F(PostgresReading, An_xid_without_a_number_yet_may_draw_a_number_above) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  a_->run("SELECT pg_current_xact_id()");
  b_->run(insert("1"));
  EXPECT_THAT(read(), ElementsAre("1"));
  a_->run(insert("2"));
  EXPECT_THAT(read(), IsEmpty());
  b_->run(insert("3"));
  EXPECT_THAT(read(), ElementsAre("3"));
  a_->run("COMMIT");
  EXPECT_THAT(read(), ElementsAre("2"));
}

TEST_F(PostgresReading, Numbers_that_were_rolled_back_hold_nobody_up) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  a_->run("INSERT INTO outbox_events (type) SELECT 'x' FROM generate_series(1, 1000)");
  b_->run(insert("1"));
  EXPECT_THAT(read(), ElementsAre("1"));
  a_->run("ROLLBACK");
  EXPECT_THAT(read(), IsEmpty());
  b_->run(insert("2"));
  EXPECT_THAT(read(), ElementsAre("2"));
}

TEST_F(PostgresReading, Of_a_transaction_with_savepoints_what_was_kept_is_read) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  a_->run(insert("kept"));
  a_->run("SAVEPOINT s");
  a_->run(insert("undone"));
  a_->run("ROLLBACK TO s");
  a_->run("SAVEPOINT s2");
  a_->run(insert("kept too"));
  a_->run("RELEASE s2");
  b_->run(insert("other"));

  EXPECT_THAT(read(), ElementsAre("other"));
  a_->run("COMMIT");
  EXPECT_THAT(read(), ElementsAre("kept", "kept too"));
}

TEST_F(PostgresReading, F28_a_prepared_transaction_hides_its_own_events_only) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  a_->run(insert("prepared"));
  a_->run("PREPARE TRANSACTION 'reading'");
  b_->run(insert("other"));

  EXPECT_THAT(read(), ElementsAre("other"));
  for (int i = 0; i < 3; ++i) {
    b_->run(insert(std::to_string(i)));
    EXPECT_THAT(read(), ElementsAre(std::to_string(i)));
  }
  a_->run("COMMIT PREPARED 'reading'");
  EXPECT_THAT(read(), ElementsAre("prepared"));
}

TEST_F(PostgresReading, F29_a_long_transaction_elsewhere_delays_nothing) {
  NEEDS_DATABASE();
  PostgresSession elsewhere(database_->server().conninfo("postgres"));
  elsewhere.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  elsewhere.run("SELECT pg_current_xact_id()");
  for (int i = 0; i < 5; ++i) {
    b_->run(insert(std::to_string(i)));
    EXPECT_THAT(read(), ElementsAre(std::to_string(i)));
  }
  elsewhere.run("ROLLBACK");
}

TEST_F(PostgresReading, A_copy_that_ends_late_is_read_whole) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  a_->copy("COPY outbox_events (type, payload) FROM STDIN", {"x\tc1", "x\tc2", "x\tc3"});
  b_->run("INSERT INTO outbox_events (type, payload) VALUES ('x', 'm1'), ('x', 'm2')");

  EXPECT_THAT(read(), ElementsAre("m1", "m2"));
  a_->run("COMMIT");
  EXPECT_THAT(read(), ElementsAre("c1", "c2", "c3"));
}

TEST_F(PostgresReading, Late_rows_are_limited_like_others_and_none_is_passed_over) {
  NEEDS_DATABASE();
  a_->run("BEGIN");
  for (int i = 0; i < 7; ++i)
    a_->run(insert("late " + std::to_string(i), "7"));
  b_->run(insert("early"));
  EXPECT_THAT(read(), ElementsAre("early"));
  a_->run("COMMIT");
  b_->run(insert("after", "7"));
  auto request = relay_->claim_request({mark_});
  request.limit = 3;

  std::vector<std::string> all;
  for (bool more = true; more;) {
    const auto batch = relay_->claim(request);
    EXPECT_LE(batch.events.size(), 3U);
    for (const auto& claimed : batch.events)
      all.push_back(claimed.event->payload);
    request.after = {batch.mark};
    more = batch.more;
  }

  EXPECT_THAT(all, ElementsAre("late 0", "late 1", "late 2", "late 3", "late 4", "late 5", "late 6",
                               "after"));
}

TEST_F(PostgresReading, A_position_moves_over_rows_of_other_partitions) {
  NEEDS_DATABASE();
  for (int i = 0; i < 2000; ++i)
    b_->run(insert("x", std::to_string(i)));
  auto request = relay_->claim_request({ReadMark()});
  request.partitions = {Partition(5)};
  request.limit = 1;
  std::set<std::string> ids;
  for (bool more = true; more;) {
    const auto batch = relay_->claim(request);
    for (const auto& claimed : batch.events) {
      EXPECT_EQ(claimed.partition, Partition(5));
      EXPECT_TRUE(ids.insert(claimed.event->aggregate->id).second);
    }
    request.after = {batch.mark};
    more = batch.more;
  }
  EXPECT_EQ(std::to_string(ids.size()),
            b_->run("SELECT count(*) FROM outbox_events WHERE slot % 64 = 5"));
}

TEST_F(PostgresReading, Large_payloads_are_read_within_the_bytes_asked_for) {
  NEEDS_DATABASE();
  b_->run(
      "INSERT INTO outbox_events (type, payload) SELECT 'x', repeat('a', CASE WHEN n % 5 = 0 "
      "THEN 200000 ELSE 10 END) FROM generate_series(1, 60) AS n");
  auto request = relay_->claim_request({ReadMark()});
  request.bytes = 500'000;
  std::int64_t last = 0;
  std::size_t count = 0;
  for (bool more = true; more;) {
    const auto batch = relay_->claim(request);
    std::size_t bytes = 0;
    for (const auto& claimed : batch.events) {
      EXPECT_GT(claimed.event->seq.value(), last);
      last = claimed.event->seq.value();
      bytes += claimed.event->payload.size();
      EXPECT_EQ(claimed.event->payload.size(), last % 5 == 0 ? 200'000U : 10U);
    }
    EXPECT_LE(bytes, request.bytes);
    EXPECT_THAT(batch.events, ::testing::Not(IsEmpty()));
    count += batch.events.size();
    request.after = {batch.mark};
    more = batch.more;
  }
  EXPECT_EQ(count, 60U);
}

TEST_F(PostgresReading, F37_a_restored_dump_goes_on_where_its_marks_say) {
  NEEDS_DATABASE();
  a_->run(insert("1"));
  // One that is open when the position is stored, and commits before the dump.
  b_->run("BEGIN");
  b_->run(insert("2"));
  a_->run(insert("3"));
  const auto batch = relay_->claim();
  ASSERT_THAT(batch.events, SizeIs(2));
  auto request = relay_->settle_request();
  for (const auto& claimed : batch.events)
    request = routing(std::move(request), claimed);
  request.mark = batch.mark;
  relay_->settle(request);
  b_->run("COMMIT");
  const auto dump = database_->server().scratch().file("dump.sql");
  static_cast<void>(
      database_->server().run_program("pg_dump", {"-f", dump, "-d", database_->conninfo()}));

  PostgresServer other;
  const auto name = other.create_database();
  static_cast<void>(
      other.run_program("psql", {"-X", "-q", "-f", dump, "-d", other.conninfo(name)}));
  PostgresOptions options;
  options.conninfo = other.conninfo(name);
  const auto restored = make_postgres_store(options);
  clock_.advance(Claimant::lease_time * 2);
  Claimant successor(*restored, clock_, "relay-2");
  const auto stored = successor.lease().leases.at(0).mark;
  ASSERT_EQ(stored, batch.mark);

  const auto first = successor.claim(successor.claim_request({stored}));
  ASSERT_THAT(first.events, SizeIs(1));
  EXPECT_EQ(first.events[0].event->payload, "2");
  PostgresSession writer(options.conninfo);
  writer.run(insert("4"));
  const auto second = successor.claim(successor.claim_request({first.mark}));
  ASSERT_THAT(second.events, SizeIs(1));
  EXPECT_EQ(second.events[0].event->payload, "4");
}

TEST_F(PostgresReading, F37_a_sequence_below_the_position_makes_everything_unrouted_be_read) {
  NEEDS_DATABASE();
  a_->run(insert("1"));
  relay_->settle(routing(relay_->settle_request(), relay_->claim().events.at(0)));
  a_->run(insert("2"));
  const ReadMark ahead("1000;0|;42/1");

  const auto batch = relay_->claim(relay_->claim_request({ahead}));

  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].event->payload, "2");
}

/// Writers of many kinds for a while, and one reader. Marks are never reset.
TEST_F(PostgresReading, F32_nothing_is_lost_or_doubled_beside_many_writers) {
  NEEDS_DATABASE();
  std::atomic<int> running{4};
  std::vector<std::thread> writers;
  for (int number = 0; number < 4; ++number) {
    writers.emplace_back([&, number] {
      const auto session = database_->open_session();
      std::mt19937 chance(static_cast<unsigned>(number));
      for (int i = 0; i < 400; ++i) {
        const auto aggregate = std::to_string(chance() % 5);
        session->run("BEGIN");
        session->run(insert("p", aggregate));
        if (chance() % 4 == 0) {
          session->run("SAVEPOINT s");
          session->run("INSERT INTO outbox_events (type) SELECT 'x' FROM generate_series(1, 20)");
          session->run("ROLLBACK TO s");
        }
        if (chance() % 3 == 0) session->run("INSERT INTO outbox_events (type) VALUES ('x'), ('x')");
        session->run(chance() % 5 == 0 ? "ROLLBACK" : "COMMIT");
      }
      --running;
    });
  }

  std::set<std::int64_t> seen;
  std::map<std::string, std::int64_t> last;
  const auto take = [&] {
    auto request = relay_->claim_request({mark_});
    request.limit = 50;
    const auto batch = relay_->claim(request);
    mark_ = batch.mark;
    for (const auto& claimed : batch.events) {
      const auto seq = claimed.event->seq.value();
      EXPECT_TRUE(seen.insert(seq).second) << "twice: " << seq;
      if (!claimed.event->aggregate) continue;
      auto& before = last[claimed.event->aggregate->id];
      EXPECT_LT(before, seq) << "out of order";
      before = seq;
    }
    return batch.more || !batch.events.empty();
  };
  while (running > 0)
    take();
  for (auto& writer : writers)
    writer.join();
  while (take()) {
  }

  EXPECT_EQ(std::to_string(seen.size()), a_->run("SELECT count(*) FROM outbox_events"));
}

}  // namespace
}  // namespace postrider::testing
