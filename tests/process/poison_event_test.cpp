// An event that kills whoever sends it, and a relay that is killed once while it waits for an
// answer. The broker is scripted: it knows the moment at which a message has left the relay.
#include <condition_variable>
#include <csignal>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <postrider/store/sqlite.hpp>

#include "cli/program.hpp"
#include "servers/scripted_amqp_server.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds patience{30'000};
constexpr int events = 100;
constexpr int aggregates = 10;
constexpr int poison = 57;

/// A broker that confirms everything, and kills the relay that sends what `deadly` tells.
class DeadlyBroker {
 public:
  explicit DeadlyBroker(std::function<bool(const std::string& body)> deadly)
      : deadly_(std::move(deadly)),
        server_([this](int, std::uint64_t tag) { return answer(tag); }) {}

  [[nodiscard]] std::string url() const { return server_.url(); }
  /// In the order of arrival, without those that killed.
  [[nodiscard]] const std::vector<std::string>& confirmed() const { return confirmed_; }

  /// Runs one relay to its end: 137 when it was killed.
  Finished run_relay(Workshop& shop) {
    const auto relay = shop.start({"relay", "--drain", "--log-level", "info"});
    {
      const std::lock_guard lock(mutex_);
      relay_ = relay.get();
      changed_.notify_all();
    }
    auto finished = relay->finish();
    const std::lock_guard lock(mutex_);
    relay_ = nullptr;
    return finished;
  }

 private:
  std::string answer(std::uint64_t tag) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return relay_ != nullptr; });
    if (!deadly_(server_.body())) {
      confirmed_.push_back(server_.body());
      return amqp_frames::ack(tag);
    }
    relay_->signal(SIGKILL);
    return "";
  }

  const std::function<bool(const std::string&)> deadly_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const Running* relay_ = nullptr;
  std::vector<std::string> confirmed_;
  ScriptedAmqpServer server_;  // last: its thread uses the others
};

SqliteOptions database_of(const Workshop& shop) {
  SqliteOptions options;
  options.path = shop.path("app.db").string();
  return options;
}

void prepare(Workshop& shop, const DeadlyBroker& broker, const std::string& route_settings) {
  shop.write("postrider.toml",
             "store = \"sqlite:app.db\"\n[relay]\nlease_time = \"300ms\"\nlease_renewal = "
             "\"100ms\"\nsleep = \"10ms\"\n[[routes]]\nname = \"all\"\nto = \"" +
                 broker.url() + "\"\n" + route_settings +
                 "[routes.amqp]\nexchange = \"somewhere\"\n");
  ASSERT_EQ(shop.run({"migrate"}).code, 0);
}

void write_events(const Workshop& shop) {
  std::vector<NewEvent> added;
  for (int i = 0; i < events; ++i) {
    NewEvent event;
    event.type = "order.changed";
    event.aggregate = Aggregate{"order", std::to_string(i % aggregates)};
    event.payload = std::to_string(i);
    added.push_back(std::move(event));
  }
  const auto ids = make_sqlite_store(database_of(shop))->add(added, Deadline::after(patience));
  ASSERT_TRUE(ids) << describe(ids.error());
}

Status status_of(const Workshop& shop) {
  const auto operations = make_sqlite_operations(database_of(shop));
  auto status = operations->status(std::nullopt, Deadline::after(patience));
  if (!status) ADD_FAILURE() << describe(status.error());
  return status ? std::move(status).value() : Status{};
}

Suspicion suspicion_of(const Workshop& shop) {
  const auto status = status_of(shop);
  return status.partitions.empty() ? Suspicion{-1} : status.partitions.front().suspicion;
}

/// First copies, by aggregate, have to ascend.
void expect_all_but_the_poison_in_order(const std::vector<std::string>& bodies) {
  std::map<int, int> last_of;
  std::set<int> seen;
  for (const auto& body : bodies) {
    const int number = std::stoi(body);
    if (!seen.insert(number).second) continue;
    const auto [last, first] = last_of.emplace(number % aggregates, number);
    EXPECT_TRUE(first || last->second < number) << number << " came after " << last->second;
    last->second = number;
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(events) - 1);
  EXPECT_FALSE(seen.contains(poison));
}

TEST(PoisonEvent, F165_and_G10_it_is_a_dead_letter_after_four_crashes_and_the_other_99_arrive) {
  DeadlyBroker broker([](const std::string& body) { return body == std::to_string(poison); });
  Workshop shop;
  prepare(shop, broker, "on_failed = \"skip\"\n");
  write_events(shop);

  std::vector<Suspicion> at_death;
  Finished last;
  constexpr int most_runs = 10;
  for (int run = 0; run < most_runs; ++run) {
    last = broker.run_relay(shop);
    if (last.code != 128 + SIGKILL) break;
    at_death.push_back(suspicion_of(shop));
  }

  EXPECT_EQ(last.code, 0) << last.err;
  const Seq probe(poison + 1);
  EXPECT_EQ(at_death, (std::vector<Suspicion>{{0}, {1}, {2, probe}, {3, probe}}))
      << "twice at full speed, twice alone and named";
  expect_all_but_the_poison_in_order(broker.confirmed());
  EXPECT_EQ(suspicion_of(shop), Suspicion{0});
  EXPECT_THAT(last.err, HasSubstr("crashes_suspected"));
  EXPECT_THAT(last.err, HasSubstr("crashes_cleared"));
  const auto dead = shop.run({"dead", "list", "--format", "json"});
  EXPECT_THAT(dead.out, HasSubstr("relay_crashed"));
  EXPECT_THAT(dead.out, HasSubstr("\"event_seq\": \"" + std::to_string(poison + 1) + "\""));
  EXPECT_THAT(dead.out, HasSubstr("\"ambiguous\": true"));
  EXPECT_THAT(dead.out, HasSubstr("\"attempts\": 0"));
}

TEST(PoisonEvent, F2_one_kill_between_send_and_answer_costs_no_attempt_and_counts_one_crash) {
  bool armed = true;
  DeadlyBroker broker([&](const std::string&) { return std::exchange(armed, false); });
  Workshop shop;
  prepare(shop, broker, "record = \"all\"\n");
  ASSERT_EQ(shop.run({"emit", "--type", "a", "--aggregate", "order/1", "--payload", "1"}).code, 0);

  ASSERT_EQ(broker.run_relay(shop).code, 128 + SIGKILL);
  EXPECT_EQ(suspicion_of(shop), Suspicion{0});
  const auto second = broker.run_relay(shop);

  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("\"crashes\":1"));
  EXPECT_THAT(second.err, Not(HasSubstr("crashes_suspected")));
  EXPECT_EQ(broker.confirmed(), std::vector<std::string>{"1"});
  const auto status = status_of(shop);
  ASSERT_EQ(status.routes.size(), 1U);
  EXPECT_EQ(status.routes[0].completed, 1);
  EXPECT_EQ(status.routes[0].retries, 0);
  EXPECT_EQ(status.partitions.at(0).suspicion, Suspicion{0});
}

}  // namespace
}  // namespace postrider::testing
