#pragma once
/// \file
/// Options of a relay and the report of a pass.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/outcome.hpp>
#include <postrider/retention.hpp>
#include <postrider/store_values.hpp>

namespace postrider {

/// What becomes of an event that matches no route.
enum class Unrouted : std::uint8_t {
  hold,     ///< it becomes a held row and is routed once a route matches
  discard,  ///< it counts as routed
};

[[nodiscard]] std::string_view to_string(Unrouted unrouted) noexcept;
[[nodiscard]] std::optional<Unrouted> parse_unrouted(std::string_view text) noexcept;

struct RelayOptions {
  /// A label for people; identity is made afresh for every relay object. At most 64 characters.
  std::string name = "relay";
  std::size_t batch = 1000;                ///< events and due deliveries per claim, 1 to 10,000
  std::size_t batch_bytes = 64U << 20U;    ///< payload bytes per claim, 1 KiB to 1 GiB
  milliseconds sleep{1000};                ///< pause of an idle loop, 1 ms to 1 h
  milliseconds lease_time{5000};           ///< 200 ms to 10 min; at least 3 renewals must fit
  milliseconds lease_renewal{1000};        ///< 50 ms to lease_time / 3
  milliseconds settle_patience{1000};      ///< how long one slow route may delay the others' mark
  milliseconds probe_least{100};           ///< first wait before a paused route is probed
  milliseconds probe_most{30'000};         ///< the wait doubles, with jitter, up to this
  milliseconds drain_timeout{30'000};      ///< how long a stop waits for what is in flight
  milliseconds store_timeout{10'000};      ///< patience of one call of the store
  milliseconds worker_dead_after{30'000};  ///< of jobs: as `WorkerOptions::dead_after`
  Unrouted unrouted = Unrouted::hold;
  Retention retention;  ///< of the loop of a relay that has a purger
};

/// Every fault of `options` at once, one sentence each; empty when they can be used.
[[nodiscard]] std::vector<std::string> validate(const RelayOptions& options);

/// One confirmed delivery.
struct Sent {
  Seq seq;
  EventId event_id;
  std::string route;
  friend bool operator==(const Sent&, const Sent&) = default;
};

/// One delivery that did not succeed, or a route's trouble (then without a seq).
struct PassError {
  std::string route;
  std::optional<Seq> seq;
  std::optional<EventId> event_id;
  OutcomeKind outcome = OutcomeKind::unknown;
  std::string code;
  std::string detail;
  /// True for everything that a publisher reported about an attempt.
  [[nodiscard]] bool is_publish_failed() const noexcept {
    return outcome != OutcomeKind::confirmed;
  }
};

/// What one pass did, or several together. A continuous run makes none, so it keeps no list either.
struct PassReport {
  static constexpr std::size_t most_errors = 1000;  ///< later ones are only counted
  static constexpr std::size_t most_sent = 10'000;  ///< likewise

  std::map<std::string, std::size_t> confirmed;  ///< by route: how many deliveries, all of them
  std::vector<Sent> sent;                        ///< the first of them, in order of confirmation
  std::vector<PassError> errors;                 ///< in order of appearance
  std::size_t errors_left_out = 0;
  std::size_t claimed = 0;    ///< events read
  std::size_t due = 0;        ///< stored deliveries taken up
  std::size_t retried = 0;    ///< deliveries that will be tried again
  std::size_t failed = 0;     ///< new dead letters
  std::size_t parked = 0;     ///< stored because their route is paused or their head is open
  std::size_t held = 0;       ///< events without a route
  std::size_t jobs = 0;       ///< jobs made for workers
  std::size_t discarded = 0;  ///< events without a route, given up by configuration
  std::size_t waiting = 0;    ///< read, and left in the table because their route is paused
  bool more = false;          ///< another pass would find something at once
  /// Until the next stored delivery becomes due, of routes that are not paused.
  std::optional<milliseconds> next_due_in;
  std::vector<std::string> paused_routes;  ///< whose destination is down, suspect or asked to wait
  std::vector<ForeignLease> foreign;       ///< partitions that another relay owns

  /// Adds what the next pass did. What tells of a state is taken from that one.
  void add(PassReport later);
};

}  // namespace postrider
