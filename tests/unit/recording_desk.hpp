#pragma once
/// \file
/// A desk that keeps what attempts say and answers as it was told.

#include <optional>
#include <utility>
#include <vector>

#include <postrider/attempt.hpp>

namespace postrider {

class RecordingDesk final : public AttemptDesk {
 public:
  [[nodiscard]] Result<AttemptState> touch(AttemptUpdate update) override {
    asked.push_back(std::move(update));
    if (failure) return *failure;
    return answer;
  }

  std::vector<AttemptUpdate> asked;
  AttemptState answer{true, false, milliseconds(1000)};
  std::optional<Error> failure;
};

}  // namespace postrider
