// A shop that ships orders by jobs; the regions between the brackets are in docs/learn/jobs.md.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/handlers.hpp>
#include <postrider/runner/thread.hpp>
#include <postrider/worker.hpp>

#include "engine/job_table.hpp"

namespace shop {

using postrider::Attempt;
using postrider::Handlers;
using postrider::JobOutcome;
using postrider::LastAttempt;
using postrider::Result;
using postrider::RetryableError;

// [handlers]
struct OrderPlaced {
  std::int64_t orderId = 0;
  std::int64_t totalCents = 0;
};
POSTRIDER_EVENT(OrderPlaced, "order.placed", orderId, totalCents)

class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual bool book(std::int64_t order, const std::string& request_id) = 0;
};

Handlers make_handlers(Carrier& carrier) {
  Handlers handlers;
  handlers.inject<Carrier>(carrier);
  handlers.bind("ship_order", [](const OrderPlaced& order, postrider::DeliveryId delivery,
                                 Carrier& by, LastAttempt last) {
    // The same id at every attempt: the carrier books one that it knows only once.
    if (by.book(order.orderId, delivery.value().to_string())) return JobOutcome::done();
    if (last) return JobOutcome::fail("carrier_full", "book it by hand");
    throw RetryableError("carrier_full", std::chrono::minutes(10));
  });
  return handlers;
}
// [handlers]

std::vector<std::string> pages_of_catalogue() {
  return {"a", "b", "c", "d"};
}
std::vector<std::string> printed;
void print(const std::string& page) {
  printed.push_back(page);
}

// [long-job]
JobOutcome print_catalogue(Attempt& attempt) {
  const auto pages = pages_of_catalogue();
  auto page = attempt.last_checkpoint().empty() ? 0 : std::stoul(attempt.last_checkpoint());
  for (; page < pages.size(); ++page) {
    if (attempt.stop_requested()) return JobOutcome::cancelled();
    const auto state = attempt.extend(std::chrono::minutes(5));
    if (state.ok() && !state->current) return JobOutcome::cancelled();
    print(pages[page]);
    (void)attempt.checkpoint(std::to_string(page + 1));
    (void)attempt.progress(static_cast<int>(100 * (page + 1) / pages.size()));
  }
  return JobOutcome::done();
}
// [long-job]

class SilentObserver final : public postrider::Observer {
 public:
  void notice(const postrider::Notice& /*notice*/) override {}
};

// [worker]
/// Works beside the service, in threads of its own, until `stop`.
class ShippingDesk {
 public:
  ShippingDesk(const postrider::JobStoreFactory& stores, const Handlers& handlers)
      : worker_(
            stores,
            [&](postrider::AttemptDesk& desk) {
              return postrider::make_thread_runner(handlers, 4, desk);
            },
            options(), postrider::system_clock(), *random_, observer_),
        thread_([this] { report_ = worker_.run(); }) {}

  /// Waits for what runs, at most `grace` and `hard_grace`.
  Result<postrider::WorkerReport> stop() {
    worker_.request_stop();
    thread_.join();
    return report_;
  }

 private:
  static postrider::WorkerOptions options() {
    postrider::WorkerOptions options;
    options.name = "shipping-desk";
    options.queues = {{"shipping", 3}, {"printing", 1}};
    options.concurrency = 4;
    return options;
  }

  std::unique_ptr<postrider::Random> random_ = postrider::system_random();
  SilentObserver observer_;
  Result<postrider::WorkerReport> report_ = postrider::WorkerReport{};
  postrider::Worker worker_;
  std::thread thread_;
};
// [worker]

namespace {

using postrider::DeliveryStatus;
using postrider::Event;
using postrider::Task;

class BookList final : public Carrier {
 public:
  bool book(std::int64_t order, const std::string& request_id) override {
    booked.emplace_back(order, request_id);
    return has_room;
  }
  std::vector<std::pair<std::int64_t, std::string>> booked;
  bool has_room = true;
};

/// Says that an attempt is current until it was asked so often.
class CountingDesk final : public postrider::AttemptDesk {
 public:
  Result<postrider::AttemptState> touch(postrider::AttemptUpdate update) override {
    if (update.checkpoint) checkpoint = *update.checkpoint;
    if (update.percent) percent = *update.percent;
    return postrider::AttemptState{left-- > 0, false, std::chrono::minutes(5)};
  }
  int left = 1000;
  std::string checkpoint;
  int percent = 0;
};

Task task_for(std::string job, std::string payload) {
  Event event;
  event.type = "order.placed";
  event.payload = std::move(payload);
  Task task;
  task.job.job = std::move(job);
  task.job.retry_delays = {std::chrono::minutes(1)};
  task.event = std::make_shared<const Event>(std::move(event));
  return task;
}

TEST(WorkerGuide, The_order_is_booked_once_and_retried_until_the_last_attempt) {
  BookList carrier;
  CountingDesk desk;
  const auto handlers = make_handlers(carrier);
  ASSERT_TRUE(handlers.validate().empty());
  auto task = task_for("ship_order", R"({"orderId":7,"totalCents":2500})");
  const auto run = [&] {
    Attempt attempt(task, desk, {});
    return handlers.run(task, attempt);
  };
  EXPECT_EQ(run(), JobOutcome::done());
  carrier.has_room = false;
  EXPECT_EQ(run(), JobOutcome::retry_in(std::chrono::minutes(10), "carrier_full"));
  task.job.attempts = 1;
  EXPECT_EQ(run().kind, JobOutcome::Kind::fail);
  ASSERT_EQ(carrier.booked.size(), 3U);
  EXPECT_EQ(carrier.booked[0].first, 7);
  EXPECT_EQ(carrier.booked[0].second, carrier.booked[2].second);
}

TEST(WorkerGuide, The_next_attempt_goes_on_where_the_last_one_stopped) {
  CountingDesk desk;
  desk.left = 6;  // two pages, then it is another attempt's
  auto task = task_for("print_catalogue", "{}");
  Attempt first(task, desk, {});
  EXPECT_EQ(print_catalogue(first), JobOutcome::cancelled());
  EXPECT_EQ(printed, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(desk.percent, 50);

  desk.left = 1000;
  task.checkpoint = desk.checkpoint;
  Attempt second(task, desk, {});
  EXPECT_EQ(print_catalogue(second), JobOutcome::done());
  EXPECT_EQ(printed, (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(WorkerGuide, A_worker_in_a_service_runs_jobs_and_stops) {
  postrider::testing::JobTable table;
  const auto job = table.add("count");
  std::atomic<bool> ran = false;
  Handlers handlers;
  handlers.bind("count", [&] { ran = true; });
  ShippingDesk desk([&] { return std::make_unique<postrider::testing::TableJobStore>(table); },
                    handlers);
  const auto until = postrider::Deadline::after(std::chrono::seconds(10));
  while (!ran && !until.passed())
    std::this_thread::yield();
  const auto report = desk.stop();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->clean());
  EXPECT_EQ(table.row(job).status, DeliveryStatus::completed);
}

}  // namespace
}  // namespace shop
