// The relay over PostgreSQL beside writers of every kind and a crash of the server: nothing that
// was committed is lost, nothing else is delivered, and each aggregate keeps its order.
//
// And the same load beside readers that leave out one rule. Each of them loses rows, so the load is
// one that tells a sound reader from a wrong one.

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/testing/memory_publisher.hpp>

#include "backends/postgres_database.hpp"
#include "process/event_readers.hpp"
#include "process/one_route_relay.hpp"
#include "process/patience.hpp"
#include "process/writer_load.hpp"

namespace postrider::testing {
namespace {

using std::chrono::seconds;
using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Runs until it is stopped.
class RunningRelay {
 public:
  RunningRelay(const PostgresDatabase& database, std::shared_ptr<Journal> journal)
      : relay_(database.open_store(), make_memory_publisher(std::move(journal)), options()),
        thread_([this] { loop_ = relay_->run(); }) {}
  ~RunningRelay() { stop(); }
  RunningRelay(const RunningRelay&) = delete;
  RunningRelay& operator=(const RunningRelay&) = delete;

  void stop() {
    if (!thread_.joinable()) return;
    relay_->request_stop();
    thread_.join();
    EXPECT_TRUE(loop_->ok()) << describe(loop_->error());
    EXPECT_TRUE(loop_->ok() && (*loop_)->clean);
    EXPECT_TRUE(relay_->close().ok());
  }

 private:
  /// Looks as often as it can, and in small batches: most rows are late to one of them.
  static RelayOptions options() {
    RelayOptions options;
    options.batch = 100;
    options.sleep = milliseconds(2);
    options.probe_most = milliseconds(500);
    return options;
  }

  OneRouteRelay relay_;
  std::optional<Result<LoopReport>> loop_;
  std::thread thread_;
};

struct Row {
  std::int64_t seq = 0;
  std::string aggregate;  // empty: none
};
using Rows = std::map<std::string, Row>;  // by event id

Rows committed_rows(PostgresSession& session) {
  Rows rows;
  for (const auto& line : session.rows("SELECT id, seq, aggregate_id FROM outbox_events")) {
    const auto first = line.find('|');
    const auto second = line.find('|', first + 1);
    rows[line.substr(0, first)] = {std::stoll(line.substr(first + 1)), line.substr(second + 1)};
  }
  return rows;
}

/// First occurrences, in the order of arrival.
std::vector<std::pair<std::string, Row>> arrivals(const Journal& journal) {
  std::vector<std::pair<std::string, Row>> arrivals;
  std::set<std::string> met;
  for (const auto& event : journal.accepted()) {
    const auto id = event->id.value().to_string();
    if (!met.insert(id).second) continue;
    arrivals.push_back({id, {event->seq.value(), event->aggregate ? event->aggregate->id : ""}});
  }
  return arrivals;
}

void expect_exactly(const Rows& committed,
                    const std::vector<std::pair<std::string, Row>>& arrivals) {
  Rows lost = committed;
  std::map<std::string, std::int64_t> last;
  for (const auto& [id, row] : arrivals) {
    EXPECT_EQ(committed.count(id), 1U) << "never committed: " << row.seq;
    lost.erase(id);
    if (row.aggregate.empty()) continue;
    auto& before = last[row.aggregate];
    EXPECT_LT(before, row.seq) << "out of order: aggregate " << row.aggregate;
    before = row.seq;
  }
  for (const auto& [id, row] : lost)
    ADD_FAILURE() << "lost: " << row.seq;
}

struct Soak {
  std::string name;
  milliseconds longest_hold;
};

void PrintTo(const Soak& soak, std::ostream* out) {
  *out << soak.name << " transactions";
}

/// Two kinds: a transaction that is held for long also holds xmin back, and so hides some faults.
class ReadingSoak : public ::testing::TestWithParam<Soak> {
 protected:
  static constexpr seconds part{7};  // of three
};

TEST_P(ReadingSoak, F18_F32_what_was_committed_is_delivered_in_order_and_nothing_else) {
  POSTRIDER_NEEDS_POSTGRES();
  PostgresServer server;
  PostgresDatabase database({}, &server);
  const auto journal = std::make_shared<Journal>();
  std::optional<RunningRelay> relay(std::in_place, database, journal);
  const auto delivered = [&](const std::string& payload) {
    const auto all = journal->accepted();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& event) { return event->payload == payload; });
  };

  // One that is prepared before the crash, is passed over by the position, and ends after it.
  auto session = database.open_session();
  session->run("BEGIN");
  session->run("INSERT INTO outbox_events (type, payload) VALUES ('x', 'prepared')");
  session->run("PREPARE TRANSACTION 'over-the-crash'");
  session->run("INSERT INTO outbox_events (type, payload) VALUES ('x', 'passed it')");
  ASSERT_TRUE(comes_true([&] { return delivered("passed it"); }));

