#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

#include "publisher/file/file_errors.hpp"
#include "publisher/file/line_sink.hpp"

namespace postrider::file {
namespace {

// A reader that went away must be an error of this destination and not the end of the process. The
// signal is kept away from this thread only, as a library must not change the process's handlers.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    if (!was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&pipe_, nullptr, &at_once) == -1 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// Standard output has no O_NONBLOCK, and setting it would change it for everybody who shares the
// terminal. A pipe that is reported as writable takes this much without blocking.
constexpr std::size_t chunk_bytes = PIPE_BUF;

class StreamSink final : public LineSink {
 public:
  StreamSink(int descriptor, std::string shown_name, FileCalls calls)
      : descriptor_(descriptor), shown_name_(std::move(shown_name)), calls_(calls) {}

  Result<void> open() override { return {}; }

  Appended append(std::string_view text, Deadline deadline, int wake_fd) override {
    const SigpipeGuard guard;
    if (torn_) {
      const auto closed = write_all("\n", deadline, wake_fd);
      if (closed.accepted == 0) return {0, 0, closed.error};
      torn_ = false;
    }
    auto appended = write_all(text, deadline, wake_fd);
    if (appended.error) tear_after(text.substr(0, appended.accepted));
    return appended;
  }

  void abandon_line() override { torn_ = true; }
  void close() override {}

 private:
  void tear_after(std::string_view written) {
    if (!written.empty()) torn_ = written.back() != '\n';
  }

  Appended write_all(std::string_view text, Deadline deadline, int wake_fd) {
    Appended appended;
    while (appended.accepted < text.size() && wait_writable(deadline, wake_fd)) {
      const auto chunk = text.substr(appended.accepted, chunk_bytes);
      const auto count = calls_.write(descriptor_, chunk.data(), chunk.size());
      if (count > 0) appended.accepted += static_cast<std::size_t>(count);
      if (count < 0 && errno != EINTR && errno != EAGAIN) {
        appended.error = file_error(errno, shown_name_);
        break;
      }
    }
    return appended;
  }

  bool wait_writable(Deadline deadline, int wake_fd) const {
    std::array<pollfd, 2> watched{{{descriptor_, POLLOUT, 0}, {wake_fd, POLLIN, 0}}};
    const auto patience = std::min<std::int64_t>(deadline.remaining().count(), INT_MAX);
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(patience));
    // A pipe without reader is an error condition, which the write then names.
    return ready > 0 && watched[0].revents != 0;
  }

  const int descriptor_;
  const std::string shown_name_;
  const FileCalls calls_;
  bool torn_ = false;
};

}  // namespace

std::unique_ptr<LineSink> make_stream_sink(int descriptor, std::string shown_name,
                                           FileCalls calls) {
  return std::make_unique<StreamSink>(descriptor, std::move(shown_name), calls);
}

FileCalls system_calls() noexcept {
  return {::write, ::fdatasync, ::ftruncate};
}

}  // namespace postrider::file
