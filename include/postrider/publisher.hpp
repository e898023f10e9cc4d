#pragma once
/// \file
/// The seam between the relay and a destination: `Publisher`.
///
/// A publisher submits and confirms; it never retries, waits out a back-off, counts or logs: the
/// relay does. It may pipeline inside, within the window it was made with.
///
/// Ownership: the engine owns its publishers; a publisher owns its client and connection.
/// Thread safety: one thread at a time, except `wake`.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/message.hpp>
#include <postrider/outcome.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// What a publisher declares about itself. Documents and conformance tests turn on these.
struct PublisherTraits {
  std::string_view name;   ///< "memory", "file", "amqp", …
  std::size_t window = 1;  ///< messages that may be in flight at once
  std::size_t most_payload_bytes = EventLimits::most_payload_bytes;  ///< larger ones are rejected
  bool confirms = true;             ///< `confirmed` means that the destination took responsibility
  bool durable = true;              ///< … and that it survives a crash of the destination
  bool detects_unroutable = false;  ///< a message that reaches nobody is not `confirmed`
  bool keeps_headers = true;        ///< headers arrive
  /// All messages go to one address: when that is gone, the route stops and its deliveries wait for
  /// a person. Else `gone` is the end of one delivery.
  bool one_address = false;
};

/// A destination.
class Publisher {
 public:
  virtual ~Publisher() = default;

  [[nodiscard]] virtual PublisherTraits traits() const = 0;

  /// Gives messages to the destination; what became of each comes out of `poll`.
  ///
  /// Order: they leave in the order given; where a destination takes several at once, those of one
  /// aggregate do, and others may overtake.
  /// Blocking: may connect, within `deadline`; does not wait for confirms.
  /// Requires: with these, no more than `traits().window` messages are in flight.
  /// Errors: a message's own failure is its outcome. The returned error means that none of them
  ///   left and none will have an outcome.
  virtual Result<void> submit(std::span<const Message> messages, Deadline deadline) = 0;

  /// Drives the destination and returns outcomes, each message's once, in no particular order.
  ///
  /// Blocking: until there is at least one outcome, `wake` is called, or `deadline` passes; then
  ///   what there is, perhaps nothing. A message that is unanswered for its timeout comes out as
  ///   `unknown`, and a late answer to it is ignored.
  /// Errors: none by itself: a lost connection is the outcome of every message in flight.
  [[nodiscard]] virtual std::vector<MessageOutcome> poll(Deadline deadline) = 0;

  /// Makes a running or the next `poll` return early. Thread safety: any thread, any time.
  virtual void wake() noexcept = 0;

  /// Ends the connection; what is still in flight comes out as `unknown` from the returned list.
  /// Idempotent. A later `submit` connects again.
  virtual std::vector<MessageOutcome> close(Deadline deadline) = 0;
};

}  // namespace postrider
