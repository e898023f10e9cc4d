// The relay as the keeper of jobs: what it ends that nobody else ends, and what it hands to
// brokers, with all its threads.
#include <postrider/relay.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/operations.hpp>
#include <postrider/testing/memory_publisher.hpp>
#include <postrider/testing/memory_store.hpp>

#include "engine/job_table.hpp"

namespace postrider {
namespace {

using testing::Fault;
using testing::FaultScript;
using testing::Journal;
using Status = DeliveryStatus;
using namespace std::chrono_literals;

constexpr milliseconds patience{10'000};

/// Bounded, for what another thread does.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = Deadline::after(patience);
  while (!condition()) {
    if (until.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Relay and keeper tell from threads of their own; this list locks nothing, as the relay promises
/// to tell one thing at a time.
class NoticeList final : public Observer {
 public:
  void notice(const Notice& notice) override { notices.push_back(notice); }
  [[nodiscard]] const Notice* find(NoticeKind kind) const {
    for (const auto& notice : notices)
      if (notice.kind == kind) return &notice;
    return nullptr;
  }
  std::vector<Notice> notices;  // read only after the relay's threads have ended
};

/// Takes tasks and keeps their outcomes back until it is told to answer.
struct Counter {
  std::atomic<std::size_t> taken = 0;
  std::atomic<bool> open = false;
};
class SlowCounter final : public Publisher {
 public:
  explicit SlowCounter(Counter& counter) : counter_(counter) {}
  PublisherTraits traits() const override {
    PublisherTraits traits;
    traits.window = 10;
    return traits;
  }
  Result<void> submit(std::span<const Message> messages, Deadline) override {
    for (const auto& message : messages)
      outcomes_.push_back({message.attempt, Outcome::confirmed()});
    counter_.taken += messages.size();
    return {};
  }
  std::vector<MessageOutcome> poll(Deadline) override {
    std::this_thread::yield();
    if (!counter_.open) return {};
    return std::exchange(outcomes_, {});
  }
  void wake() noexcept override {}
  std::vector<MessageOutcome> close(Deadline) override { return {}; }

 private:
  Counter& counter_;
  std::vector<MessageOutcome> outcomes_;
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

/// The worker of a test: calls of a job store, without threads.
class Hand {
 public:
  explicit Hand(std::unique_ptr<JobStore> store) : store_(std::move(store)) {}

  void sign_in() {
    HeartbeatRequest request;
    request.worker.id = id_;
    request.worker.name = "hand";
    request.worker.host = "here";
    request.worker.queues = {"work"};
    ASSERT_TRUE(store_->heartbeat(request, Deadline::after(patience)));
  }
  std::vector<Task> take() {
    TakeRequest request;
    request.worker = id_;
    request.queues = {{"work", 10}};
    request.limit = 10;
    auto batch = store_->take(request, Deadline::after(patience));
    EXPECT_TRUE(batch) << describe(batch.error());
    return batch ? batch->tasks : std::vector<Task>{};
  }
  StartAnswer start(const Delivery& delivery) {
    StartRequest request;
    request.worker = id_;
    request.delivery_id = delivery.id;
    request.dispatch_id = delivery.dispatch_id.value();
    request.job = "print";
    return store_->start(request, Deadline::after(patience)).value();
  }
  void die() { EXPECT_TRUE(store_->declare_dead(id_, std::nullopt, Deadline::after(patience))); }

 private:
  static WorkerId some_id() {
    std::array<std::uint8_t, 16> bytes{};
    bytes[15] = 7;
    return WorkerId(Uuid(bytes));
  }
  const WorkerId id_ = some_id();
  std::unique_ptr<JobStore> store_;
};

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    options_.sleep = 1ms;
    options_.probe_least = 1ms;
    options_.probe_most = 5ms;
    JobPolicy policy;
    policy.job = "print";
    policy.queue = "work";
    route_ = job_route("print", {"order.placed"}, policy);
    route_.retry_delays = {1h};
  }
  ~KeeperTest() override { stop(); }

  /// Writes events; each becomes one job.
  void place_orders(std::size_t orders) {
    std::vector<NewEvent> events(orders);
    for (auto& event : events) {
      event.type = "order.placed";
      event.payload = R"({"card":"canary"})";
    }
    ASSERT_TRUE(testing::make_memory_store(database_)->add(events, Deadline::after(patience)));
  }
  /// Without a publisher, workers take their tasks from the database.
  Relay& make(std::unique_ptr<Publisher> broker = nullptr) {
    return make_with(testing::make_memory_job_store(database_), std::move(broker));
  }
  Relay& make_with(std::unique_ptr<JobStore> jobs, std::unique_ptr<Publisher> broker = nullptr) {
    route_.destination = broker ? "test:" : "";
    std::vector<RouteBinding> routes;
    routes.push_back({route_, std::move(broker)});
    relay_ =
        std::make_unique<Relay>(testing::make_memory_store(database_), std::move(routes), options_,
                                system_clock(), *random_, notices_, nullptr, std::move(jobs));
    return *relay_;
  }
  void pass() {
    const auto report = relay_->run_once();
    ASSERT_TRUE(report) << describe(report.error());
  }
  void start() {
    thread_ = std::thread([this] { loop_ = relay_->run(); });
  }
  /// Stops what runs and says how it ended.
  LoopReport stop() {
    if (!thread_.joinable()) return {};
    relay_->request_stop();
    thread_.join();
    EXPECT_TRUE(*loop_) << describe(loop_->error());
    return *loop_ ? loop_->value() : LoopReport{};
  }

  std::unique_ptr<Publisher> broker() { return testing::make_memory_publisher(journal_); }
  std::unique_ptr<Publisher> flaky(FaultScript script) {
    return testing::make_flaky_publisher(broker(), std::move(script));
  }
  Hand hand() { return Hand(testing::make_memory_job_store(database_)); }
  std::vector<Delivery> jobs() {
    DeliveryFilter filter;
    filter.route = "print";
    const auto page = testing::make_memory_operations(database_)->deliveries(
        filter, std::nullopt, Deadline::after(patience));
    EXPECT_TRUE(page) << describe(page.error());
    std::vector<Delivery> found;
    for (const auto& listed : page->deliveries)
      found.push_back(listed.delivery);
    return found;
  }
  Delivery only_job() {
    const auto found = jobs();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Delivery{} : found.front();
  }
  std::size_t count(Status status) {
    std::size_t found = 0;
    for (const auto& job : jobs())
      found += job.status == status ? 1 : 0;
    return found;
  }

  std::shared_ptr<testing::MemoryDatabase> database_ = testing::make_memory_database();
  std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
  std::unique_ptr<Random> random_ = seeded_random(3);
  NoticeList notices_;
  RelayOptions options_;
  Route route_;
  Counter counter_;          // of publishers and
  testing::JobTable table_;  // of stores that the relay owns
  std::unique_ptr<Relay> relay_;
  std::optional<Result<LoopReport>> loop_;
  std::thread thread_;
};

TEST_F(KeeperTest, R_209_a_pass_ends_the_job_of_a_worker_that_was_seen_to_be_gone) {
  make();
  place_orders(1);
  pass();
  auto worker = hand();
  worker.sign_in();
  ASSERT_EQ(worker.take().size(), 1U);
  pass();
  EXPECT_EQ(only_job().status, Status::dispatched) << "its worker lives";

  worker.die();
  pass();

  EXPECT_EQ(only_job().status, Status::failed);
  EXPECT_EQ(only_job().failure_code, job_code::worker_died);
  const auto* const told = notices_.find(NoticeKind::worker_died);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->job, "print");
}

TEST_F(KeeperTest, R_210_a_loop_ends_the_job_of_a_worker_that_says_nothing_any_more) {
  options_.worker_dead_after = 100ms;
  route_.job->on_worker_death = OnWorkerDeath::retry;
  make();
  place_orders(1);
  pass();
  auto worker = hand();
  worker.sign_in();
  ASSERT_EQ(worker.take().size(), 1U);
  start();
  EXPECT_TRUE(eventually([&] { return only_job().attempts == 1; }));
  EXPECT_TRUE(stop().clean);
  EXPECT_EQ(only_job().status, Status::pending) << "this route retries after a death";
  EXPECT_EQ(only_job().failure_code, job_code::worker_died);
  EXPECT_NE(notices_.find(NoticeKind::worker_died), nullptr);
}

TEST_F(KeeperTest, R_200_a_loop_ends_a_job_whose_deadline_has_passed) {
  route_.timeout = 100ms;
  make();
  place_orders(1);
  pass();
  auto worker = hand();
  worker.sign_in();
  ASSERT_EQ(worker.take().size(), 1U);
  start();
  EXPECT_TRUE(eventually([&] { return only_job().attempts == 1; }));
  EXPECT_TRUE(stop().clean);
  EXPECT_EQ(only_job().failure_code, job_code::timed_out);
}

TEST_F(KeeperTest, R_174_a_pass_hands_tasks_to_the_broker_and_a_worker_starts_them) {
  make(broker());
  place_orders(1);
  pass();

  const auto sent = journal_->accepted();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0]->type, "print");
  const auto job = only_job();
  EXPECT_EQ(job.status, Status::dispatched);
  EXPECT_NE(sent[0]->payload.find(job.id.value().to_string()), std::string::npos);
  EXPECT_NE(sent[0]->payload.find(job.dispatch_id->value().to_string()), std::string::npos);
  EXPECT_EQ(sent[0]->payload.find("canary"), std::string::npos) << "the event stays at home";

