#pragma once
/// \file
/// A destination in memory with a `down` flag, and `FlakyPublisher`, a decorator that fails by
/// attempt number.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <postrider/publisher.hpp>

namespace postrider::testing {

/// What a destination has accepted, in order, repeats included. Thread safety: any thread.
class Journal {
 public:
  Journal();
  ~Journal();
  /// While down, everything is `unavailable` and nothing is accepted.
  void set_down(bool down);
  [[nodiscard]] bool down() const;
  void accept(std::shared_ptr<const Event> event);
  [[nodiscard]] std::vector<std::shared_ptr<const Event>> accepted() const;
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Accepts into `journal` and confirms at once.
[[nodiscard]] std::unique_ptr<Publisher> make_memory_publisher(std::shared_ptr<Journal> journal,
                                                               std::size_t window = 1000);

/// How a scripted attempt fails. Both are `unknown` to the relay, which cannot tell them apart.
enum class Fault : std::uint8_t {
  down,      ///< not forwarded
  lost_ack,  ///< forwarded, and the answer is hidden
  refuse,    ///< not forwarded: `refused`
  reject,    ///< not forwarded: `rejected`
  cut,       ///< not forwarded: `unknown` with `connection_lost`
};

/// Attempts are counted from 1 over the life of the publisher; those without a fault are forwarded.
using FaultScript = std::map<std::uint64_t, Fault>;

/// A publisher over `inner` that fails by `script`.
[[nodiscard]] std::unique_ptr<Publisher> make_flaky_publisher(std::unique_ptr<Publisher> inner,
                                                              FaultScript script);

}  // namespace postrider::testing
