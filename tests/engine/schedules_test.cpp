// Schedules of a relay with all its threads: what is due becomes an event and leaves, and what
// fails there ends nothing.
#include <postrider/relay.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/operations.hpp>
#include <postrider/testing/manual_clock.hpp>
#include <postrider/testing/memory_publisher.hpp>
#include <postrider/testing/memory_store.hpp>

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Journal;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr milliseconds patience{30'000};

template <class Condition>
bool comes_about(Condition condition) {
  const auto until = Deadline::after(patience);
  while (!condition()) {
    if (until.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Locks nothing: a relay tells one thing at a time.
class ToldList final : public Observer {
 public:
  void notice(const Notice& notice) override { notices.push_back(notice); }
  [[nodiscard]] std::vector<Notice> of(NoticeKind kind) const {
    std::vector<Notice> found;
    for (const auto& notice : notices)
      if (notice.kind == kind) found.push_back(notice);
    return found;
  }
  std::vector<Notice> notices;  // read only after the relay's threads have ended
};

/// What a test does to a store of schedules.
struct Switches {
  std::atomic<bool> down = false;  ///< nothing can be read
  std::atomic<int> looks = 0;
  std::string broken;  ///< the event of this schedule cannot be written
};

class SwitchedStore final : public ScheduleStore {
 public:
  SwitchedStore(std::unique_ptr<ScheduleStore> inner, Switches& switches)
      : inner_(std::move(inner)), switches_(switches) {}

  Result<void> check_schema(Deadline deadline) override { return inner_->check_schema(deadline); }
  Result<void> register_all(const RegisterRequest& request, Deadline deadline) override {
    if (switches_.down) return away();
    return inner_->register_all(request, deadline);
  }
  Result<ScheduleStates> states(std::optional<Timestamp> now, Deadline deadline) override {
    ++switches_.looks;
    if (switches_.down) return away();
    return inner_->states(now, deadline);
  }
  Result<FireAnswer> fire(const FireRequest& request, Deadline deadline) override {
    if (request.name == switches_.broken) {
      return Error{ErrorCode::invalid_argument, Disposition::reject,
                   "a trigger of the application refuses it. Mend the trigger.", "test", ""};
    }
    return inner_->fire(request, deadline);
  }
  Result<EventId> run(const Schedule& schedule, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return inner_->run(schedule, who, now, deadline);
  }
  Result<bool> pause(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                     Deadline deadline) override {
    return inner_->pause(name, who, now, deadline);
  }
  Result<bool> resume(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return inner_->resume(name, who, now, deadline);
  }
  Result<bool> forget(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return inner_->forget(name, who, now, deadline);
  }

 private:
  static Error away() {
    return {ErrorCode::unavailable, Disposition::retry, "it is away. Wait.", "test", ""};
  }

  std::unique_ptr<ScheduleStore> inner_;
  Switches& switches_;
};

class SchedulesTest : public ::testing::Test {
 protected:
  SchedulesTest() { options_.sleep = 1ms; }
  ~SchedulesTest() override { stop(); }

  /// At minute 0 of every hour; the clock starts at one.
  static Schedule hourly(const std::string& name) {
    Schedule schedule;
    schedule.name = name;
    schedule.cron = "@hourly";
    schedule.type = "tick." + name;
    return schedule;
  }

  std::unique_ptr<Relay> make(std::vector<Schedule> schedules) {
    std::vector<RouteBinding> routes(1);
    routes[0].route.name = "all";
    routes[0].route.destination = "test:";
    routes[0].publisher = testing::make_memory_publisher(journal_);
    RelaySchedules all;
    all.store =
        std::make_unique<SwitchedStore>(testing::make_memory_schedule_store(database_), switches_);
    all.schedules = std::move(schedules);
    return std::make_unique<Relay>(testing::make_memory_store(database_), std::move(routes),
                                   options_, clock_, *random_, told_, nullptr, nullptr,
                                   std::move(all));
  }
  void begin(std::vector<Schedule> schedules) { relay_ = make(std::move(schedules)); }
  void pass() {
    const auto report = relay_->run_once();
    ASSERT_TRUE(report) << describe(report.error());
  }
  void start() {
    thread_ = std::thread([this] { loop_ = relay_->run(); });
  }
  /// For what a loop does: its clock goes on, a millisecond at a time, far from the next slot.
  template <class Condition>
  bool comes_about_in_time(Condition condition) {
    return comes_about([&] {
      if (condition()) return true;
      clock_.advance(1ms);
      std::this_thread::sleep_for(1ms);
      return false;
    });
  }
  void stop() {
    if (!thread_.joinable()) return;
    relay_->request_stop();
    thread_.join();
    EXPECT_TRUE(*loop_) << describe(loop_->error());
  }
  [[nodiscard]] std::vector<std::string> sent() const {
    std::vector<std::string> types;
    for (const auto& event : journal_->accepted())
      types.push_back(event->type);
    return types;
  }
  std::unique_ptr<ScheduleStore> by_hand() {
    return testing::make_memory_schedule_store(database_);
  }
  ScheduleState state(const std::string& name) {
    const auto found = by_hand()->states(clock_.wall(), Deadline::after(patience));
    for (const auto& state : found->schedules) {
      if (state.name == name) return state;
    }
    return {};
  }

  testing::ManualClock clock_;
  std::unique_ptr<Random> random_ = seeded_random(3);
  std::unique_ptr<Random> database_random_ = seeded_random(4);
  std::shared_ptr<testing::MemoryDatabase> database_ =
      testing::make_memory_database(1, clock_, *database_random_);
  std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
  ToldList told_;
  Switches switches_;
  RelayOptions options_;
  std::unique_ptr<Relay> relay_;
  std::optional<Result<LoopReport>> loop_;
  std::thread thread_;
};

TEST_F(SchedulesTest, A_pass_sends_what_is_due_at_once_and_what_is_not_never) {
  begin({hourly("a")});
  pass();
  EXPECT_THAT(sent(), IsEmpty()) << "its first slot is the first one after it was seen";
  clock_.advance(59min);
  pass();
  EXPECT_THAT(sent(), IsEmpty());
  clock_.advance(1min);
  pass();
  EXPECT_THAT(sent(), ElementsAre("tick.a"));
  const auto event = journal_->accepted()[0];
  EXPECT_EQ(event->headers.at("postrider-schedule"), "a");
  EXPECT_EQ(event->headers.at("postrider-slot"), "2026-01-01T01:00:00.000000Z");
  pass();
  EXPECT_THAT(sent(), SizeIs(1)) << "a slot runs once";
  const auto fired = told_.of(NoticeKind::schedule_fired);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].schedule, "a");
  EXPECT_EQ(fired[0].event_id, event->id);
  EXPECT_EQ(fired[0].slot_at, testing::ManualClock().wall() + 1h);
}

TEST_F(SchedulesTest, A_drain_sends_what_is_due) {
  begin({hourly("a")});
  ASSERT_TRUE(relay_->drain(1));
  clock_.advance(1h);
  ASSERT_TRUE(relay_->drain(std::nullopt));
  EXPECT_THAT(sent(), ElementsAre("tick.a"));
}

TEST_F(SchedulesTest, A_loop_runs_each_slot_when_it_comes) {
  begin({hourly("a")});
  start();
  ASSERT_TRUE(comes_about([&] { return switches_.looks > 0; }));
  for (std::size_t hour = 1; hour <= 3; ++hour) {
    clock_.advance(1h);
    EXPECT_TRUE(comes_about_in_time([&] { return sent().size() == hour; })) << hour;
  }
  stop();
  EXPECT_THAT(told_.of(NoticeKind::schedule_fired), SizeIs(3));
  EXPECT_THAT(told_.of(NoticeKind::schedule_missed), IsEmpty());
}

TEST_F(SchedulesTest, After_an_outage_the_policy_decides_and_what_is_passed_over_is_told) {
  auto skip = hourly("skip");
  skip.missed = Missed::skip;
  auto all = hourly("all");
  all.missed = Missed::all;
  all.most_missed = 3;
  begin({skip, hourly("one"), all});
  pass();
  clock_.advance(10h + 30min);
  begin({skip, hourly("one"), all});
  pass();
  EXPECT_THAT(sent(), ElementsAre("tick.all", "tick.all", "tick.all", "tick.one"));
  const auto missed = told_.of(NoticeKind::schedule_missed);
  ASSERT_THAT(missed, SizeIs(3));
  EXPECT_EQ(missed[0].schedule, "all");
  EXPECT_EQ(missed[0].rows, 7);
  EXPECT_EQ(missed[1].rows, 9);
  EXPECT_EQ(missed[2].rows, 10);
  pass();
  EXPECT_THAT(sent(), SizeIs(4));
}

TEST_F(SchedulesTest, Two_relays_run_a_slot_once) {
  begin({hourly("a")});
  const auto other = make({hourly("a")});
  pass();
  ASSERT_TRUE(other->run_once());
  for (int hour = 0; hour < 5; ++hour) {
    clock_.advance(1h);
    ASSERT_TRUE(other->run_once());
    pass();
  }
  EXPECT_THAT(told_.of(NoticeKind::schedule_fired), SizeIs(5));
}

TEST_F(SchedulesTest, A_broken_schedule_stops_neither_the_others_nor_the_relay) {
  switches_.broken = "a";
  begin({hourly("a"), hourly("b")});
  pass();
  for (int hour = 0; hour < 3; ++hour) {
    clock_.advance(1h);
    pass();
  }
  EXPECT_THAT(sent(), ElementsAre("tick.b", "tick.b", "tick.b"));
  const auto failed = told_.of(NoticeKind::schedule_failed);
  ASSERT_THAT(failed, SizeIs(1)) << "the first in a row";
  EXPECT_EQ(failed[0].schedule, "a");
  EXPECT_EQ(failed[0].code, "invalid_argument");
  switches_.broken.clear();
  clock_.advance(2min);  // beyond its back-off
  pass();
  EXPECT_EQ(sent().back(), "tick.a") << "mended, it is caught up";
}

TEST_F(SchedulesTest, A_database_that_is_away_is_told_once_and_waited_for) {
  switches_.down = true;
  begin({hourly("a")});
  pass();
  pass();
  EXPECT_THAT(told_.of(NoticeKind::store_failed), SizeIs(1));
  switches_.down = false;
  pass();
  EXPECT_THAT(told_.of(NoticeKind::store_recovered), SizeIs(1));
  clock_.advance(1h);
  pass();
  EXPECT_THAT(sent(), ElementsAre("tick.a"));
}

TEST_F(SchedulesTest, A_loop_survives_a_database_that_is_away) {
  begin({hourly("a")});
  start();
  ASSERT_TRUE(comes_about([&] { return state("a").name == "a"; }));
  switches_.down = true;
  const int looks = switches_.looks;
  ASSERT_TRUE(comes_about([&] { return switches_.looks > looks + 1; }));
  clock_.advance(1h);
  switches_.down = false;
  EXPECT_TRUE(comes_about_in_time([&] { return sent().size() == 1; }));
  stop();
}

TEST_F(SchedulesTest, A_paused_schedule_waits_and_goes_on_with_its_next_slot) {
  begin({hourly("a")});
  pass();
  ASSERT_TRUE(by_hand()->pause("a", {"ann", ""}, clock_.wall(), Deadline::after(patience)));
  clock_.advance(5h + 30min);
  pass();
  EXPECT_THAT(sent(), IsEmpty());
  ASSERT_TRUE(by_hand()->resume("a", {"ann", ""}, clock_.wall(), Deadline::after(patience)));
  pass();
  EXPECT_THAT(sent(), IsEmpty()) << "what passed meanwhile is not run";
  clock_.advance(30min);
  pass();
  EXPECT_THAT(sent(), ElementsAre("tick.a"));
}

TEST_F(SchedulesTest, The_relay_that_started_last_decides_what_a_schedule_is) {
  auto changed = hourly("a");
  changed.type = "tick.changed";
  begin({hourly("a")});
  pass();
  const auto newer = make({changed});
  ASSERT_TRUE(newer->run_once());
  clock_.advance(1h);
  pass();
  EXPECT_THAT(sent(), IsEmpty()) << "an older definition is left to nobody";
  ASSERT_TRUE(newer->run_once());
  pass();
  EXPECT_THAT(told_.of(NoticeKind::schedule_fired), SizeIs(1));
  EXPECT_EQ(told_.of(NoticeKind::schedule_fired)[0].event_type, "tick.changed");
}

TEST_F(SchedulesTest, A_schedule_that_left_the_configuration_runs_no_more) {
  begin({hourly("a"), hourly("b")});
  pass();
  begin({hourly("b")});
  clock_.advance(1h);
  pass();
  EXPECT_THAT(sent(), ElementsAre("tick.b"));
  EXPECT_EQ(state("a").name, "a") << "what is known of it stays";
}

TEST_F(SchedulesTest, A_database_that_forgot_a_schedule_learns_it_again) {
  begin({hourly("a")});
  pass();
  clock_.advance(1h);
  ASSERT_TRUE(by_hand()->forget("a", {"ann", ""}, clock_.wall(), Deadline::after(patience)));
  pass();
  EXPECT_EQ(state("a").created_at, clock_.wall());
  EXPECT_THAT(sent(), IsEmpty());
  clock_.advance(1h);
  pass();
  EXPECT_THAT(sent(), ElementsAre("tick.a"));
}

TEST_F(SchedulesTest, A_stop_before_the_start_and_in_the_middle_of_waiting_ends_the_loop) {
  for (int i = 0; i < 20; ++i) {
    options_.sleep = std::chrono::hours(1);  // it would wait for long
    begin({hourly("a")});
    if (i % 2 == 0) relay_->request_stop();
    const int looks = switches_.looks;
    start();
    if (i % 2 == 1) {
      ASSERT_TRUE(comes_about([&] { return switches_.looks > looks; }));
    }
    stop();
  }
}

}  // namespace
}  // namespace postrider