  WriterLoad::Options options;
  options.longest_hold = GetParam().longest_hold;
  WriterLoad load(database.conninfo(), options);
  std::this_thread::sleep_for(part);
  server.stop_immediate();
  server.start();
  std::this_thread::sleep_for(part);
  // The successor begins at the stored mark, the first one went on from its own.
  relay.reset();
  relay.emplace(database, journal);
  std::this_thread::sleep_for(part);
  load.stop();
  session = database.open_session();
  EXPECT_FALSE(delivered("prepared"));
  session->run("COMMIT PREPARED 'over-the-crash'");

  EXPECT_TRUE(comes_true([&] {
    return session->run("SELECT count(*) FROM outbox_events WHERE routed_at IS NULL") == "0";
  }));
  relay->stop();
  const auto committed = committed_rows(*session);
  expect_exactly(committed, arrivals(*journal));
  EXPECT_TRUE(delivered("prepared"));
  EXPECT_THAT(load.successes(), Each(Pair(::testing::_, Gt(0)))) << "no load without each kind";
  EXPECT_GT(committed.size(), 2000U);
  std::cout << committed.size() << " events of " << load.successes().size()
            << " kinds of transactions, " << journal->accepted().size() << " messages\n";
}

INSTANTIATE_TEST_SUITE_P(Transactions, ReadingSoak,
                         ::testing::Values(Soak{"short", milliseconds(0)},
                                           Soak{"long", milliseconds(10'000)}),
                         [](const auto& soak) { return soak.param.name; });

/// Readers beside one load and one schedule. The server is their own: nobody else takes xids.
class ReaderMutants : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (why_no_postgres().empty()) {
      server_ = std::make_unique<PostgresServer>(std::vector<std::string>{"autovacuum=off"});
    }
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    if (lacks_postgres()) return;
    open_database();
  }

  void open_database() {
    readers_.clear();
    database_ = std::make_unique<PostgresDatabase>(PostgresOptions{}, server_.get());
    session_ = database_->open_session();
    readers_.push_back(std::make_unique<StoreReader>(database_->open_store()));
  }

  template <class Reader>
  Reader& add_reader() {
    auto reader = std::make_unique<Reader>(database_->conninfo());
    auto& added = *reader;
    readers_.push_back(std::move(reader));
    return added;
  }

  /// Each reader once.
  bool look() {
    bool any = false;
    for (const auto& reader : readers_)
      any = reader->look() || any;
    return any;
  }

  [[nodiscard]] std::vector<std::int64_t> lost_by(const EventReader& reader) {
    while (look()) {
    }
    std::vector<std::int64_t> lost;
    for (const auto& seq : session_->rows("SELECT seq FROM outbox_events ORDER BY seq")) {
      if (!reader.seen().contains(std::stoll(seq))) lost.push_back(std::stoll(seq));
    }
    return lost;
  }

  /// Every reader looks, again and again, while others write.
  void read_beside_load(std::uint32_t seed) {
    WriterLoad::Options options;
    options.seed = seed;
    WriterLoad load(database_->conninfo(), options);
    std::vector<std::string> failures(readers_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < readers_.size(); ++i) {
        threads.emplace_back([&, i](const std::stop_token& stop) {
          try {
            while (!stop.stop_requested())
              readers_[i]->look();
          } catch (const std::exception& failure) {
            failures[i] = failure.what();
          }
        });
      }
      std::this_thread::sleep_for(load_time);
      load.stop();
    }
    EXPECT_THAT(failures, Each(IsEmpty()));
  }

  /// `schedule` is the shortest way to a loss and needs a quiet server; the load finds its own.
  void expect_loss(const EventReader& mutant, const std::function<void()>& schedule) {
    std::size_t by_load = 0;
    std::size_t altogether = 0;
    for (std::uint32_t round = 1; altogether == 0 && round <= most_rounds; ++round) {
      read_beside_load(round);
      by_load = lost_by(mutant).size();
      schedule();
      altogether = lost_by(mutant).size();
    }
    EXPECT_GT(altogether, 0U) << "the reader is wrong, and neither load nor schedule shows it";
    std::cout << "lost " << by_load << " of " << session_->run("SELECT count(*) FROM outbox_events")
              << " rows beside the load, " << altogether - by_load << " by the schedule\n";
    for (const auto& reader : readers_) {
      if (reader.get() == &mutant) continue;
      EXPECT_THAT(lost_by(*reader), IsEmpty());
      EXPECT_EQ(reader->repeats(), 0U);
    }
  }

  std::unique_ptr<PostgresSession> writer() { return database_->open_session(); }

  static constexpr seconds load_time{3};
  static constexpr std::uint32_t most_rounds = 10;
  static std::unique_ptr<PostgresServer> server_;

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<PostgresSession> session_;
  std::vector<std::unique_ptr<EventReader>> readers_;
};

