#pragma once
/// \file
/// A route: which events go where, and how.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/job.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// What keeps its order on a route.
enum class Order : std::uint8_t {
  aggregate,  ///< events of one aggregate
  global,     ///< all events of the route; one relay then owns every partition
  none,       ///< nothing
};

/// What a dead letter does to what comes after it on an ordered route.
enum class OnFailed : std::uint8_t {
  halt,  ///< its aggregate waits for a person: a late copy could arrive behind its successors
  skip,  ///< its aggregate goes on; the weaker guarantee is the choice of whoever sets this
  stop,  ///< the whole route waits for a person
};

/// Which deliveries become rows.
enum class Record : std::uint8_t {
  open,  ///< only those that did not succeed at their first attempt
  all,   ///< every one, as an audit trail; costs one row per delivery
};

[[nodiscard]] std::string_view to_string(Order order) noexcept;
[[nodiscard]] std::string_view to_string(OnFailed on_failed) noexcept;
[[nodiscard]] std::string_view to_string(Record record) noexcept;
[[nodiscard]] std::optional<Order> parse_order(std::string_view text) noexcept;
[[nodiscard]] std::optional<OnFailed> parse_on_failed(std::string_view text) noexcept;
[[nodiscard]] std::optional<Record> parse_record(std::string_view text) noexcept;

/// One route. Its policy is copied into every delivery row that it makes and does not change there.
struct Route {
  static constexpr std::size_t most_retry_delays = 64;
  static constexpr std::size_t most_window = 10'000;

  std::string name;  ///< 1 to 64 of a-z, 0-9, '_', '-', '.'; what rows, metrics and commands show
  /// Event types: "order.placed", "order.*" (everything that starts with "order."), or "*".
  std::vector<std::string> events = {"*"};
  /// URL, as in the table of destinations. Empty on a job route whose workers take their tasks from
  /// the database.
  std::string destination;

  Order order = Order::aggregate;
  OnFailed on_failed = OnFailed::halt;
  Record record = Record::open;

  /// Waits before the second, third, … attempt. Their number is the number of retries: an empty
  /// list means that the first failure is final. Each 1 ms to 30 days.
  std::vector<milliseconds> retry_delays = {std::chrono::seconds(1), std::chrono::seconds(5),
                                            std::chrono::seconds(30), std::chrono::seconds(120),
                                            std::chrono::seconds(600)};
  /// How long an attempt may stay unanswered before it is `unknown`. 100 ms to 1 h.
  milliseconds timeout = std::chrono::seconds(30);
  /// Messages in flight at once, 1 to `most_window`. More hides latency and costs memory, and more
  /// duplicates after a crash.
  std::size_t window = 1000;
  /// Outages use up attempts, as the source package has it. Off: an outage is only a delay.
  bool outage_counts = false;
  /// What `gone` means: all messages go to this one address, so the route stops and its deliveries
  /// wait for a person. Off: the end of one delivery. A relay takes it from its publisher's traits.
  bool one_address = false;

  /// Makes this a job route: `order` is then none and `on_failed` skip, `timeout` covers waiting
  /// for a worker, the run and a margin, up to 7 days, and `window` and `record` say nothing.
  std::optional<JobPolicy> job;

  friend bool operator==(const Route&, const Route&) = default;
};

/// Every fault of `route` at once, one sentence each; empty when it can be used.
[[nodiscard]] std::vector<std::string> validate(const Route& route);

/// A route that makes jobs: without order, as failed jobs hold up nobody, and with
/// `JobPolicy::default_timeout`. The rest can be set afterwards.
[[nodiscard]] Route job_route(std::string name, std::vector<std::string> events, JobPolicy job);

/// Tells whether two routes cannot stand beside each other: they have one name, or would make the
/// same job in the same queue of one event, of which the database takes one only.
[[nodiscard]] bool conflict(const Route& one, const Route& other) noexcept;

/// Tells whether events of `type` go by `route`.
[[nodiscard]] bool matches(const Route& route, std::string_view type) noexcept;

/// The key that every delivery of a route with `Order::global` shares.
inline constexpr std::string_view global_ordering_key = "*";

/// The key under which a delivery of `event` queues on a route with this `order`; none when it
/// waits for nobody.
[[nodiscard]] std::optional<std::string> ordering_key(Order order, const Event& event);

}  // namespace postrider
