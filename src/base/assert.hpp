#pragma once
/// \file
/// Assertions against our own mistakes, on in every build. Never for input or a server's answer.

namespace postrider {

/// Says what was expected and where, then ends the process.
[[noreturn]] void assertion_failed(const char* expectation, const char* file, int line) noexcept;

}  // namespace postrider

#define POSTRIDER_ASSERT(expectation) \
  ((expectation) ? void(0) : ::postrider::assertion_failed(#expectation, __FILE__, __LINE__))