  auto worker = hand();
  worker.sign_in();
  EXPECT_EQ(worker.start(job).kind, StartAnswer::Kind::started);
  EXPECT_TRUE(worker.take().empty()) << "tasks of a broker route come from the broker only";
}

TEST_F(KeeperTest, A_loop_hands_out_what_is_written_while_it_runs_each_job_once) {
  make(broker());
  start();
  for (int i = 0; i < 5; ++i)
    place_orders(40);
  EXPECT_TRUE(eventually([&] { return journal_->accepted().size() == 200; }));
  EXPECT_TRUE(stop().clean);
  EXPECT_EQ(journal_->accepted().size(), 200U);
}

TEST_F(KeeperTest, R_203_a_refused_hand_over_uses_an_attempt_of_that_job_alone) {
  make(flaky({{2, Fault::refuse}}));
  place_orders(3);
  pass();
  EXPECT_EQ(journal_->accepted().size(), 2U);
  EXPECT_EQ(count(Status::dispatched), 2U);
  ASSERT_EQ(count(Status::pending), 1U);
  for (const auto& job : jobs()) {
    if (job.status != Status::pending) continue;
    EXPECT_EQ(job.attempts, 1);
    EXPECT_EQ(job.failure_code, job_code::send_refused);
  }
}

TEST_F(KeeperTest, R_203_the_last_refused_hand_over_is_a_dead_letter) {
  route_.retry_delays = {};
  make(flaky({{1, Fault::refuse}}));
  place_orders(1);
  start();
  EXPECT_TRUE(eventually([&] { return count(Status::failed) == 1; }));
  EXPECT_TRUE(stop().clean);
  EXPECT_EQ(only_job().failure_code, job_code::send_refused);
}

TEST_F(KeeperTest, An_outage_of_the_broker_uses_no_attempt) {
  journal_->set_down(true);
  make(broker());
  place_orders(20);
  start();
  EXPECT_TRUE(eventually([&] { return jobs().size() == 20; }));
  journal_->set_down(false);
  EXPECT_TRUE(eventually([&] { return journal_->accepted().size() == 20; }));
  EXPECT_TRUE(stop().clean);
  for (const auto& job : jobs()) {
    EXPECT_EQ(job.status, Status::dispatched);
    EXPECT_EQ(job.attempts, 0);
  }
}

TEST_F(KeeperTest, A_publisher_that_throws_gives_its_tasks_back_and_its_text_is_not_repeated) {
  make(std::make_unique<ThrowingPublisher>());
  place_orders(1);
  pass();
  EXPECT_EQ(only_job().status, Status::pending);
  EXPECT_EQ(only_job().attempts, 0);
  EXPECT_EQ(only_job().failure_detail.find("secret"), std::string::npos);
  EXPECT_NE(notices_.find(NoticeKind::route_paused), nullptr);
}

TEST_F(KeeperTest, A_stop_waits_for_tasks_in_flight) {
  make(std::make_unique<SlowCounter>(counter_));
  place_orders(3);
  start();
  ASSERT_TRUE(eventually([&] { return counter_.taken == 3; }));
  relay_->request_stop();
  counter_.open = true;
  EXPECT_TRUE(stop().clean);
  EXPECT_EQ(count(Status::dispatched), 3U) << "they were handed over";
}

TEST_F(KeeperTest, A_stop_waits_no_longer_than_drain_timeout_and_takes_back_what_nobody_answered) {
  options_.drain_timeout = 50ms;
  make(std::make_unique<SlowCounter>(counter_));
  place_orders(3);
  start();
  ASSERT_TRUE(eventually([&] { return counter_.taken == 3; }));
  const auto loop = stop();
  EXPECT_FALSE(loop.clean);
  EXPECT_EQ(loop.left_in_flight, 3U);
  ASSERT_EQ(count(Status::pending), 3U) << "the next relay hands them out";
  for (const auto& job : jobs())
    EXPECT_EQ(job.attempts, 0);
}

TEST_F(KeeperTest, What_a_person_has_to_mend_ends_the_loop) {
  table_.fail(Error{ErrorCode::permission_denied, Disposition::stop, "no UPDATE.", "test", ""});
  make_with(std::make_unique<testing::TableJobStore>(table_));
  const auto loop = relay_->run();
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.error().code, ErrorCode::permission_denied);
  EXPECT_FALSE(relay_->run_once());
}

