#pragma once
/// \file
/// Ends what the jobs have started when this process is killed.
///
/// The kernel kills our children with us, but not theirs. So a small process waits at the other end
/// of a socket: when that closes without a word, it kills the process groups that it was told of.

#include <sys/types.h>

#include <cstddef>

#include "base/descriptor.hpp"

namespace postrider::runner {

/// Made early: the guard is a fork without exec, and keeps the memory that this process has then.
/// When there is no process left, or the guard is killed, groups are unguarded; children still die.
///
/// Thread safety: one thread at a time.
class OrphanGuard {
 public:
  /// `most` groups at once; further ones are unguarded.
  explicit OrphanGuard(std::size_t most);
  ~OrphanGuard();
  OrphanGuard(const OrphanGuard&) = delete;
  OrphanGuard& operator=(const OrphanGuard&) = delete;

  void watch(pid_t group) noexcept { tell(group); }
  void release(pid_t group) noexcept { tell(-group); }

 private:
  void tell(pid_t word) noexcept;

  Descriptor socket_;
  pid_t guard_ = -1;
};

}  // namespace postrider::runner
