#include "cli/stop_signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "cli/exit_code.hpp"

namespace postrider::cli {
namespace {

// timeout(1) and some shells send the same signal to a process and then to its group: two within
// moments are one wish.
constexpr std::chrono::seconds one_wish{1};

}  // namespace

class StopSignals::Watcher {
 public:
  Watcher() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC);
    end_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { watch(); });
  }

  ~Watcher() {
    ::eventfd_write(end_, 1);
    thread_.join();
    ::close(signals_);
    ::close(end_);
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void on_stop(std::function<void()> request, std::function<void()> hurry) {
    const std::lock_guard lock(mutex_);
    request_ = std::move(request);
    hurry_ = std::move(hurry);
    if (stopped_ && request_) request_();
    if (hurried_ && hurry_) hurry_();
  }

  bool wait_for(milliseconds patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return stopped_; });
  }

 private:
  void watch() {
    while (true) {
      std::array<pollfd, 2> watched{{{signals_, POLLIN, 0}, {end_, POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[1].revents != 0) return;
      signalfd_siginfo signal{};
      if (::read(signals_, &signal, sizeof(signal)) == sizeof(signal)) stop();
    }
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (stopped_ && now - stopped_at_ < one_wish) return;
    stopped_at_ = now;
    if (stopped_) return hurry();
    stopped_ = true;
    if (request_) request_();
    changed_.notify_all();
  }

  // Whoever sends a second one does not want to wait for what is in flight.
  void hurry() {
    if (!hurry_ || hurried_) ::_exit(static_cast<int>(ExitCode::temporary));
    hurried_ = true;
    hurry_();
  }

  int signals_ = -1;
  int end_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  Instant stopped_at_;
  bool hurried_ = false;
  std::function<void()> request_;
  std::function<void()> hurry_;
  std::thread thread_;
};

StopSignals::StopSignals() : watcher_(std::make_unique<Watcher>()) {}
StopSignals::~StopSignals() = default;
void StopSignals::on_stop(std::function<void()> request, std::function<void()> hurry) {
  watcher_->on_stop(std::move(request), std::move(hurry));
}
void StopSignals::forget() {
  watcher_->on_stop({}, {});
}
bool StopSignals::wait_for(milliseconds patience) {
  return watcher_->wait_for(patience);
}

}  // namespace postrider::cli