std::unique_ptr<PostgresServer> ReaderMutants::server_;

#define NEEDS_DATABASE() \
  if (database_ == nullptr) return

constexpr const char* insert_one = "INSERT INTO outbox_events (type) VALUES ('x')";
constexpr const char* insert_order_1 =
    "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ('order', '1', 'x')";

/// xmax is one more than the last xid that ended; the second transaction here is not below it.
const auto ends_above_xmax = [](PostgresSession& a, PostgresSession& b, const auto& look) {
  a.run("BEGIN");
  a.run(insert_one);
  b.run("BEGIN");
  b.run(insert_one);
  a.run(insert_one);
  a.run("COMMIT");
  look();
  look();
  b.run("COMMIT");
  look();
};

TEST_F(ReaderMutants, A_list_without_the_xids_from_xmax_on_loses_rows) {
  NEEDS_DATABASE();
  add_reader<ListReader>();
  const auto& mutant = add_reader<ListWithoutHorizon>();
  expect_loss(mutant, [&] { ends_above_xmax(*writer(), *writer(), [this] { look(); }); });
}

TEST_F(ReaderMutants, Gaps_that_are_stamped_with_xmax_lose_rows) {
  NEEDS_DATABASE();
  add_reader<GapReader>();
  const auto& mutant = add_reader<GapsStampedByXmax>();
  expect_loss(mutant, [&] { ends_above_xmax(*writer(), *writer(), [this] { look(); }); });
}

TEST_F(ReaderMutants, Gaps_that_are_given_up_when_xmin_moves_lose_rows) {
  NEEDS_DATABASE();
  add_reader<GapReader>();
  const auto& mutant = add_reader<GapsUntilXminMoves>();
  expect_loss(mutant, [&] {
    const auto oldest = writer();
    const auto late = writer();
    oldest->run("BEGIN");
    oldest->run("SELECT pg_current_xact_id()");
    late->run("BEGIN");
    late->run(insert_one);
    writer()->run(insert_one);
    look();
    oldest->run("COMMIT");
    look();
    late->run("COMMIT");
    look();
  });
}

TEST_F(ReaderMutants, A_snapshot_that_is_taken_after_the_rows_loses_rows) {
  NEEDS_DATABASE();
  add_reader<ListReader>();
  auto& mutant = add_reader<RowsBeforeSnapshot>();
  expect_loss(mutant, [&] {
    const auto late = writer();
    late->run("BEGIN");
    late->run(insert_one);
    writer()->run(insert_one);
    mutant.in_between = [&] { late->run("COMMIT"); };
    mutant.look();
    mutant.in_between = [] {};
    look();
  });
}

/// As in many a hand-written outbox: the number is the column's default, and so it is drawn before
/// the trigger takes lock and xid.
void draw_numbers_first(PostgresSession& session) {
  auto function =
      session.rows("SELECT pg_get_functiondef('outbox_events_before_insert'::regproc)").at(0);
  const auto drawn = function.find("NEW.seq := pg_catalog.nextval");
  ASSERT_NE(drawn, std::string::npos);
  function.replace(drawn, function.find(';', drawn) - drawn, "NULL");
  session.run(function);
  session.run(
      "ALTER TABLE outbox_events ALTER seq SET DEFAULT nextval('outbox_events_seq'::regclass)");
}

TEST_F(ReaderMutants, A_number_that_is_drawn_before_the_xid_is_lost) {
  NEEDS_DATABASE();
  const auto waits_for_its_aggregate = [this] {
    const auto first = writer();
    const auto second = writer();
    first->run("BEGIN");
    first->run(insert_order_1);
    second->send(insert_order_1);
    ASSERT_TRUE(comes_true([&] {
      return session_->run("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = " +
                           std::to_string(second->backend_pid())) == "1";
    }));
    writer()->run(insert_one);
    look();
    first->run("COMMIT");
    second->finish();
    look();
  };
  waits_for_its_aggregate();
  EXPECT_THAT(lost_by(*readers_.front()), IsEmpty());

  open_database();
  draw_numbers_first(*session_);
  expect_loss(*readers_.front(), waits_for_its_aggregate);
}

}  // namespace
}  // namespace postrider::testing
