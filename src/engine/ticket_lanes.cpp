#include "engine/ticket_lanes.hpp"

#include <iterator>
#include <utility>

namespace postrider::engine {
namespace {

/// One call for each, each a transaction of its own, up to the first that fails.
core::WorkerInput start_all(JobStore& store, const std::vector<StartRequest>& requests,
                            milliseconds timeout, const Clock& clock) {
  core::worker_input::TicketsStarted started;
  started.answers.reserve(requests.size());
  for (const auto& request : requests) {
    const auto asked_at = clock.steady();
    auto answer = store.start(request, Deadline::after(timeout));
    if (!answer) {
      started.failure = std::move(answer).error();
      break;
    }
    started.answers.push_back({std::move(answer).value(), asked_at});
  }
  return started;
}

}  // namespace

TicketLanes::TicketLanes(TaskSource& source, JobStore& store, milliseconds store_timeout,
                         const Clock& clock, const std::function<void()>& answered)
    : store_(store),
      store_timeout_(store_timeout),
      clock_(clock),
      starts_(answered),
      source_(source, answered) {}

void TicketLanes::add_inputs(std::vector<core::WorkerInput>& inputs) {
  if (auto answer = starts_.take_answer()) inputs.push_back(*std::move(answer));
  auto reports = source_.take_reports();
  std::move(reports.begin(), reports.end(), std::back_inserter(inputs));
}

void TicketLanes::execute(core::worker_action::OpenSource& open) {
  source_.open(open.prefetch);
}

void TicketLanes::execute(core::worker_action::StartTickets& start) {
  for (auto& request : start.requests)
    request.now = clock_.database_override();
  starts_.ask([&store = store_, requests = std::move(start.requests), timeout = store_timeout_,
               &clock = clock_] { return start_all(store, requests, timeout, clock); });
}

void TicketLanes::execute(core::worker_action::Acknowledge& acknowledge) {
  source_.acknowledge(std::move(acknowledge.tags));
}

void TicketLanes::execute(core::worker_action::CancelSource&) {
  source_.cancel();
}

void TicketLanes::execute(core::worker_action::CloseSource&) {
  source_.close();
}

}  // namespace postrider::engine
