#include "runner/process/zygote.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace postrider::runner {
namespace {

// When no process can be made, it is tried again after so long.
constexpr int fork_pause_ms = 100;
// What jobs have left behind is looked for so often.
constexpr int idle_turn_ms = 60'000;

struct KillOrder {
  std::uint32_t slot = 0;
  pid_t child = 0;
};

// A stop of the service sends these to all its processes; the worker alone decides what they mean.
void ignore_stop_signals() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE})
    sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, nullptr);
}

struct SocketPair {
  Descriptor ours;
  Descriptor theirs;
};

std::optional<SocketPair> make_sockets(int type) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return SocketPair{Descriptor(ends[0]), Descriptor(ends[1])};
}

bool send_news(int control, const ZygoteNews& news, int descriptor) noexcept {
  iovec part{const_cast<ZygoteNews*>(&news), sizeof news};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    auto* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(control, &message, MSG_NOSIGNAL) == sizeof news;
}

/// Lives in the zygote only.
class Nursery {
 public:
  Nursery(Descriptor control, std::size_t slots, const Zygote::ChildMain& child_main)
      : control_(std::move(control)), children_(slots), child_main_(child_main) {}

  void run() {
    while (true) {
      const bool all_there = start_missing();
      auto watched = what_to_watch();
      if (poll(watched.data(), watched.size(), all_there ? idle_turn_ms : fork_pause_ms) < 0)
        continue;
      if (watched[0].revents != 0 && !take_orders()) break;
      bury_the_dead();
    }
    kill_all();
  }

 private:
  struct Child {
    pid_t pid = -1;
    Descriptor exit;  // a pidfd; none when the kernel had none to give
  };

  bool start_missing() {
    bool all_there = true;
    for (std::uint32_t slot = 0; slot < children_.size(); ++slot)
      if (children_[slot].pid < 0) all_there = start(slot) && all_there;
    for (const auto& child : children_)
      all_there = all_there && child.exit;  // without a pidfd its end is looked for
    return all_there;
  }

  bool start(std::uint32_t slot) {
    auto sockets = make_sockets(SOCK_STREAM);
    if (!sockets) return false;
    const auto zygote = getpid();
    const auto pid = fork();
    if (pid < 0) return false;
    if (pid == 0) live(std::move(sockets->theirs), zygote);
    setpgid(pid, pid);
    children_[slot].pid = pid;
    children_[slot].exit = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    send_news(control_.get(), {ZygoteNews::Kind::child_started, slot, pid, 0, 0},
              sockets->ours.get());
    return true;
  }

  // The child. Its death is the death of its zygote's descendants only, so it has a group.
  [[noreturn]] void live(Descriptor socket, pid_t zygote) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != zygote) _exit(1);
    setpgid(0, 0);
    control_.reset();
    for (auto& child : children_)
      child.exit.reset();
    child_main_(std::move(socket));
    _exit(0);
  }

  std::vector<pollfd> what_to_watch() const {
    std::vector<pollfd> watched{{control_.get(), POLLIN, 0}};
    for (const auto& child : children_)
      if (child.exit) watched.push_back({child.exit.get(), POLLIN, 0});
    return watched;
  }

  // False: the worker is gone.
  bool take_orders() {
    KillOrder order;
    const auto size = recv(control_.get(), &order, sizeof order, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size != sizeof order) return false;
    if (order.slot < children_.size() && children_[order.slot].pid == order.child) {
      kill_group(order.child);
    }
    return true;
  }

  static void kill_group(pid_t pid) {
    if (pid <= 0) return;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }

  // What a child has started goes with it: its group, while its number is still its own, and what
  // has left the group, as daemons do. These come to us when their parents are gone.
  void bury_the_dead() {
    bool any = false;
    for (std::uint32_t slot = 0; slot < children_.size(); ++slot) {
      auto& child = children_[slot];
      if (child.pid < 0) continue;
      siginfo_t info{};
      const auto id = static_cast<id_t>(child.pid);
      if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
      ::kill(-child.pid, SIGKILL);
      waitid(P_PID, id, &info, WEXITED);
      const bool exited = info.si_code == CLD_EXITED;
      any = true;
      const auto pid = std::exchange(child, Child{}).pid;
      send_news(control_.get(),
                {ZygoteNews::Kind::child_ended, slot, pid, exited ? 0 : info.si_status,
                 exited ? info.si_status : 0},
                -1);
    }
    if (any) kill_orphans();
    reap_orphans();
  }

  // Those that have ended by themselves.
  void reap_orphans() const {
    for (const auto pid : own_children())
      if (!is_child(pid)) waitpid(pid, nullptr, WNOHANG);
  }

  void kill_orphans() const {
    for (const auto pid : own_children()) {
      if (is_child(pid)) continue;
      ::kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  [[nodiscard]] bool is_child(pid_t pid) const {
    return std::any_of(children_.begin(), children_.end(),
                       [&](const Child& child) { return child.pid == pid; });
  }

  static std::vector<pid_t> own_children() {
    const auto self = std::to_string(getpid());
    std::ifstream list("/proc/self/task/" + self + "/children");
    return {std::istream_iterator<pid_t>(list), std::istream_iterator<pid_t>()};
  }

  void kill_all() {
    for (const auto& child : children_)
      kill_group(child.pid);
    for (auto& child : children_)
      if (child.pid > 0) waitpid(std::exchange(child.pid, -1), nullptr, 0);
    kill_orphans();
  }

  Descriptor control_;
  std::vector<Child> children_;
  const Zygote::ChildMain& child_main_;
};

Error cannot_fork() {
  return {ErrorCode::unavailable, Disposition::stop,
          "no process can be started for the jobs. Raise the limits of processes and descriptors.",
          "worker", std::to_string(errno)};
}

Error zygote_is_gone() {
  return {ErrorCode::unavailable, Disposition::stop,
          "the process that starts children for jobs is gone. Restart the worker.", "worker", ""};
}

}  // namespace

Result<Zygote> Zygote::start(std::size_t slots, const ChildMain& child_main) {
  auto sockets = make_sockets(SOCK_SEQPACKET);
  if (!sockets) return cannot_fork();
  const auto pid = fork();
  if (pid < 0) return cannot_fork();
  if (pid == 0) {
    sockets->ours.reset();
    setpgid(0, 0);
    ignore_stop_signals();
    prctl(PR_SET_NAME, "postrider-fork");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    Nursery(std::move(sockets->theirs), slots, child_main).run();
    _exit(0);
  }
  return Zygote(std::move(sockets->ours), pid);
}

Zygote::~Zygote() {
  close();
}

Result<std::optional<Zygote::Received>> Zygote::receive() {
  Received received;
  iovec part{&received.news, sizeof received.news};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const auto size = recvmsg(control_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Received>();
  if (size != sizeof received.news) return zygote_is_gone();
  if (const auto* const header = CMSG_FIRSTHDR(&message)) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    received.socket = Descriptor(descriptor);
  }
  return std::optional<Received>(std::move(received));
}

void Zygote::kill(std::uint32_t slot, pid_t child) noexcept {
  const KillOrder order{slot, child};
  (void)send(control_.get(), &order, sizeof order, MSG_NOSIGNAL);
}

void Zygote::close() {
  control_.reset();
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace postrider::runner
