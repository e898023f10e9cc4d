// The relay as an application embeds it: threads, stopping, exceptions, drains.
#include <postrider/relay.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/operations.hpp>
#include <postrider/testing/memory_publisher.hpp>
#include <postrider/testing/memory_store.hpp>

namespace postrider {
namespace {

using testing::Fault;
using testing::FaultScript;
using testing::Journal;

class RecordingObserver final : public Observer {
 public:
  void notice(const Notice& notice) override {
    notices.push_back(notice);
    if (notice.kind == NoticeKind::route_paused) paused = true;
  }
  [[nodiscard]] std::size_t count(NoticeKind kind) const {
    std::size_t found = 0;
    for (const auto& notice : notices)
      found += notice.kind == kind ? 1 : 0;
    return found;
  }
  std::vector<Notice> notices;  // read only after the relay's thread has ended
  std::atomic<bool> paused = false;
};

/// Throws what no publisher may throw.
class ThrowingPublisher final : public Publisher {
 public:
  PublisherTraits traits() const override { return {}; }
  Result<void> submit(std::span<const Message>, Deadline) override {
    throw std::logic_error("a secret that must not be repeated");
  }
  std::vector<MessageOutcome> poll(Deadline) override { return {}; }
  void wake() noexcept override {}
  std::vector<MessageOutcome> close(Deadline) override { return {}; }
};

/// Takes messages and never answers.
class SilentPublisher final : public Publisher {
 public:
  explicit SilentPublisher(std::atomic<std::size_t>& taken) : taken_(taken) {}
  PublisherTraits traits() const override {
    PublisherTraits traits;
    traits.window = 10;
    return traits;
  }
  Result<void> submit(std::span<const Message> messages, Deadline) override {
    taken_ += messages.size();
    return {};
  }
  std::vector<MessageOutcome> poll(Deadline) override {
    std::this_thread::yield();
    return {};
  }
  void wake() noexcept override {}
  std::vector<MessageOutcome> close(Deadline) override { return {}; }

 private:
  std::atomic<std::size_t>& taken_;
};

/// A store that has room for leases and none for results, as long as `full` is set.
class FullStore final : public Store {
 public:
  FullStore(std::unique_ptr<Store> store, std::atomic<bool>& full,
            std::atomic<std::size_t>& refused)
      : store_(std::move(store)), full_(full), refused_(refused) {}

  StoreTraits traits() const override { return store_->traits(); }
  Result<void> check_schema(Deadline deadline) override { return store_->check_schema(deadline); }
  Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) override {
    return store_->add(events, deadline);
  }
  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline deadline) override {
    return store_->add_once(event, key, deadline);
  }
  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    return store_->lease(request, deadline);
  }
  Result<void> release(std::span<const Lease> leases, Deadline deadline) override {
    return store_->release(leases, deadline);
  }
  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) override {
    return store_->claim(request, deadline);
  }
  Result<DueBatch> due(const DueRequest& request, Deadline deadline) override {
    return store_->due(request, deadline);
  }
  Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) override {
    return store_->held(request, deadline);
  }
  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    if (!full_) return store_->settle(request, deadline);
    ++refused_;
    return Error{ErrorCode::storage_failed, Disposition::retry, "full", "test", ""};
  }

 private:
  std::unique_ptr<Store> store_;
  std::atomic<bool>& full_;
  std::atomic<std::size_t>& refused_;
};

/// Takes messages and keeps their outcomes back until it is told to answer.
struct HeldBack {
  std::atomic<std::size_t> taken = 0;
  std::atomic<bool> answers = false;
};
class HoldingPublisher final : public Publisher {
 public:
  explicit HoldingPublisher(std::shared_ptr<HeldBack> state) : state_(std::move(state)) {}
  PublisherTraits traits() const override {
    PublisherTraits traits;
    traits.window = 10;
    return traits;
  }
  Result<void> submit(std::span<const Message> messages, Deadline) override {
    for (const auto& message : messages)
      outcomes_.push_back({message.attempt, Outcome::confirmed()});
    state_->taken += messages.size();
    return {};
  }
  std::vector<MessageOutcome> poll(Deadline) override {
    std::this_thread::yield();
    if (!state_->answers) return {};
    return std::exchange(outcomes_, {});
  }
  void wake() noexcept override {}
  std::vector<MessageOutcome> close(Deadline) override { return {}; }

 private:
  std::shared_ptr<HeldBack> state_;
  std::vector<MessageOutcome> outcomes_;
};

