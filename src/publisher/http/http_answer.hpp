#pragma once
/// \file
/// What an endpoint answered, as far as it counts: status and two headers. Nothing else of it is
/// kept, so nothing else can come into a log.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/outcome.hpp>

#include "publisher/http/http_statuses.hpp"

namespace postrider::http {

class Answer {
 public:
  /// Of all header lines, those of interim answers (100, 103) included.
  static constexpr std::size_t most_header_bytes = 64U << 10U;
  static constexpr std::size_t most_body_bytes = 64U << 10U;

  /// False when the answer has become too large: the connection is closed then.
  bool take_header(std::string_view line);
  bool take_body(std::size_t bytes) noexcept;

  /// Of the last header that was begun. Empty when the endpoint did not say it, or twice.
  [[nodiscard]] const std::string& retry_after() const noexcept { return retry_after_.value; }
  [[nodiscard]] const std::string& date() const noexcept { return date_.value; }

 private:
  struct Field {
    std::string value;
    int times = 0;
    void take(std::string_view text);
  };

  std::size_t header_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  Field retry_after_;
  Field date_;
};

/// How long the endpoint asks to be left alone. A date counts from the answer's own `Date`, so that
/// it does not matter whose clock is wrong; without one from `now`. At most `most`.
[[nodiscard]] std::optional<milliseconds> asked_pause(const Answer& answer, Timestamp now,
                                                      milliseconds most);

/// What a status, 200 or above, means. `pause` is what `asked_pause` found.
[[nodiscard]] Outcome judge_status(int status, std::optional<milliseconds> pause,
                                   const StatusTable& table, std::string_view authority);

}  // namespace postrider::http
