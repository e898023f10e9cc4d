#pragma once
/// \file
/// What the relay's core is told (inputs) and what it asks for (actions).
///
/// Whoever drives the core executes actions in the order given. At most one store call is asked for
/// at a time: the next one only after the answer to the last, or its failure, was given as input.

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/message.hpp>
#include <postrider/notice.hpp>
#include <postrider/relay_values.hpp>
#include <postrider/result.hpp>
#include <postrider/retention.hpp>
#include <postrider/store_values.hpp>

namespace postrider::core {

namespace input {

/// Start a pass. `continuous`: go on until `Stop`, reading ahead.
struct Begin {
  bool continuous = false;
};
/// Time has passed, nothing else.
struct Tick {};
/// Read nothing more; finish once what is in flight is settled.
struct Stop {};
/// Answer to `action::Lease`; `asked_at` is when it was sent, as the lease runs from there.
struct Leased {
  LeaseGrant grant;
  Instant asked_at{};
};
struct Claimed {
  ClaimedBatch batch;
};
struct TookDue {
  DueBatch batch;
};
struct TookHeld {
  HeldBatch batch;
};
struct Settled {
  SettleResult result;
};
/// The store call that was asked for last failed.
struct StoreFailed {
  Error error;
};
struct Outcomes {
  std::vector<MessageOutcome> outcomes;
};
/// Answer to `action::Purge`.
struct Purged {
  PurgeSlice slice;
};
struct PurgeFailed {
  Error error;
};
/// End the pass now: whoever drives waits no longer for what is in flight.
struct Abandon {};
/// The publisher of the route with this index broke its contract: it threw. No outcome of what it
/// has in flight will come.
struct PublisherFailed {
  std::size_t route = 0;
  Error error;
};

}  // namespace input

using Input = std::variant<input::Begin, input::Tick, input::Stop, input::Leased, input::Claimed,
                           input::TookDue, input::TookHeld, input::Settled, input::StoreFailed,
                           input::Outcomes, input::Purged, input::PurgeFailed, input::Abandon,
                           input::PublisherFailed>;

namespace action {

struct Lease {
  LeaseRequest request;
};
struct Claim {
  ClaimRequest request;
};
struct TakeDue {
  DueRequest request;
};
struct TakeHeld {
  HeldRequest request;
};
struct Settle {
  SettleRequest request;
};
/// Delete a slice of what is old, beside everything else: this is no store call in the sense above.
/// The next one is asked for only after the answer to this one.
struct Purge {
  PurgeRequest request;
};
/// Give messages to the publisher of the route with this index.
struct Submit {
  std::size_t route = 0;
  std::vector<Message> messages;
};
struct Notify {
  Notice notice;
};
/// The pass is over. With an error, what was read and not settled will be read again.
struct Done {
  PassReport report;
  std::optional<Error> error;
};

}  // namespace action

using Action =
    std::variant<action::Lease, action::Claim, action::TakeDue, action::TakeHeld, action::Settle,
                 action::Purge, action::Submit, action::Notify, action::Done>;

}  // namespace postrider::core