/// Deletes for as long as the test likes, and may fail.
class ScriptedPurger final : public Purger {
 public:
  struct State {
    std::atomic<bool> stuck = false;
    std::atomic<int> asked = 0;
    std::atomic<int> answered = 0;
    std::optional<Error> failure;  // set before the relay starts
  };
  explicit ScriptedPurger(State& state) : state_(state) {}

  Result<PurgeSlice> purge(const PurgeRequest& request, const std::optional<Operator>& who,
                           Deadline) override {
    EXPECT_FALSE(who) << "a relay is no person";
    ++state_.asked;
    while (state_.stuck)
      std::this_thread::yield();
    ++state_.answered;
    if (state_.failure) return *state_.failure;
    return PurgeSlice{request.kept == Kept::keys ? 3 : 0, {}, false};
  }

 private:
  State& state_;
};

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() {
    options_.sleep = milliseconds(1);
    options_.probe_least = milliseconds(1);
    options_.probe_most = milliseconds(5);
  }

  void add(std::size_t events) {
    std::vector<NewEvent> added(events);
    for (std::size_t i = 0; i < events; ++i) {
      added[i].type = "order.placed";
      added[i].aggregate = Aggregate{"order", std::to_string(i % 7)};
    }
    ASSERT_TRUE(testing::make_memory_store(database_)->add(added, Deadline::after(patience)));
  }
  std::unique_ptr<Relay> relay(std::unique_ptr<Publisher> publisher) {
    return relay(testing::make_memory_store(database_), std::move(publisher));
  }
  std::unique_ptr<Relay> relay(std::unique_ptr<Store> store, std::unique_ptr<Publisher> publisher) {
    Route route;
    route.name = "all";
    route.destination = "test:";
    route.retry_delays = {milliseconds(1), milliseconds(1)};
    std::vector<RouteBinding> routes;
    routes.push_back({route, std::move(publisher)});
    return std::make_unique<Relay>(std::move(store), std::move(routes), options_, system_clock(),
                                   *random_, observer_, std::move(purger_));
  }
  // Lets it run until `taken` messages are at their destination, and stops it before they are
  // answered.
  void stop_by_force(Relay& running, const std::atomic<std::size_t>& taken, std::size_t messages) {
    std::thread thread([&] {
      const auto loop = running.run();
      ASSERT_TRUE(loop);
      EXPECT_FALSE(loop->clean);
      EXPECT_EQ(loop->left_in_flight, messages);
    });
    EXPECT_TRUE(eventually([&] { return taken == messages; }));
    running.request_stop();
    thread.join();
  }
  std::unique_ptr<Purger> purger_;  // of the next relay
  std::unique_ptr<Publisher> memory() { return testing::make_memory_publisher(journal_); }

  /// Bounded, for what another thread does.
  template <class Condition>
  static bool eventually(Condition condition) {
    const auto until = Deadline::after(patience);
    while (!condition()) {
      if (until.passed()) return false;
      std::this_thread::yield();
    }
    return true;
  }

  static constexpr milliseconds patience{10'000};
  std::shared_ptr<testing::MemoryDatabase> database_ = testing::make_memory_database(8);
  std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
  std::unique_ptr<Random> random_ = seeded_random(3);
  RecordingObserver observer_;
  RelayOptions options_;
};

TEST_F(RelayTest, An_exception_of_a_publisher_ends_the_pass_and_its_text_is_not_repeated) {
  add(1);
  auto broken = relay(std::make_unique<ThrowingPublisher>());
  const auto pass = broken->run_once();
  ASSERT_FALSE(pass);
  EXPECT_EQ(pass.error().code, ErrorCode::internal);
  EXPECT_EQ(pass.error().message.find("secret"), std::string::npos);
  EXPECT_FALSE(broken->run_once()) << "nor does the next pass wait for it";

  broken.reset();
  auto sound = relay(memory());
  EXPECT_EQ(sound->run_once()->sent.size(), 1U) << "the row was not touched";
}

TEST_F(RelayTest, A_pass_tells_every_failure_with_its_event) {
  add(3);
  auto flaky = relay(testing::make_flaky_publisher(memory(), FaultScript{{2, Fault::refuse}}));
  const auto pass = flaky->run_once();
  ASSERT_TRUE(pass);
  ASSERT_EQ(pass->errors.size(), 1U);
  EXPECT_EQ(pass->errors[0].seq, Seq(2));
  EXPECT_EQ(pass->errors[0].route, "all");
  EXPECT_TRUE(pass->errors[0].is_publish_failed());
}

