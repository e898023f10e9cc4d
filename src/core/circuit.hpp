#pragma once
/// \file
/// Decides whether a route may send: an outage is a pause, never a failure of messages.
///
///              outage, throttled, failures jump
///   closed ───────────────────────────────────▶ open ──(wait is over)──▶ probing
///      ▲                                          ▲                        │
///      │                    outage, or suspect and not confirmed           │
///      │                                          └────────────────────────┤
///      └───────────────────────────────────────────(an answer)─────────────┘
///
/// Beside these, a person may pause the route, or a dead letter stop it; then nothing is sent until
/// it is resumed, whatever the state.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include <postrider/clock.hpp>

namespace postrider::core {

/// Bounds of a circuit.
struct CircuitPolicy {
  milliseconds probe_least{100};
  milliseconds probe_most{30'000};
};

class Circuit {
 public:
  /// Answers that are looked back upon; the ratio is judged only when there are so many.
  static constexpr std::size_t remembered_answers = 64;
  /// So many failures among them make the route suspect: the destination or its configuration is
  /// broken rather than one message.
  static constexpr std::size_t suspect_failures = 48;

  /// `random` is borrowed and must outlive the circuit.
  Circuit(CircuitPolicy policy, Random& random) : policy_(policy), random_(&random) {}

  /// How many messages may be given to the destination now, besides those in flight.
  [[nodiscard]] std::size_t allowance(Instant now, std::size_t in_flight,
                                      std::size_t window) const noexcept;
  /// True while nothing may be sent, except a probe whose time has come.
  [[nodiscard]] bool paused() const noexcept { return state_ != State::closed || blocked_; }
  /// When a probe is due; meaningful while paused and not blocked.
  [[nodiscard]] Instant probe_at() const noexcept { return probe_at_; }
  [[nodiscard]] bool blocked() const noexcept { return blocked_; }
  /// How often the destination was found down since it last took a message.
  [[nodiscard]] unsigned openings() const noexcept { return openings_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

  /// What a call did to the state, for the log.
  enum class Change : std::uint8_t { none, paused, resumed };

  /// Messages were given to the destination.
  void on_submitted() noexcept;
  /// The destination took a message.
  Change on_confirmed() noexcept;
  /// The destination answered and did not take the message.
  Change on_failed(Instant now);
  /// The destination as a whole is down.
  Change on_outage(Instant now, std::string reason);
  /// The destination asked to wait.
  Change on_throttled(Instant now, milliseconds after);
  /// A person or a dead letter keeps the route from sending, or lets it send again.
  Change set_blocked(bool blocked) noexcept;

 private:
  enum class State : std::uint8_t { closed, open, probing };

  Change open(Instant at, std::string reason);
  Change close() noexcept;
  void remember(bool failure) noexcept;
  [[nodiscard]] milliseconds next_wait();

  CircuitPolicy policy_;
  Random* random_;
  State state_ = State::closed;
  bool blocked_ = false;
  bool suspect_ = false;
  std::string reason_;
  Instant probe_at_{};
  unsigned openings_ = 0;  // without a success between them
  std::bitset<remembered_answers> failures_;
  std::size_t answers_ = 0;
};

}  // namespace postrider::core
