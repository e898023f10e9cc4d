#pragma once
/// \file
/// What one attempt came to. The relay's whole behaviour follows from these seven words.

#include <cstdint>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

namespace postrider {

enum class OutcomeKind : std::uint8_t {
  confirmed,    ///< the destination has taken responsibility
  refused,      ///< surely not taken; may be taken later
  rejected,     ///< surely not taken, and never will be
  unknown,      ///< may have been taken: repeat, never drop
  unavailable,  ///< surely not taken: the destination as a whole is down
  throttled,    ///< surely not taken: the destination asks to wait for `after`
  gone,         ///< this address is dead
};

[[nodiscard]] std::string_view to_string(OutcomeKind kind) noexcept;

/// The outcome of one attempt of one delivery.
struct Outcome {
  static constexpr std::size_t detail_bytes = 200;  ///< longer details are cut

  OutcomeKind kind = OutcomeKind::unknown;
  /// Only with `unknown`: the connection or channel died, so every message in flight on it shares
  /// this outcome and the route as a whole is in trouble.
  bool connection_lost = false;
  /// Only with `unknown`: the destination itself answered, so it is there, and the doubt is about
  /// this message alone. A status 500 of an endpoint says so.
  bool answered = false;
  std::string code;       ///< safe reason code, a short snake_case word such as "unroutable"
  std::string detail;     ///< safe text for people; no payload, no secret
  milliseconds after{0};  ///< only with `throttled`

  [[nodiscard]] static Outcome confirmed();
  [[nodiscard]] static Outcome refused(std::string_view code, std::string_view detail);
  [[nodiscard]] static Outcome rejected(std::string_view code, std::string_view detail);
  [[nodiscard]] static Outcome unknown(std::string_view code, std::string_view detail);
  [[nodiscard]] static Outcome answered_unknown(std::string_view code, std::string_view detail);
  [[nodiscard]] static Outcome lost_connection(std::string_view detail);
  [[nodiscard]] static Outcome unavailable(std::string_view code, std::string_view detail);
  [[nodiscard]] static Outcome throttled(milliseconds after, std::string_view detail);
  [[nodiscard]] static Outcome gone(std::string_view detail);

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// The outcome that a failed call of a publisher means for the messages it was given.
///
/// `retry` becomes `unavailable` (a call concerns the destination as a whole), `in_doubt` becomes
/// `unknown`, `reject` becomes `rejected`, `stop` becomes `unavailable`: configuration and
/// credentials are no fault of the message, so it waits until a person has acted.
[[nodiscard]] Outcome outcome_of(const Error& error);

}  // namespace postrider