TEST_F(RelayTest, A_drain_repeats_until_nothing_is_left_retries_included) {
  add(20);
  options_.batch = 3;
  auto flaky = relay(testing::make_flaky_publisher(
      memory(), FaultScript{{1, Fault::refuse}, {5, Fault::lost_ack}, {9, Fault::down}}));
  const auto drain = flaky->drain(std::nullopt);
  ASSERT_TRUE(drain);
  EXPECT_TRUE(drain->drained);
  EXPECT_EQ(drain->total.sent.size(), 20U);
  EXPECT_GT(drain->passes, 6U);
}

TEST_F(RelayTest, A_drain_stops_after_so_many_passes_and_says_that_something_is_left) {
  add(1);
  journal_->set_down(true);
  auto down = relay(memory());
  const auto drain = down->drain(3);
  ASSERT_TRUE(drain);
  EXPECT_EQ(drain->passes, 3U);
  EXPECT_FALSE(drain->drained);
}

TEST_F(RelayTest, A_stop_before_the_start_lets_it_return_at_once) {
  add(1);
  auto stopped = relay(memory());
  stopped->request_stop();
  const auto loop = stopped->run();
  ASSERT_TRUE(loop);
  EXPECT_TRUE(loop->clean);
  EXPECT_TRUE(journal_->accepted().empty());
}

TEST_F(RelayTest, A_loop_delivers_what_is_written_while_it_runs_and_stops_cleanly) {
  auto running = relay(memory());
  std::thread thread([&] {
    const auto loop = running->run();
    ASSERT_TRUE(loop);
    EXPECT_TRUE(loop->clean);
  });
  for (int i = 0; i < 5; ++i)
    add(100);
  EXPECT_TRUE(eventually([&] { return journal_->accepted().size() == 500; }));
  running->request_stop();
  running->request_stop();
  thread.join();
  EXPECT_TRUE(running->close());
  EXPECT_TRUE(running->close());
}

TEST_F(RelayTest, A_loop_survives_an_outage_of_the_destination) {
  journal_->set_down(true);
  auto running = relay(memory());
  std::thread thread([&] { EXPECT_TRUE(running->run()); });
  add(50);
  EXPECT_TRUE(eventually([&] { return observer_.paused.load(); }));
  journal_->set_down(false);
  EXPECT_TRUE(eventually([&] { return journal_->accepted().size() == 50; }));
  running->request_stop();
  thread.join();
  EXPECT_GE(observer_.count(NoticeKind::route_resumed), 1U);
  EXPECT_EQ(observer_.count(NoticeKind::delivery_failed), 0U);
}

TEST_F(RelayTest, A_stop_waits_for_what_is_in_flight_no_longer_than_drain_timeout) {
  options_.drain_timeout = milliseconds(50);
  add(3);
  std::atomic<std::size_t> taken = 0;
  auto stuck = relay(std::make_unique<SilentPublisher>(taken));
  stop_by_force(*stuck, taken, 3);
}

TEST_F(RelayTest, After_a_forced_stop_the_same_relay_can_be_used_again) {
  options_.drain_timeout = milliseconds(0);
  add(3);
  std::atomic<std::size_t> taken = 0;
  auto stuck = relay(std::make_unique<SilentPublisher>(taken));
  stop_by_force(*stuck, taken, 3);

  const auto again = stuck->run();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->clean) << "the stop that was asked for still holds, and nothing was begun";
  EXPECT_TRUE(stuck->close());
}

TEST_F(RelayTest, A_pass_after_a_forced_stop_sends_what_was_left_again) {
  options_.drain_timeout = milliseconds(0);
  add(3);
  auto held_back = std::make_shared<HeldBack>();
  auto one = relay(std::make_unique<HoldingPublisher>(held_back));
  stop_by_force(*one, held_back->taken, 3);

  held_back->answers = true;
  const auto pass = one->run_once();

  ASSERT_TRUE(pass) << describe(pass.error());
  EXPECT_EQ(pass->sent.size(), 3U);
  EXPECT_EQ(held_back->taken, 6U);
}

