#pragma once
/// \file
/// What each status means for the message that it answers.

#include <array>
#include <span>
#include <string>

#include <postrider/outcome.hpp>
#include <postrider/result.hpp>

namespace postrider::http {

/// Begins as docs/brokers/http.md has it; a route may change it.
class StatusTable {
 public:
  /// Each change is a status or a hundred of them, and an outcome: "404=rejected",
  /// "5xx=unavailable". A later one counts more.
  ///
  /// Errors: `config_invalid`, with the change that cannot be read.
  [[nodiscard]] static Result<StatusTable> make(std::span<const std::string> changes);

  /// `unknown` for what is no status.
  [[nodiscard]] OutcomeKind kind_of(int status) const noexcept;

 private:
  static constexpr int first = 200;
  static constexpr int last = 599;

  StatusTable();
  bool change(const std::string& text);

  std::array<OutcomeKind, last - first + 1> kinds_{};
};

}  // namespace postrider::http
