// A relay that reaches its database through pgbouncer.
#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include "process/patience.hpp"
#include "process/relay_line.hpp"
#include "servers/pgbouncer.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

bool lacks_pooler() {
  return lacks(why_no_pgbouncer());
}

/// What a relay needs to reach its database through a pooler.
LineSettings through(const Pgbouncer& pooler) {
  LineSettings settings;
  settings.store_port = pooler.port();
  return settings;
}

TEST(Pooler, F38_with_session_pooling_relays_work_die_and_are_replaced_as_without) {
  if (lacks_servers() || lacks_pooler()) return;
  const Pgbouncer pooler(shared_postgres(), "session");
  RelayLine line("pooled-sessions", through(pooler));
  auto run = line.run();
  run.portions = 4;
  run.events = 800;
  std::unique_ptr<Running> relay;
  drain_disturbed(run, {[&](int) { relay = line.start_relay(); },
                        [&](int portion) {
                          relay->signal(portion % 2 == 0 ? SIGKILL : SIGTERM);
                          EXPECT_EQ(relay->finish().code, portion % 2 == 0 ? 128 + SIGKILL : 0);
                        }});
  relay = line.start_relay();
  EXPECT_TRUE(all_arrive(run)) << relay->err();
  EXPECT_EQ(count_of(*relay, "store_failed"), 0U) << relay->err();
  expect_sound(run, line.arrived());
}

TEST(Pooler, F38_with_transaction_pooling_a_relay_says_what_is_wrong_and_nothing_is_lost) {
  if (lacks_servers() || lacks_pooler()) return;
  const Pgbouncer pooler(shared_postgres(), "transaction");
  RelayLine line("pooled-transactions", through(pooler));
  auto run = line.run();
  run.events = 200;
  // The first one has the pooler's only session for itself, and leaves its statements there.
  write_events(run, 0, 100);
  const auto first = line.shop().run({"relay", "--drain"});
  EXPECT_EQ(first.code, 0) << first.err;
  write_events(run, 100, 200);
  const auto second = line.shop().run({"relay", "--drain"});
  EXPECT_EQ(second.code, 78) << second.err;
  EXPECT_THAT(second.err, HasSubstr("pool by session"));

  line.shop().variables["POSTRIDER_STORE"] =
      "postgresql://postgres@127.0.0.1:" + std::to_string(line.database().server().port()) + "/" +
      line.database().name();
  const auto direct = line.shop().run({"relay", "--drain"});
  EXPECT_EQ(direct.code, 0) << direct.err;
  expect_sound(run, line.arrived());
}

}  // namespace
}  // namespace postrider::testing