TEST_F(RelayTest, A_purge_that_hangs_delays_neither_sending_nor_settling) {
  ScriptedPurger::State state;
  state.stuck = true;
  purger_ = std::make_unique<ScriptedPurger>(state);
  auto running = relay(memory());
  std::thread thread([&] { EXPECT_TRUE(running->run()); });
  EXPECT_TRUE(eventually([&] { return state.asked == 1; }));

  add(20);
  const auto operations = testing::make_memory_operations(database_);
  EXPECT_TRUE(eventually(
      [&] { return operations->status({}, Deadline::after(patience))->events.unrouted == 0; }));

  EXPECT_EQ(state.answered, 0);
  state.stuck = false;
  running->request_stop();
  thread.join();
  EXPECT_TRUE(running->close());
  EXPECT_EQ(journal_->accepted().size(), 20U);
}

TEST_F(RelayTest, What_was_purged_is_told_with_its_number) {
  ScriptedPurger::State state;
  purger_ = std::make_unique<ScriptedPurger>(state);
  auto running = relay(memory());
  std::thread thread([&] { EXPECT_TRUE(running->run()); });
  EXPECT_TRUE(eventually([&] { return state.answered == static_cast<int>(all_kept.size()); }));
  running->request_stop();
  thread.join();

  ASSERT_EQ(observer_.count(NoticeKind::rows_purged), 1U);
  for (const auto& notice : observer_.notices) {
    if (notice.kind != NoticeKind::rows_purged) continue;
    EXPECT_EQ(notice.code, "keys");
    EXPECT_EQ(notice.rows, 3);
  }
}

TEST_F(RelayTest, A_purge_that_fails_stops_nobody_and_is_told) {
  ScriptedPurger::State state;
  state.failure = Error{ErrorCode::permission_denied, Disposition::stop, "no DELETE.", "test", ""};
  purger_ = std::make_unique<ScriptedPurger>(state);
  auto running = relay(memory());
  std::thread thread([&] { EXPECT_TRUE(running->run()); });
  EXPECT_TRUE(eventually([&] { return state.answered == static_cast<int>(all_kept.size()); }));
  add(5);
  EXPECT_TRUE(eventually([&] { return journal_->accepted().size() == 5; }));
  running->request_stop();
  thread.join();
  EXPECT_GE(observer_.count(NoticeKind::purge_failed), 2U) << "the last may come after the stop";
  EXPECT_EQ(observer_.count(NoticeKind::store_failed), 0U);
}

TEST_F(RelayTest, A_pass_and_a_drain_purge_nothing) {
  ScriptedPurger::State state;
  purger_ = std::make_unique<ScriptedPurger>(state);
  add(3);
  auto once = relay(memory());
  ASSERT_TRUE(once->run_once());
  ASSERT_TRUE(once->drain(std::nullopt));
  EXPECT_EQ(state.asked, 0);
}

TEST_F(RelayTest, F34_while_no_result_can_be_stored_little_is_sent_again_and_one_line_tells_of_it) {
  std::atomic<bool> full = true;
  std::atomic<std::size_t> refused = 0;
  auto running = relay(
      std::make_unique<FullStore>(testing::make_memory_store(database_), full, refused), memory());
  add(200);
  std::thread thread([&] { EXPECT_TRUE(running->run()); });
  constexpr std::size_t refusals_of_a_pass = 3;
  constexpr std::size_t passes = 5;
  EXPECT_TRUE(eventually([&] { return refused >= passes * refusals_of_a_pass; }));
  EXPECT_LE(journal_->accepted().size(), 200 + 1 + refused / refusals_of_a_pass);
  full = false;
  const auto settled = [&] {
    const auto status =
        testing::make_memory_operations(database_)->status({}, Deadline::after(patience));
    return status && status->events.unrouted == 0;
  };
  EXPECT_TRUE(eventually(settled));
  running->request_stop();
  thread.join();
  EXPECT_EQ(observer_.count(NoticeKind::store_failed), 1U);
  EXPECT_EQ(observer_.count(NoticeKind::store_recovered), 1U);
}

TEST_F(RelayTest, Starting_and_stopping_at_any_moment_is_safe) {
  add(200);
  for (int i = 0; i < 50; ++i) {
    auto running = relay(memory());
    std::thread thread([&] { EXPECT_TRUE(running->run()); });
    for (int spin = 0; spin < i * 20; ++spin)
      std::this_thread::yield();
    running->request_stop();
    thread.join();
  }
  auto last = relay(memory());
  ASSERT_TRUE(last->drain(std::nullopt));
  std::set<std::int64_t> arrived;
  for (const auto& event : journal_->accepted())
    arrived.insert(event->seq.value());
  EXPECT_EQ(arrived.size(), 200U);
}

}  // namespace
}  // namespace postrider
