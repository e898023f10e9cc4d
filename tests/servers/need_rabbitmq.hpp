#pragma once
/// \file
/// For the set-up of a test: without a RabbitMQ the test is skipped, or fails where CI is set.

#include <cstdlib>

#include <gtest/gtest.h>

#include "servers/rabbitmq_server.hpp"

namespace postrider::testing {

/// The caller has to return when the test is skipped or has failed after it.
inline void need_rabbitmq() {
  const auto why = why_no_rabbitmq();
  if (why.empty()) return;
  if (std::getenv("CI") != nullptr) FAIL() << why;  // NOLINT(concurrency-mt-unsafe)
  GTEST_SKIP() << why;
}

}  // namespace postrider::testing
