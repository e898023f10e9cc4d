#include "core/ticket_desk.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace postrider::core {
namespace {

// Of a ticket whose connection is gone: there is nothing to acknowledge until it comes again.
constexpr TicketTag no_tag{};

bool is_same(const Ticket& one, const Ticket& other) {
  return one.dispatch_id == other.dispatch_id && one.delivery_id == other.delivery_id &&
         one.job == other.job;
}

}  // namespace

void TicketDesk::offer(Ticket ticket) {
  auto* const known = tag_of_original(ticket);
  if (known == nullptr) {
    waiting_.push_back({std::move(ticket), false});
  } else if (known->connection == ticket.tag.connection) {
    acknowledge(ticket.tag);  // two messages for one dispatch
  } else {
    *known = ticket.tag;
  }
}

TicketTag* TicketDesk::tag_of_original(const Ticket& copy) {
  const auto held = held_.find(copy.dispatch_id);
  if (held != held_.end() && is_same(held->second, copy)) return &held->second.tag;
  for (auto* const entries : {&waiting_, &asked_}) {
    for (auto& entry : *entries)
      if (is_same(entry.ticket, copy)) return &entry.ticket.tag;
  }
  return nullptr;
}

void TicketDesk::forget_connection() {
  give_back_waiting();
  to_acknowledge_.clear();
  for (auto* const entries : {&waiting_, &asked_}) {
    for (auto& entry : *entries)
      entry.ticket.tag = no_tag;
  }
  for (auto& [dispatch, ticket] : held_)
    ticket.tag = no_tag;
}

void TicketDesk::give_back_waiting() {
  std::erase_if(waiting_, [](const Entry& entry) { return !entry.again; });
}

std::size_t TicketDesk::doubtful() const noexcept {
  return static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(),
                                                [](const Entry& entry) { return entry.again; }));
}

std::vector<StartRequest> TicketDesk::ask(std::size_t most, WorkerId worker) {
  POSTRIDER_ASSERT(asked_.empty());
  std::vector<StartRequest> requests;
  while (!waiting_.empty() && requests.size() < most) {
    const auto& [ticket, again] = waiting_.front();
    requests.push_back({worker, ticket.delivery_id, ticket.dispatch_id, ticket.job, {}, again});
    asked_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return requests;
}

Ticket TicketDesk::next_answered() {
  POSTRIDER_ASSERT(!asked_.empty());
  auto ticket = std::move(asked_.front().ticket);
  asked_.pop_front();
  return ticket;
}

void TicketDesk::hold(const Ticket& ticket) {
  held_.insert_or_assign(ticket.dispatch_id, ticket);
}

void TicketDesk::acknowledge(const TicketTag& tag) {
  if (tag != no_tag) to_acknowledge_.push_back(tag);
}

void TicketDesk::put_back(Ticket ticket) {
  waiting_.push_front({std::move(ticket), false});
}

void TicketDesk::put_back_after_failure() {
  if (!asked_.empty()) asked_.front().again = true;
  waiting_.insert(waiting_.begin(), std::make_move_iterator(asked_.begin()),
                  std::make_move_iterator(asked_.end()));
  asked_.clear();
}

std::size_t TicketDesk::give_up_doubtful() {
  return std::erase_if(waiting_, [](const Entry& entry) { return entry.again; });
}

void TicketDesk::release(const DispatchId& dispatch) {
  const auto found = held_.find(dispatch);
  if (found == held_.end()) return;
  acknowledge(found->second.tag);
  held_.erase(found);
}

}  // namespace postrider::core
