// A standby takes over that lacks the last commits, while the relay lives on (F36): the successor
// gives out again the numbers that the relay has read already.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <postrider/testing/memory_publisher.hpp>

#include "backends/postgres_database.hpp"
#include "conformance/store_builders.hpp"
#include "process/one_route_relay.hpp"
#include "process/patience.hpp"
#include "servers/chaos_proxy.hpp"

namespace postrider::testing {
namespace {

using ::testing::SizeIs;

constexpr int common = 5;     // events that both servers have
constexpr int lacking = 100;  // that the standby lacks
constexpr int later = 200;    // that are written after it took over

std::string insert(const std::string& payload, int count) {
  return "INSERT INTO outbox_events (type, payload) SELECT 'x', '" + payload +
         "' FROM generate_series(1, " + std::to_string(count) + ")";
}

template <class Events>
std::ptrdiff_t count(const Events& events, const std::string& payload) {
  return std::count_if(events.begin(), events.end(),
                       [&](const auto& event) { return event->payload == payload; });
}

/// Whether a relay has settled everything there.
bool comes_to_rest(const std::string& conninfo) {
  PostgresSession session(conninfo);
  return comes_true([&] {
    return session.run("SELECT count(*) FROM outbox_events WHERE routed_at IS NULL") == "0";
  });
}

class Failover : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_postgres()) return;
    primary_ = std::make_unique<PostgresServer>();
    database_ = std::make_unique<PostgresDatabase>(PostgresOptions{}, primary_.get());
    database_->open_session()->run(insert("common", common));
    standby_ = std::make_unique<PostgresServer>(PostgresServer::StandbyOf{*primary_});
    way_to_standby_ = std::make_unique<ChaosProxy>(standby_->port());
  }

  [[nodiscard]] PostgresOptions options_of_standby() const {
    PostgresOptions options;
    options.conninfo = standby_->conninfo(database_->name());
    return options;
  }

  /// Whichever of the two is the primary, as people write it.
  [[nodiscard]] std::unique_ptr<Store> open_store_of_both() const {
    PostgresOptions options;
    options.conninfo = "host=127.0.0.1,127.0.0.1 port=" + std::to_string(primary_->port()) + "," +
                       std::to_string(way_to_standby_->port()) +
                       " user=postgres target_session_attrs=read-write dbname=" + database_->name();
    return make_postgres_store(options);
  }

  /// The relay comes when others have written already, past the position that it had.
  void fail_over() {
    way_to_standby_->tell("refuse");
    primary_->stop_immediate();
    standby_->promote();
    PostgresSession(options_of_standby().conninfo).run(insert("later", later));
    way_to_standby_->tell("accept");
  }

  ManualClock clock_;
  std::unique_ptr<PostgresServer> primary_;
  std::unique_ptr<PostgresServer> standby_;
  std::unique_ptr<ChaosProxy> way_to_standby_;
  std::unique_ptr<PostgresDatabase> database_;
};

#define NEEDS_SERVERS() \
  if (standby_ == nullptr) return

TEST_F(Failover, F36_a_standby_is_for_looking_until_it_is_promoted) {
  NEEDS_SERVERS();
  const auto store = make_postgres_store(options_of_standby());
  const auto operations = make_postgres_operations(options_of_standby());

  const auto refused = store->check_schema(soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::primary_not_writable);
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  EXPECT_EQ(value_of(operations->status(std::nullopt, soon())).events.total, common);
  standby_->promote();
  expect_ok(store->check_schema(soon()));
}

TEST_F(Failover, F36_leases_and_positions_of_the_old_server_mean_nothing_to_its_successor) {
  NEEDS_SERVERS();
  const auto store = open_store_of_both();
  Claimant relay(*store, clock_);
  relay.lease();
  database_->open_session()->run(insert("lacking", lacking));
  const auto read = relay.claim();
  ASSERT_THAT(read.events, SizeIs(common + lacking));
  auto in_flight = relay.settle_request();
  for (const auto& claimed : read.events)
    in_flight = routing(std::move(in_flight), claimed);
  in_flight.mark = read.mark;

  fail_over();

  const auto refused = store->settle(in_flight, soon());
  ASSERT_FALSE(refused.ok()) << "its numbers are those of other events now";
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  EXPECT_FALSE(store->claim(relay.claim_request({read.mark}), soon()).ok());

  const auto grant = relay.lease();
  ASSERT_THAT(grant.leases, SizeIs(in_flight.leases.size()));
  for (std::size_t i = 0; i < grant.leases.size(); ++i) {
    EXPECT_TRUE(grant.leases[i].gained);
    EXPECT_GT(grant.leases[i].lease.token, in_flight.leases[i].token);
  }
  EXPECT_THAT(value_of(store->settle(in_flight, soon())).lost, SizeIs(in_flight.leases.size()));
  const auto again = relay.claim(relay.claim_request({grant.leases.front().mark}));
  EXPECT_THAT(again.events, SizeIs(common + later));
  EXPECT_FALSE(relay.lease().leases.front().gained) << "only once";
}

TEST_F(Failover, F36_a_relay_that_lives_on_delivers_all_that_the_successor_has) {
  NEEDS_SERVERS();
  database_->open_session()->run(insert("lacking", lacking));
  const auto journal = std::make_shared<Journal>();
  RelayOptions options;
  options.sleep = milliseconds(10);
  OneRouteRelay relay(open_store_of_both(), make_memory_publisher(journal), options);
  std::thread thread([&] { EXPECT_TRUE(relay->run().ok()); });
  EXPECT_TRUE(comes_to_rest(database_->conninfo()));

  fail_over();

  EXPECT_TRUE(comes_to_rest(options_of_standby().conninfo));
  relay->request_stop();
  thread.join();
  EXPECT_EQ(count(journal->accepted(), "later"), later);
  EXPECT_EQ(count(journal->accepted(), "lacking"), lacking);
  EXPECT_EQ(count(journal->accepted(), "common"), 2 * common) << "the standby lacked the mark";
}

}  // namespace
}  // namespace postrider::testing
