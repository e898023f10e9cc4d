#pragma once
/// \file
/// A message for the inbox, and processes that die in the middle.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

#include <postrider/inbox.hpp>

namespace postrider::testing {

[[nodiscard]] inline InboxMessage message(const std::string& id = "m-1",
                                          const std::string& payload = "{}") {
  NewEvent event;
  event.type = "order.placed";
  event.payload = payload;
  return {"mailer", "shop", id, content_hash(event)};
}

/// Runs `work` in a child process and waits for its end, which must be by SIGKILL.
inline void expect_killed(const std::function<void()>& work) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    work();
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
}

/// As kill -9: nothing of this process runs after it, no destructor and no buffer.
[[noreturn]] inline void die() {
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

}  // namespace postrider::testing
