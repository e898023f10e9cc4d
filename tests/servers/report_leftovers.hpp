#pragma once
/// \file
/// What a supervisor says of its server before it ends it.

#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace postrider::testing {

/// Prints what tests have left on the server, a line each. True when that is nothing. Throws never:
/// the server has to be ended in any case.
[[nodiscard]] inline bool nothing_is_left(const std::function<std::vector<std::string>()>& find) {
  try {
    const auto left = find();
    for (const auto& thing : left)
      std::cout << "left behind: " << thing << "\n";
    return left.empty();
  } catch (const std::exception& failure) {
    std::cout << "what tests left cannot be found out: " << failure.what() << "\n";
    return false;
  }
}

}  // namespace postrider::testing
