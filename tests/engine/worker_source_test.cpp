// A worker with a source of tasks and all its threads: order of acknowledgements, losses, stops.
#include <postrider/worker.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <postrider/handlers.hpp>
#include <postrider/runner/thread.hpp>

#include "engine/job_table.hpp"

namespace postrider {
namespace {

using Status = DeliveryStatus;
using testing::JobTable;
using testing::TableJobStore;
using namespace std::chrono_literals;

constexpr milliseconds patience{30'000};

template <class Condition>
bool eventually(Condition condition) {
  const auto until = Deadline::after(patience);
  while (!condition()) {
    if (until.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A broker in memory: one queue, and switches for what a network can do.
class QueueInMemory {
 public:
  void send(Ticket ticket) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(ticket));
    changed_.notify_all();
  }
  void lose_connection() {
    const std::lock_guard lock(mutex_);
    end_connection();
    changed_.notify_all();
  }
  [[nodiscard]] std::size_t left() {
    const std::lock_guard lock(mutex_);
    return queue_.size() + unacknowledged_.size();
  }

  std::atomic<bool> hangs = false;  ///< `open` does not come back until it is cut
  std::atomic<int> opened = 0;
  std::atomic<int> opening = 0;
  std::atomic<int> early = 0;  ///< acknowledged before its end was recorded
  /// Whether the job of a ticket has ended in the table.
  std::function<bool(const Ticket&)> has_ended;

 private:
  friend class SourceInMemory;

  void end_connection() {
    is_open_ = false;
    for (auto& [number, ticket] : unacknowledged_)
      queue_.push_front(ticket);
    unacknowledged_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Ticket> queue_;
  std::map<std::uint64_t, Ticket> unacknowledged_;
  bool is_open_ = false;
  std::uint64_t connection_ = 0;
  std::uint64_t last_ = 0;
};

class SourceInMemory final : public TaskSource {
 public:
  explicit SourceInMemory(QueueInMemory& queue) : queue_(queue) {}

  TaskSourceTraits traits() const override { return {"memory"}; }
  Result<void> open(std::size_t prefetch, Deadline) override {
    ++queue_.opening;
    std::unique_lock lock(queue_.mutex_);
    while (queue_.hangs && !cut_)
      queue_.changed_.wait(lock);
    if (cut_) return lost();
    queue_.end_connection();
    queue_.is_open_ = true;
    ++queue_.connection_;
    prefetch_ = prefetch;
    ++queue_.opened;
    return {};
  }
  Result<TicketBatch> poll(Deadline deadline) override {
    std::unique_lock lock(queue_.mutex_);
    for (;;) {
      if (!queue_.is_open_ || cut_) return lost();
      auto batch = offer();
      if (!batch.tickets.empty() || std::exchange(woken_, false) || deadline.passed()) {
        return batch;
      }
      queue_.changed_.wait_for(lock, deadline.remaining());
    }
  }
  Result<void> acknowledge(std::span<const TicketTag> tags) override {
    const std::lock_guard lock(queue_.mutex_);
    if (!queue_.is_open_) return lost();
    for (const auto& tag : tags) {
      const auto found = queue_.unacknowledged_.find(tag.number);
      if (tag.connection != queue_.connection_ || found == queue_.unacknowledged_.end()) continue;
      if (!queue_.has_ended(found->second)) ++queue_.early;
      queue_.unacknowledged_.erase(found);
    }
    return {};
  }
  Result<void> cancel(Deadline) override {
    const std::lock_guard lock(queue_.mutex_);
    prefetch_ = 0;
    return {};
  }
  void close(Deadline) noexcept override {
    const std::lock_guard lock(queue_.mutex_);
    queue_.end_connection();
  }
  void wake() noexcept override { ring(woken_); }
  void cut() noexcept override { ring(cut_); }

 private:
  static Error lost() {
    return {ErrorCode::unavailable, Disposition::retry, "the connection is gone", "test", ""};
  }
  TicketBatch offer() {
    TicketBatch batch;
    while (!queue_.queue_.empty() && queue_.unacknowledged_.size() < prefetch_) {
      auto ticket = queue_.queue_.front();
      queue_.queue_.pop_front();
      ticket.tag = {queue_.connection_, ++queue_.last_};
      queue_.unacknowledged_.emplace(ticket.tag.number, ticket);
      batch.tickets.push_back(std::move(ticket));
    }
    return batch;
  }
  void ring(bool& flag) {
    const std::lock_guard lock(queue_.mutex_);
    flag = true;
    queue_.changed_.notify_all();
  }

  QueueInMemory& queue_;
  std::size_t prefetch_ = 0;
  bool woken_ = false;  // under the queue's mutex, as is
  bool cut_ = false;
};

class NoticeList final : public Observer {
 public:
  void notice(const Notice& notice) override {
    const std::lock_guard lock(mutex_);
    ++counts_[notice.kind];
  }
  [[nodiscard]] int count(NoticeKind kind) {
    const std::lock_guard lock(mutex_);
    return counts_[kind];
  }

 private:
  std::mutex mutex_;
  std::map<NoticeKind, int> counts_;
};

class WorkerSource : public ::testing::Test {
 protected:
  WorkerSource() {
    options_.concurrency = 4;
    options_.poll = 10ms;
    queue_.has_ended = [this](const Ticket& ticket) {
      return table_.row(ticket.delivery_id).status != Status::dispatched;
    };
  }
  ~WorkerSource() override { finish(); }

  Worker& start() {
    worker_ =
        std::make_unique<Worker>([this] { return std::make_unique<TableJobStore>(table_); },
                                 [this](AttemptDesk& desk) {
                                   return make_thread_runner(handlers_, options_.concurrency, desk);
                                 },
                                 options_, system_clock(), *random_, observer_,
                                 [this] { return std::make_unique<SourceInMemory>(queue_); });
    thread_ = std::thread([this] { result_ = worker_->run(); });
    return *worker_;
  }
  WorkerReport finish() {
    if (!thread_.joinable()) return {};
    worker_->request_stop();
    thread_.join();
    EXPECT_TRUE(result_->ok()) << describe(result_->error());
    return result_->ok() ? result_->value() : WorkerReport{};
  }
  /// A job whose task is in the queue.
  DeliveryId send() {
    const auto ticket = table_.add_handed_out("print");
    queue_.send(ticket);
    return ticket.delivery_id;
  }

  JobTable table_;
  QueueInMemory queue_;
  WorkerOptions options_;
  Handlers handlers_;
  NoticeList observer_;
  std::unique_ptr<Random> random_ = seeded_random(5);
  std::unique_ptr<Worker> worker_;
  std::optional<Result<WorkerReport>> result_;
  std::thread thread_;
};

TEST_F(WorkerSource, Every_task_is_run_once_and_acknowledged_after_its_record) {
  std::atomic<int> ran = 0;
  handlers_.bind("print", [&] { ++ran; });
  start();
  for (int i = 0; i < 200; ++i)
    send();
  EXPECT_TRUE(eventually([&] { return queue_.left() == 0; }));
  const auto report = finish();
  EXPECT_EQ(report.completed, 200U);
  EXPECT_EQ(ran, 200);
  EXPECT_EQ(queue_.early, 0);
}

TEST_F(WorkerSource, A_worker_may_have_queues_too_and_without_both_it_says_what_to_do) {
  handlers_.bind("print", [] {});
  options_.queues = {{"work", 1}};
  start();
  const auto by_queue = table_.add("print");
  const auto by_ticket = send();
  EXPECT_TRUE(eventually([&] {
    return table_.row(by_queue).status == Status::completed &&
           table_.row(by_ticket).status == Status::completed;
  }));
  finish();
  Worker neither([this] { return std::make_unique<TableJobStore>(table_); },
                 [this](AttemptDesk& desk) { return make_thread_runner(handlers_, 1, desk); },
                 WorkerOptions{}, system_clock(), *random_, observer_);
  const auto refused = neither.run();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("queues is empty"));
}

TEST_F(WorkerSource, While_connections_are_lost_every_job_still_ends_once) {
  std::atomic<int> ran = 0;
  handlers_.bind("print", [&] { ++ran; });
  start();
  for (int i = 0; i < 60; ++i) {
    send();
    if (i % 20 != 10) continue;
    const int before = queue_.opened;
    EXPECT_TRUE(eventually([&] { return queue_.opened > 0; }));
    queue_.lose_connection();
    EXPECT_TRUE(eventually([&] { return queue_.opened > before; }));
  }
  EXPECT_TRUE(eventually([&] { return queue_.left() == 0; }));
  finish();
  EXPECT_EQ(ran, 60);
  EXPECT_EQ(table_.count(Status::completed), 60U);
  EXPECT_EQ(queue_.early, 0);
  EXPECT_GE(observer_.count(NoticeKind::source_recovered), 1);
}

TEST_F(WorkerSource, A_stop_ends_a_source_that_hangs_while_it_connects) {
  handlers_.bind("print", [] {});
  queue_.hangs = true;
  start();
  EXPECT_TRUE(eventually([&] { return queue_.opening > 0; }));
  EXPECT_TRUE(finish().clean());
}

TEST_F(WorkerSource, What_a_stop_leaves_undone_is_in_the_queue_again) {
  std::atomic<int> inside = 0;
  std::atomic<bool> open = false;
  handlers_.bind("print", [&] {
    ++inside;
    while (!open)
      std::this_thread::yield();
  });
  auto& worker = start();
  for (int i = 0; i < 8; ++i)
    send();
  EXPECT_TRUE(eventually([&] { return inside == 4; }));
  worker.request_stop();
  EXPECT_TRUE(eventually([&] { return observer_.count(NoticeKind::worker_quiet) == 1; }));
  open = true;
  EXPECT_EQ(finish().completed, 4U);
  EXPECT_EQ(queue_.left(), 4U);
  EXPECT_EQ(queue_.early, 0);
}

TEST_F(WorkerSource, It_can_be_stopped_at_any_moment) {
  handlers_.bind("print", [] {});
  for (int i = 0; i < 100; ++i) {
    send();
    start();
    for (int spin = 0; spin < i * 50; ++spin)
      std::this_thread::yield();
    finish();
    worker_.reset();
  }
  EXPECT_EQ(queue_.early, 0);
  EXPECT_EQ(table_.count(Status::completed) + queue_.left(), 100U) << "done, or in the queue";
}

}  // namespace
}  // namespace postrider
