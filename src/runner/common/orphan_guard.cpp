// The two ends speak in single pid_t: a group to watch, or its negative to forget it.

#include "runner/common/orphan_guard.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

namespace postrider::runner {
namespace {

class Watched {
 public:
  explicit Watched(std::size_t most) : groups_(most, 0) {}

  void hear(pid_t word) noexcept {
    const pid_t known = word > 0 ? 0 : -word;
    const auto place = std::find(groups_.begin(), groups_.end(), known);
    if (place != groups_.end()) *place = word > 0 ? word : 0;
  }

  void kill_all() const noexcept {
    for (const pid_t group : groups_) {
      if (group > 0) kill(-group, SIGKILL);
    }
  }

 private:
  std::vector<pid_t> groups_;  // 0: free. Never grows: the guard must not allocate.
};

// A stop of the service sends these to everybody; the guard goes when the worker has gone.
void ignore_stop_signals() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2})
    sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Only async-signal-safe calls: this is a fork of a process that may have threads.
[[noreturn]] void stand_guard(int socket, Watched& watched) noexcept {
  ignore_stop_signals();
  setsid();
  prctl(PR_SET_NAME, "postrider-guard");
  // A copied socket of the database would keep a dead worker's session alive.
  dup2(socket, STDIN_FILENO);
  syscall(SYS_close_range, STDIN_FILENO + 1, ~0U, 0);
  for (;;) {
    pid_t word = 0;
    const auto size = read(STDIN_FILENO, &word, sizeof word);
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof word) break;
    watched.hear(word);
  }
  watched.kill_all();
  _exit(0);
}

}  // namespace

OrphanGuard::OrphanGuard(std::size_t most) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  socket_ = Descriptor(ends[0]);
  const Descriptor other(ends[1]);
  Watched watched(most);
  sigset_t every;
  sigset_t before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  guard_ = fork();
  if (guard_ == 0) stand_guard(other.get(), watched);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

OrphanGuard::~OrphanGuard() {
  socket_.reset();
  if (guard_ > 0) {
    while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR)
      continue;
  }
}

// Never waits: a guard that was stopped must not stop the jobs.
void OrphanGuard::tell(pid_t word) noexcept {
  if (socket_) send(socket_.get(), &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace postrider::runner
