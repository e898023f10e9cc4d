// Events become jobs, and jobs are run: a relay and a worker on one database, handlers in threads
// and in processes that die.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/handlers.hpp>
#include <postrider/operations.hpp>
#include <postrider/relay.hpp>
#include <postrider/runner/process.hpp>
#include <postrider/runner/thread.hpp>
#include <postrider/store/sqlite.hpp>
#include <postrider/testing/manual_clock.hpp>
#include <postrider/testing/memory_store.hpp>
#include <postrider/worker.hpp>

namespace postrider {
namespace {

using ::testing::ElementsAre;
using Status = DeliveryStatus;
using namespace std::chrono_literals;

// ThreadSanitizer has a thread of its own, and a process with threads may not fork its children.
#ifdef __SANITIZE_THREAD__
constexpr bool can_fork_children = false;
#else
constexpr bool can_fork_children = true;
#endif

class NoticeLog final : public Observer {
 public:
  void notice(const Notice& notice) override {
    const std::lock_guard lock(mutex_);
    notices_.push_back(notice);
  }
  std::vector<Notice> of(NoticeKind kind) {
    const std::lock_guard lock(mutex_);
    std::vector<Notice> found;
    for (const auto& notice : notices_)
      if (notice.kind == kind) found.push_back(notice);
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<Notice> notices_;
};

/// A migrated database, opened through the seams.
class ShopDatabase {
 public:
  virtual ~ShopDatabase() = default;
  virtual std::unique_ptr<Store> store() = 0;
  virtual std::unique_ptr<JobStore> jobs() = 0;
  virtual std::unique_ptr<Operations> operations() = 0;
};

class MemoryShop final : public ShopDatabase {
 public:
  std::unique_ptr<Store> store() override { return testing::make_memory_store(database_); }
  std::unique_ptr<JobStore> jobs() override { return testing::make_memory_job_store(database_); }
  std::unique_ptr<Operations> operations() override {
    return testing::make_memory_operations(database_);
  }

 private:
  std::shared_ptr<testing::MemoryDatabase> database_ = testing::make_memory_database();
};

class SqliteShop final : public ShopDatabase {
 public:
  SqliteShop() {
    std::string name = (std::filesystem::temp_directory_path() / "postrider-jobs-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    auto creating = options();
    creating.create = true;
    EXPECT_TRUE(make_sqlite_migrator(creating)->up(std::nullopt, Deadline::after(10s)));
  }
  ~SqliteShop() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<Store> store() override { return make_sqlite_store(options()); }
  std::unique_ptr<JobStore> jobs() override { return make_sqlite_job_store(options()); }
  std::unique_ptr<Operations> operations() override { return make_sqlite_operations(options()); }

 private:
  [[nodiscard]] SqliteOptions options() const {
    SqliteOptions options;
    options.path = (folder_ / "shop.db").string();
    return options;
  }
  std::filesystem::path folder_;
};

struct ShopCase {
  std::string name;
  std::function<std::unique_ptr<ShopDatabase>()> make;
};

class JobsEndToEnd : public ::testing::TestWithParam<ShopCase> {
 protected:
  JobsEndToEnd() : shop_(GetParam().make()) {
    options_.queues = {{"work", 1}};
    options_.concurrency = 4;
    options_.heartbeat = 100ms;
    options_.poll = 20ms;
  }
  ~JobsEndToEnd() override { stop(); }

  void add_route(const std::string& job, std::vector<milliseconds> delays = {},
                 OnWorkerDeath on_worker_death = OnWorkerDeath::fail) {
    JobPolicy policy;
    policy.job = job;
    policy.queue = "work";
    policy.on_worker_death = on_worker_death;
    policy.max_deaths = 2;
    auto route = job_route(job, {"order.placed"}, policy);
    route.retry_delays = std::move(delays);
    route.timeout = 60s;
    routes_.push_back(std::move(route));
  }
  /// Writes an event and has it routed.
  void place_order(const Clock& clock = system_clock()) {
    NewEvent event;
    event.type = "order.placed";
    event.payload = R"({"orderId":7})";
    ASSERT_TRUE(shop_->store()->add({&event, 1}, Deadline::after(10s)));
    std::vector<RouteBinding> bindings;
    for (const auto& route : routes_)
      bindings.push_back({route, nullptr});
    const auto random = seeded_random(1);
    Relay relay(shop_->store(), std::move(bindings), {}, clock, *random, notices_);
    const auto pass = relay.run_once();
    ASSERT_TRUE(pass) << describe(pass.error());
    EXPECT_TRUE(relay.close());
  }

