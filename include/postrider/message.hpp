#pragma once
/// \file
/// A message on its way to a destination, and what became of it.

#include <cstdint>
#include <memory>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/outcome.hpp>

namespace postrider {

/// Number of an attempt within one relay process; never reused.
using AttemptId = Named<std::uint64_t, struct AttemptIdTag>;

/// One message to be sent.
struct Message {
  AttemptId attempt;
  std::shared_ptr<const Event> event;
  DispatchId dispatch_id;
  milliseconds timeout{0};  ///< unanswered for so long it is `unknown`
};

/// What became of one message.
struct MessageOutcome {
  AttemptId attempt;
  Outcome outcome;
};

}  // namespace postrider
