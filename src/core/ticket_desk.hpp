#pragma once
/// \file
/// The tickets of a worker: which wait for a slot, which are being taken up, which run, and which
/// may be acknowledged. See <postrider/task_source.hpp> for what a ticket is.
///
///   offered ─▶ waiting ─▶ asked ─▶ held (its attempt runs, or its end is not recorded) ─▶ released
///                 ▲          │                                                              │
///                 └──────────┤ the store failed                             acknowledged ◀──┤
///                            └─ nothing is to be done: released ────────────────────────────┘
///
/// When its connection is lost, what waits is forgotten, as the broker gives it out again; what is
/// held goes on. Such a ticket may come again under another tag: whoever holds its dispatch takes
/// the new tag over, so that one dispatch is never run twice in one worker. A ticket that names the
/// dispatch of another job is no copy: it must not stand in the way of the right one.
///
/// Memory is bounded by the prefetch of the source.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <postrider/ids.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/task_source_values.hpp>

namespace postrider::core {

class TicketDesk {
 public:
  void offer(Ticket ticket);

  /// The connection is gone, with all its tags.
  void forget_connection();
  /// Those that wait and were not asked for yet are to be given back.
  void give_back_waiting();

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  [[nodiscard]] std::size_t asked() const noexcept { return asked_.size(); }
  [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }
  /// Tickets whose dispatch this worker may have started without knowing it.
  [[nodiscard]] std::size_t doubtful() const noexcept;

  /// Up to so many that wait, as what the store is to be asked for. Requires: none is asked.
  [[nodiscard]] std::vector<StartRequest> ask(std::size_t most, WorkerId worker);
  /// The next of those that were asked for, in their order; their answers are given one by one.
  [[nodiscard]] Ticket next_answered();
  /// Its attempt is this worker's from here on, until `release`.
  void hold(const Ticket& ticket);
  /// Nothing is to be done about it.
  void acknowledge(const TicketTag& tag);
  /// It waits again, as if it had not been asked for.
  void put_back(Ticket ticket);
  /// The first of those that are left may have been started, and the others were not asked for.
  void put_back_after_failure();

  /// Forgets those that may have been started, and says how many they were.
  std::size_t give_up_doubtful();

  /// The end of its attempt is recorded, or nobody will ever record it. Nothing when the dispatch
  /// did not come by a ticket.
  void release(const DispatchId& dispatch);

  /// What is to be acknowledged now.
  [[nodiscard]] std::vector<TicketTag> take_acknowledgements() {
    return std::exchange(to_acknowledge_, {});
  }

 private:
  struct Entry {
    Ticket ticket;
    bool again = false;  // an earlier start may have been applied
  };

  [[nodiscard]] TicketTag* tag_of_original(const Ticket& copy);

  std::deque<Entry> waiting_;
  std::deque<Entry> asked_;
  std::map<DispatchId, Ticket> held_;
  std::vector<TicketTag> to_acknowledge_;
};

}  // namespace postrider::core