TEST_F(KeeperTest, An_outage_of_the_job_store_stops_no_loop) {
  table_.fail(Error{ErrorCode::unavailable, Disposition::retry, "away.", "test", ""});
  make_with(std::make_unique<testing::TableJobStore>(table_));
  place_orders(1);
  start();
  EXPECT_TRUE(eventually([&] { return table_.looks > 1 && jobs().size() == 1; }))
      << "events are routed meanwhile";
  table_.fail(std::nullopt);
  const auto before = table_.looks.load();
  EXPECT_TRUE(eventually([&] { return table_.looks > before + 1; }));
  EXPECT_TRUE(stop().clean);
}

TEST_F(KeeperTest, A_right_that_is_lost_while_it_runs_is_told_once_and_survived) {
  make_with(std::make_unique<testing::TableJobStore>(table_));
  start();
  ASSERT_TRUE(eventually([&] { return table_.looks > 1; }));
  table_.fail(Error{ErrorCode::permission_denied, Disposition::stop, "no UPDATE.", "test", ""});
  auto before = table_.looks.load();
  EXPECT_TRUE(eventually([&] { return table_.looks > before + 2; }));
  table_.fail(std::nullopt);
  before = table_.looks.load();
  EXPECT_TRUE(eventually([&] { return table_.looks > before + 1; }));
  EXPECT_TRUE(stop().clean);
  std::size_t told = 0;
  for (const auto& notice : notices_.notices)
    told += notice.kind == NoticeKind::store_failed ? 1 : 0;
  EXPECT_EQ(told, 1U);
  EXPECT_NE(notices_.find(NoticeKind::store_recovered), nullptr);
}

TEST_F(KeeperTest, A_stop_during_an_outage_is_no_failure) {
  table_.fail(Error{ErrorCode::unavailable, Disposition::retry, "away.", "test", ""});
  make_with(std::make_unique<testing::TableJobStore>(table_));
  start();
  EXPECT_TRUE(eventually([&] { return table_.looks > 1; }));
  EXPECT_TRUE(stop().clean);
}

TEST_F(KeeperTest, Starting_and_stopping_at_any_moment_hands_out_each_job_once) {
  place_orders(200);
  for (int i = 0; i < 30; ++i) {
    make(broker());
    start();
    for (int spin = 0; spin < i * 20; ++spin)
      std::this_thread::yield();
    EXPECT_TRUE(stop().clean);
  }
  make(broker());
  start();
  EXPECT_TRUE(eventually([&] { return journal_->accepted().size() == 200; }));
  EXPECT_TRUE(stop().clean);
  EXPECT_EQ(journal_->accepted().size(), 200U);
}

}  // namespace
}  // namespace postrider
