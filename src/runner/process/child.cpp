// Two threads: the first one runs handlers, the other one reads what the worker says.
#include "runner/process/child.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "base/mutex.hpp"
#include "runner/process/frames.hpp"

namespace postrider::runner {
namespace {

// Without a worker there is nobody to run anything for. Not `exit`: handlers may still run.
[[noreturn]] void end_without_worker() {
  _exit(0);
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) end_without_worker();
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// The desk of the only attempt of this process; the real one is the worker's.
class ChildDesk final : public AttemptDesk {
 public:
  explicit ChildDesk(int socket) : socket_(socket) {}

  [[nodiscard]] Result<AttemptState> touch(AttemptUpdate update) override {
    const MutexLock one_at_a_time(asking_);
    send_all(socket_, encode(FrameFromChild(QuestionFrame{std::move(update)})));
    const MutexLock lock(mutex_);
    while (!answer_)
      answered_.wait(mutex_);
    return *std::exchange(answer_, std::nullopt);
  }
  void answer(Result<AttemptState> state) {
    const MutexLock lock(mutex_);
    answer_ = std::move(state);
    answered_.notify_one();
  }

 private:
  const int socket_;
  Mutex asking_;
  Mutex mutex_;
  Condition answered_;
  std::optional<Result<AttemptState>> answer_ POSTRIDER_GUARDED_BY(mutex_);
};

class ChildWorld {
 public:
  ChildWorld(Descriptor socket, const Handlers& handlers)
      : socket_(std::move(socket)), handlers_(handlers), desk_(socket_.get()) {}

  [[noreturn]] void run() {
    std::thread([this] { listen(); }).detach();
    while (true) {
      const auto running = next();
      Attempt attempt(running->task, desk_, running->stop.get_token());
      auto outcome = handlers_.run(running->task, attempt);
      forget_current();
      send_all(socket_.get(),
               encode(FrameFromChild(OutcomeFrame{running->task.dispatch_id, std::move(outcome)})));
    }
  }

 private:
  struct Running {
    Task task;
    std::stop_source stop;
  };

  std::shared_ptr<Running> next() {
    const MutexLock lock(mutex_);
    while (!is_new_)
      arrived_.wait(mutex_);
    is_new_ = false;
    return current_;
  }
  void forget_current() {
    const MutexLock lock(mutex_);
    current_ = nullptr;
  }

  [[noreturn]] void listen() {
    FrameBuffer frames(most_frame_bytes_to_child);
    std::array<char, 64U << 10U> bytes{};
    while (true) {
      const auto size = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) end_without_worker();
      frames.add({bytes.data(), static_cast<std::size_t>(size)});
      while (const auto body = frames.next()) {
        auto frame = decode_to_child(*body);
        if (!frame) end_without_worker();
        std::visit([this](auto& content) { take(content); }, *frame);
      }
      if (frames.is_broken()) end_without_worker();
    }
  }
  void take(Task& task) {
    auto running = std::make_shared<Running>();
    running->task = std::move(task);
    const MutexLock lock(mutex_);
    current_ = std::move(running);
    is_new_ = true;
    arrived_.notify_one();
  }
  void take(StopFrame& stop) {
    std::shared_ptr<Running> running;
    {
      const MutexLock lock(mutex_);
      if (current_ && current_->task.dispatch_id == stop.dispatch_id) running = current_;
    }
    if (running) running->stop.request_stop();  // runs callbacks of the handler, so without lock
  }
  void take(AnswerFrame& answer) { desk_.answer(std::move(answer.state)); }

  const Descriptor socket_;
  const Handlers& handlers_;
  ChildDesk desk_;
  Mutex mutex_;
  Condition arrived_;
  std::shared_ptr<Running> current_ POSTRIDER_GUARDED_BY(mutex_);
  bool is_new_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace

void run_child(Descriptor socket, const Handlers& handlers) {
  prctl(PR_SET_NAME, "postrider-job");
  ChildWorld(std::move(socket), handlers).run();
}

}  // namespace postrider::runner