  void start(const JobRunnerFactory& runner, const Clock& clock = system_clock()) {
    worker_ = std::make_unique<Worker>([this] { return shop_->jobs(); }, runner, options_, clock,
                                       *random_, notices_);
    thread_ = std::thread([this] {
      const auto report = worker_->run();
      EXPECT_TRUE(report) << describe(report.error());
    });
  }
  void start_threads(const Clock& clock = system_clock()) {
    start([this](AttemptDesk& desk) { return make_thread_runner(handlers_, 4, desk); }, clock);
  }
  void start_processes() {
    start([this](AttemptDesk& desk) { return make_process_runner(handlers_, 4, desk); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    worker_->request_stop();
    thread_.join();
    worker_.reset();
  }

  Delivery delivery(const std::string& route) {
    DeliveryFilter filter;
    filter.route = route;
    const auto page = shop_->operations()->deliveries(filter, std::nullopt, Deadline::after(10s));
    EXPECT_TRUE(page) << describe(page.error());
    EXPECT_EQ(page->deliveries.size(), 1U) << route;
    return page->deliveries.empty() ? Delivery{} : page->deliveries.front().delivery;
  }
  bool reaches(const std::string& route, Status status) {
    const auto until = Deadline::after(20s);
    while (delivery(route).status != status) {
      if (until.passed()) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  std::unique_ptr<ShopDatabase> shop_;
  std::vector<Route> routes_;
  WorkerOptions options_;
  Handlers handlers_;
  NoticeLog notices_;
  std::unique_ptr<Random> random_ = seeded_random(5);
  std::unique_ptr<Worker> worker_;
  std::thread thread_;
};

TEST_P(JobsEndToEnd, R_209_three_jobs_of_one_event_end_each_by_itself_one_by_a_kill) {
  if (!can_fork_children) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  add_route("ship");
  add_route("bill");
  add_route("mail");
  handlers_.bind("ship", [](const Event& event) {
    return event.payload == R"({"orderId":7})" ? JobOutcome::done() : JobOutcome::fail("payload");
  });
  handlers_.bind("bill", [] { throw std::runtime_error("canary"); });
  handlers_.bind("mail", [] { raise(SIGKILL); });
  place_order();
  start_processes();
  EXPECT_TRUE(reaches("ship", Status::completed));
  EXPECT_TRUE(reaches("bill", Status::failed));
  EXPECT_TRUE(reaches("mail", Status::failed));
  EXPECT_EQ(delivery("bill").failure_code, job_code::handler_error);
  EXPECT_EQ(delivery("bill").failure_detail.find("canary"), std::string::npos);
  EXPECT_EQ(delivery("mail").failure_code, job_code::worker_died);
  EXPECT_EQ(delivery("mail").failure_detail, "signal 9");
  stop();
  EXPECT_EQ(notices_.of(NoticeKind::worker_died).size(), 1U);
}

TEST_P(JobsEndToEnd, JT_05_a_job_that_kills_its_worker_runs_three_times_under_a_cap_of_two) {
  if (!can_fork_children) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  add_route("mail", std::vector<milliseconds>(10, 1ms), OnWorkerDeath::retry);
  handlers_.bind("mail", [] { std::abort(); });
  place_order();
  start_processes();
  EXPECT_TRUE(reaches("mail", Status::failed));
  stop();
  EXPECT_EQ(delivery("mail").failure_code, job_code::worker_died);
  EXPECT_EQ(notices_.of(NoticeKind::worker_died).size(), 3U);
}

TEST_P(JobsEndToEnd, JT_04_without_retries_a_job_that_kills_its_worker_runs_once) {
  if (!can_fork_children) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  add_route("mail", {}, OnWorkerDeath::retry);
  handlers_.bind("mail", [] { _exit(0); });
  place_order();
  start_processes();
  EXPECT_TRUE(reaches("mail", Status::failed));
  stop();
  EXPECT_EQ(delivery("mail").failure_code, job_code::exited_without_result);
  EXPECT_EQ(notices_.of(NoticeKind::worker_died).size(), 1U);
}

TEST_P(JobsEndToEnd, JT_16_a_job_survives_three_deploys_that_interrupt_it) {
  add_route("print", {1ms});
  options_.grace = 0ms;
  std::atomic<int> starts = 0;
  std::atomic<bool> last = false;
  handlers_.bind("print", [&](Attempt& attempt) {
    ++starts;
    if (attempt.number() != 1) return JobOutcome::fail("an_attempt_was_used");
    while (!attempt.stop_requested() && !last)
      std::this_thread::yield();
    return last ? JobOutcome::done() : JobOutcome::cancelled();
  });
  place_order();
  for (int deploy = 1; deploy <= 3; ++deploy) {
    start_threads();
    while (starts < deploy)
      std::this_thread::yield();
    stop();
    EXPECT_EQ(delivery("print").status, Status::pending);
  }
  last = true;
  start_threads();
  EXPECT_TRUE(reaches("print", Status::completed));
}

TEST_P(JobsEndToEnd, R_195_the_last_attempt_is_told_by_the_delays_of_the_row) {
  testing::ManualClock clock;
  add_route("print", {60s, 120s});
  std::mutex mutex;
  std::vector<bool> flags;
  handlers_.bind("print", [&](LastAttempt last) {
    const std::lock_guard lock(mutex);
    flags.push_back(last.value);
    throw RetryableError("jammed");
  });
  const auto attempts = [&] {
    const std::lock_guard lock(mutex);
    return flags.size();
  };
  options_.heartbeat = 5s;
  // The store's own clock writes the event; everything else goes by the given one.
  clock.advance(system_clock().wall() - clock.wall());
  place_order(clock);
  start_threads(clock);
  const auto until = Deadline::after(20s);
  while (attempts() < 3 && !until.passed()) {
    clock.advance(1s);
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(reaches("print", Status::failed));
  stop();
  EXPECT_THAT(flags, ElementsAre(false, false, true));
  EXPECT_EQ(delivery("print").failure_code, "jammed");
}

TEST_P(JobsEndToEnd, A_job_that_is_written_while_the_worker_waits_is_run) {
  add_route("ship");
  handlers_.bind("ship", [] {});
  options_.poll = std::chrono::minutes(1);
  start_threads();
  std::this_thread::sleep_for(50ms);
  place_order();
  EXPECT_TRUE(reaches("ship", Status::completed)) << "nobody looks for a minute";
}

INSTANTIATE_TEST_SUITE_P(
    Stores, JobsEndToEnd,
    ::testing::Values(ShopCase{"memory", [] { return std::make_unique<MemoryShop>(); }},
                      ShopCase{"sqlite", [] { return std::make_unique<SqliteShop>(); }}),
    [](const auto& each) { return each.param.name; });

// ---- a worker that is killed

TEST(JobsAfterAKill, F130_JT_12_a_restart_on_the_same_host_finds_the_jobs_of_the_one_before) {
  SqliteShop shop;
  NoticeLog notices;
  JobPolicy policy;
  policy.job = "print";
  policy.queue = "work";
  auto route = job_route("print", {"order.placed"}, policy);
  {
    NewEvent event;
    event.type = "order.placed";
    ASSERT_TRUE(shop.store()->add({&event, 1}, Deadline::after(10s)));
    std::vector<RouteBinding> bindings;
    bindings.push_back({route, nullptr});
    const auto random = seeded_random(1);
    Relay relay(shop.store(), std::move(bindings), {}, system_clock(), *random, notices);
    ASSERT_TRUE(relay.run_once());
  }
  WorkerOptions options;
  options.queues = {{"work", 1}};
  options.dead_after = std::chrono::minutes(30);
  std::array<int, 2> line{};
  ASSERT_EQ(pipe(line.data()), 0);
  const auto killed = fork();
  if (killed == 0) {
    Handlers handlers;
    handlers.bind("print", [&] {
      (void)!write(line[1], "x", 1);
      while (true)
        pause();
    });
    const auto random = system_random();
    Worker worker([&] { return shop.jobs(); },
                  [&](AttemptDesk& desk) { return make_thread_runner(handlers, 1, desk); }, options,
                  system_clock(), *random, notices);
    (void)worker.run();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(line[0], &byte, 1), 1);
  ASSERT_EQ(kill(killed, SIGKILL), 0);
  ASSERT_EQ(waitpid(killed, nullptr, 0), killed);
  close(line[0]);
  close(line[1]);

  const auto jobs = shop.jobs();
  LostRequest request;
  request.dead_after = options.dead_after;
  request.limit = 10;
  EXPECT_TRUE(jobs->lost(request, Deadline::after(10s))->attempts.empty());

  Handlers handlers;
  handlers.bind("print", [] {});
  const auto random = system_random();
  Worker next([&] { return shop.jobs(); },
              [&](AttemptDesk& desk) { return make_thread_runner(handlers, 1, desk); }, options,
              system_clock(), *random, notices);
  std::thread thread([&] { EXPECT_TRUE(next.run()); });
  const auto until = Deadline::after(10s);
  std::vector<LostAttempt> lost;
  while (lost.empty() && !until.passed())
    lost = jobs->lost(request, Deadline::after(10s))->attempts;
  next.request_stop();
  thread.join();
  ASSERT_EQ(lost.size(), 1U) << "at once, and not after dead_after";
  EXPECT_TRUE(lost[0].worker_died);
  EXPECT_EQ(lost[0].job.job, "print");
}

}  // namespace
}  // namespace postrider
