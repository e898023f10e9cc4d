// Reading beside writers: each committed row is claimed once, none is lost, and the events of an
// aggregate come in order.

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "backends/mariadb_database.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string insert_one(const std::string& payload, const std::string& aggregate = "") {
  if (aggregate.empty()) {
    return "INSERT INTO outbox_events (type, payload) VALUES ('x', '" + payload + "')";
  }
  return "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES ('order', "
         "'" +
         aggregate + "', 'x', '" + payload + "')";
}

/// A relay that only reads: what it claims it never settles, so it must never see it again.
class MariadbReading : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_mariadb()) return;
    database_ = std::make_unique<MariadbDatabase>();
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
  std::unique_ptr<MariadbDatabase> database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Claimant> relay_;
  std::unique_ptr<MariadbSession> a_;
  std::unique_ptr<MariadbSession> b_;
};

#define NEEDS_MARIADB_DATABASE() \
  if (database_ == nullptr) return

TEST_F(MariadbReading, F48_a_lower_number_that_commits_later_is_read_when_it_commits) {
  NEEDS_MARIADB_DATABASE();
  a_->run("START TRANSACTION");
  a_->run(insert_one("late"));
  b_->run(insert_one("early"));

  EXPECT_THAT(read(), ElementsAre("early"));
  EXPECT_THAT(read(), IsEmpty());
  a_->run("COMMIT");
  EXPECT_THAT(read(), ElementsAre("late"));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(MariadbReading, F48_numbers_of_rolled_back_rows_lose_nothing) {
  NEEDS_MARIADB_DATABASE();
  a_->run("START TRANSACTION");
  for (const auto* payload : {"1", "2", "3"})
    a_->run(insert_one(payload));
  b_->run(insert_one("4"));
  EXPECT_THAT(read(), ElementsAre("4"));

  a_->run("ROLLBACK");
  b_->run(insert_one("5"));

  EXPECT_THAT(read(), ElementsAre("5"));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(MariadbReading, A_row_is_found_after_any_time_as_long_as_its_transaction_is_open) {
  NEEDS_MARIADB_DATABASE();
  a_->run("START TRANSACTION");
  a_->run(insert_one("very late"));
  b_->run(insert_one("early"));
  EXPECT_THAT(read(), ElementsAre("early"));

  clock_.advance(minutes(30));
  relay_->lease();
  EXPECT_THAT(read(), IsEmpty());
  a_->run("COMMIT");

  EXPECT_THAT(read(), ElementsAre("very late"));
}

TEST_F(MariadbReading, Numbers_that_nobody_writes_are_given_up_after_the_grace) {
  NEEDS_MARIADB_DATABASE();
  a_->run("START TRANSACTION");
  a_->run(insert_one("never"));
  b_->run(insert_one("1"));
  EXPECT_THAT(read(), ElementsAre("1"));
  a_->run("ROLLBACK");
  clock_.advance(minutes(9));
  relay_->lease();
  read();
  EXPECT_NE(mark_.text().find(';'), std::string::npos) << mark_.text();

  clock_.advance(minutes(2));
  relay_->lease();
  read();

  EXPECT_EQ(mark_.text().find(';'), std::string::npos) << mark_.text();
}

TEST_F(MariadbReading, A_row_whose_number_was_given_up_is_found_by_the_sweep) {
  NEEDS_MARIADB_DATABASE();
  b_->run(insert_one("lost"));
  b_->run(insert_one("settled"));
  const auto batch = relay_->claim_all();
  ASSERT_EQ(batch.events.size(), 2U);
  auto request = routing(relay_->settle_request(), batch.events[1]);
  request.mark = ReadMark("2");
  relay_->settle(request);
  mark_ = ReadMark("2");
  EXPECT_THAT(read(), IsEmpty());

  clock_.advance(minutes(2));
  relay_->lease();
  read();

  EXPECT_THAT(read(), ElementsAre("lost"));
  clock_.advance(minutes(2));
  relay_->lease();
  read();
  EXPECT_THAT(read(), IsEmpty()) << "it is on its way";
}

TEST_F(MariadbReading, A_late_row_comes_before_new_ones_also_when_the_batch_is_full) {
  NEEDS_MARIADB_DATABASE();
  a_->run("START TRANSACTION");
  for (const auto* payload : {"late 1", "late 2"})
    a_->run(insert_one(payload, "7"));
  b_->run(insert_one("early"));
  EXPECT_THAT(read(), ElementsAre("early"));
  a_->run("COMMIT");
  b_->run(insert_one("next", "7"));
  auto request = relay_->claim_request({mark_});
  request.limit = 1;

  std::vector<std::string> payloads;
  for (bool more = true; more;) {
    const auto batch = relay_->claim(request);
    for (const auto& claimed : batch.events)
      payloads.push_back(claimed.event->payload);
    request.after = {batch.mark};
    more = batch.more;
  }

  EXPECT_THAT(payloads, ElementsAre("late 1", "late 2", "next"));
}

TEST_F(MariadbReading, A_mark_of_a_server_that_went_further_reads_everything_unrouted_again) {
  NEEDS_MARIADB_DATABASE();
  b_->run(insert_one("1"));
  mark_ = ReadMark("5000000;4999990-4999999@1");

  EXPECT_THAT(read(), ElementsAre("1"));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(MariadbReading, Large_payloads_come_whole_and_within_the_bytes_of_a_batch) {
  NEEDS_MARIADB_DATABASE();
  for (int i = 0; i < 4; ++i)
    b_->run("INSERT INTO outbox_events (type, payload) VALUES ('x', repeat('a', 300000))");
  auto request = relay_->claim_request({ReadMark()});
  request.limit = 100;
  request.bytes = 700'000;

  const auto batch = relay_->claim(request);

  ASSERT_EQ(batch.events.size(), 2U);
  EXPECT_TRUE(batch.more);
  for (const auto& claimed : batch.events)
    EXPECT_EQ(claimed.event->payload, std::string(300'000, 'a'));
}

TEST_F(MariadbReading, F43_a_poll_keeps_no_writer_waiting) {
  NEEDS_MARIADB_DATABASE();
  a_->run("SET innodb_lock_wait_timeout = 5");
  const auto batch = relay_->claim();
  b_->run("START TRANSACTION");
  b_->run(insert_one("open"));
  // Another relay's settle and claim go through beside an open insert, and an insert beside them.
  add(*store_, {order_event("1")});
  const auto claimed = relay_->claim();
  ASSERT_EQ(claimed.events.size(), 1U);
  relay_->settle(routing(relay_->settle_request(), claimed.events[0]));

  EXPECT_EQ(a_->refusal(insert_one("1")), 0U);
  b_->run("COMMIT");
}

/// Writers of many transactions, some of which are rolled back, beside a reader.
TEST_F(MariadbReading, Every_committed_row_is_read_once_and_each_aggregate_in_order) {
  NEEDS_MARIADB_DATABASE();
  constexpr int writers = 4;
  constexpr int transactions = 60;
  std::atomic<int> running{writers};
  std::atomic<int> committed{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      MariadbSession session(database_->server(), database_->name());
      for (int i = 0; i < transactions; ++i) {
        session.run("START TRANSACTION");
        // One aggregate a transaction: two would be a deadlock of the writers' own making.
        const auto aggregate = std::to_string((writer + i) % 3);
        const int rows = 1 + i % 3;
        for (int row = 0; row < rows; ++row)
          session.run(insert_one(std::to_string(writer * 1000 + i * 10 + row), aggregate));
        const bool rolls_back = i % 5 == 4;
        session.run(rolls_back ? "ROLLBACK" : "COMMIT");
        if (!rolls_back) committed += rows;
      }
      --running;
    });
  }
  std::set<std::int64_t> seqs;
  std::map<std::string, std::int64_t> last;
  const auto read_on = [&] {
    const auto batch = relay_->claim(relay_->claim_request({mark_}));
    mark_ = batch.mark;
    for (const auto& claimed : batch.events) {
      const auto seq = claimed.event->seq.value();
      EXPECT_TRUE(seqs.insert(seq).second) << seq << " was read twice";
      auto& before = last[claimed.event->aggregate->id];
      EXPECT_LT(before, seq) << "of aggregate " << claimed.event->aggregate->id;
      before = seq;
    }
    return batch.events.empty();
  };
  while (running > 0)
    read_on();
  for (auto& thread : threads)
    thread.join();
  while (!read_on()) {
  }

  EXPECT_EQ(static_cast<int>(seqs.size()), committed.load());
}

}  // namespace
}  // namespace postrider::testing
