#include "store/sqlite/sqlite_commit_watch.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace postrider::store::sqlite {
namespace {

/// A machine allows few instances per user (128 by default), so an object without waits has none.
Descriptor make_inotify() {
  return Descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

}  // namespace

bool SqliteCommitWatch::arm(const std::string& log) {
  if (!inotify_) inotify_ = make_inotify();
  if (!inotify_) return false;
  // The same file gives the same number: it is a new one only when the log was made anew.
  const int watch = ::inotify_add_watch(inotify_.get(), log.c_str(), IN_MODIFY);
  const bool fresh = watch >= 0 && watch != watch_;
  watch_ = watch;
  return fresh;
}

SqliteCommitWatch::Woken SqliteCommitWatch::wait(milliseconds patience) {
  std::array<pollfd, 2> fds = {pollfd{bell_.descriptor(), POLLIN, 0},
                               pollfd{inotify_.get(), POLLIN, 0}};
  const auto longest = std::min<milliseconds::rep>(patience.count(), INT_MAX);
  // An interrupted wait is a short one. A negative descriptor is passed over.
  ::poll(fds.data(), fds.size(), static_cast<int>(longest));
  if ((fds[0].revents & POLLIN) != 0) {
    // A write stays for the next wait: who is woken to stop does not look for work.
    bell_.silence();
    return Woken::by_wake;
  }
  return take_events() ? Woken::by_write : Woken::by_deadline;
}

bool SqliteCommitWatch::take_events() {
  if (!inotify_) return false;
  // Equal events in a row are one in the kernel's queue, so this is mostly a single read.
  alignas(inotify_event) std::array<char, 4096> events;
  bool any = false;
  while (::read(inotify_.get(), events.data(), events.size()) > 0)
    any = true;
  return any;
}

}  // namespace postrider::store::sqlite
