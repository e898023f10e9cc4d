#pragma once
/// \file
/// A crash that is one: a process that ends by SIGKILL, as by `kill -9`, the OOM killer or a power
/// cut. No destructor runs, nothing is flushed, no handler is asked.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>

namespace examples {

[[noreturn]] inline void die_at_once() {
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

/// Runs `work` in a process of its own, which has to die in it.
inline void in_a_process_that_dies(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    work();
    std::_Exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    throw std::runtime_error("the process has outlived its crash");
  }
}

}  // namespace examples
