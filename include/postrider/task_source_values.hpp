#pragma once
/// \file
/// What a source of tasks gives to a worker: the values of the seam in task_source.hpp.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <postrider/ids.hpp>

namespace postrider {

/// Which handing out by the broker a ticket is. Only the connection that brought it can acknowledge
/// it; numbers of connections begin at 1 and are never reused by one source.
struct TicketTag {
  std::uint64_t connection = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const TicketTag&, const TicketTag&) = default;
};

/// A task as the broker has it: ids, and never the event.
struct Ticket {
  static constexpr std::size_t most_job_bytes = 64;

  DeliveryId delivery_id;
  DispatchId dispatch_id;
  std::string job;  ///< 1 to `most_job_bytes` bytes of what a job may be called
  TicketTag tag;
  bool redelivered = false;  ///< the broker gave it out before
};

/// Messages that are no tasks, told together. They are off the queue: the broker has dropped them,
/// or put them where its dead letters go.
struct RefusedTasks {
  std::string reason;  ///< one of few sentences of the source; nothing of the message
  std::size_t count = 0;
};

struct TicketBatch {
  std::vector<Ticket> tickets;
  std::vector<RefusedTasks> refused;  ///< one entry for each reason
};

}  // namespace postrider
