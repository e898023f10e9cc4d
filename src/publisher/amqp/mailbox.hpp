#pragma once
/// \file
/// What the publisher's caller and its driver thread share: messages on their way out, what became
/// of them on the way back, and the state of the link.
///
/// The driver may be stuck in a call of rabbitmq-c for long; the caller never is. So everything
/// that has to happen in time happens here, on the caller's side: expiry of messages, and the cut
/// of a connection on which a write takes too long.
///
/// A message on its way: queued ──▶ in the window (written, perhaps partly) ──▶ its outcome.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <postrider/publisher.hpp>

#include "base/bell.hpp"
#include "base/mutex.hpp"
#include "broker/amqp/socket_guard.hpp"
#include "publisher/amqp/amqp_message.hpp"
#include "publisher/amqp/confirm_window.hpp"

namespace postrider::amqp {

/// Numbers the driver threads of one publisher, so that one that was left behind in a name
/// resolution does no harm when it comes back.
using DriverNumber = Named<std::uint64_t, struct DriverNumberTag>;

/// What the driver has to do now.
struct DriverOrders {
  bool end = false;
  bool open_link = false;
};

/// Thread safety: the functions of each side by one thread at a time; `wake` by any.
class Mailbox {
 public:
  struct Limits {
    std::size_t window;
    milliseconds stuck_after;  ///< a turn of the driver that takes longer is cut
    Outcome unroutable;        ///< of a message that the broker returned
  };
  explicit Mailbox(Limits limits) : limits_(std::move(limits)) {}

  // --- the caller's side ---

  /// From here on driver `number` is the one, and `guard` breaks its calls.
  void begin(DriverNumber number, std::shared_ptr<SocketGuard> guard);
  /// Waits for an open link, and has the driver open one where there is none.
  [[nodiscard]] Result<void> await_link(Deadline deadline);
  [[nodiscard]] std::size_t frame_max();
  /// Queues messages in their order. False when the link went away: then none was taken.
  [[nodiscard]] bool enqueue(std::vector<OutgoingMessage>& messages);
  void report(std::vector<MessageOutcome> outcomes);
  [[nodiscard]] std::vector<MessageOutcome> collect(Deadline deadline);
  void wake() noexcept;
  /// Tells the driver to end.
  void ask_to_end();
  /// Waits for its end; false when it is still running at `deadline`.
  [[nodiscard]] bool await_end(Deadline deadline);
  /// The same after a cut, which ends every call but a name resolution: a driver that is opening
  /// its link at `deadline` is left to itself, and nothing that it does counts any more.
  [[nodiscard]] bool await_end_or_disown(Deadline deadline);
  /// All outcomes that are left, those of messages in flight included; nothing is in flight then.
  [[nodiscard]] std::vector<MessageOutcome> clear();

  // --- the driver's side ---

  /// Begins a turn. A driver that is not the one any more is told to end.
  [[nodiscard]] DriverOrders begin_turn(DriverNumber number);
  /// Ends the turn and waits until there is something to do, or to read from `descriptor` (-1: not
  /// connected), or for `patience`.
  void rest(int descriptor, milliseconds patience);
  /// Before a connection is made, which may take longer than anybody waits.
  void link_opening();
  /// False when nobody wants the link any more.
  [[nodiscard]] bool link_opened(DriverNumber number, std::size_t frame_max);
  void link_failed(DriverNumber number, Error error);
  /// The next message to write, already in the window; none when there is none or the broker is
  /// blocked.
  [[nodiscard]] std::optional<OutgoingMessage> next_to_write();
  void written();
  void set_blocked(bool blocked);
  /// False when the broker cannot mean what it said.
  [[nodiscard]] bool settle(std::uint64_t tag, bool multiple, bool acknowledged);
  [[nodiscard]] bool mark_returned(const EventId& event);
  /// The channel went with everything in it; `queued` is the outcome of what was not yet written.
  void link_lost(std::string_view detail, const Outcome& queued);
  /// The same after a channel.close; the only message in the window, if there is but one, is what
  /// the broker took offence at, and `offender` its outcome.
  void channel_closed(std::string_view detail, const Outcome& offender, const Outcome& queued);
  void ended(DriverNumber number);

 private:
  enum class Link : std::uint8_t { down, opening, up };

  void push(AttemptId attempt, Outcome outcome) POSTRIDER_REQUIRES(mutex_);
  void drop_link(std::string_view detail, const Outcome* offender, const Outcome& queued)
      POSTRIDER_REQUIRES(mutex_);
  void expire(Instant now) POSTRIDER_REQUIRES(mutex_);
  void expire_queued(Instant now) POSTRIDER_REQUIRES(mutex_);
  void cut_what_is_stuck(Instant now) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] milliseconds time_to_next_expiry(Instant now) const POSTRIDER_REQUIRES(mutex_);
  /// Tells whether answers are missing and none can be expected any more.
  [[nodiscard]] bool link_is_doubtful() const POSTRIDER_REQUIRES(mutex_);

  const Limits limits_;
  Bell bell_;  ///< wakes the driver
  Mutex mutex_;
  Condition changed_;  ///< wakes the caller

  DriverNumber driver_ POSTRIDER_GUARDED_BY(mutex_);
  std::shared_ptr<SocketGuard> guard_ POSTRIDER_GUARDED_BY(mutex_);
  bool end_wanted_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool driver_ended_ POSTRIDER_GUARDED_BY(mutex_) = true;
  bool driver_opening_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::optional<Instant> turn_began_ POSTRIDER_GUARDED_BY(mutex_);
  std::optional<AttemptId> writing_ POSTRIDER_GUARDED_BY(mutex_);

  Link link_ POSTRIDER_GUARDED_BY(mutex_) = Link::down;
  bool link_wanted_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::optional<Error> link_error_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t frame_max_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool blocked_ POSTRIDER_GUARDED_BY(mutex_) = false;

  std::deque<OutgoingMessage> queue_ POSTRIDER_GUARDED_BY(mutex_);
  /// A lower bound, as the window has one: the queue is searched only when something may be due.
  Instant queue_expiry_ POSTRIDER_GUARDED_BY(mutex_) = Instant::max();
  ConfirmWindow window_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<MessageOutcome> outcomes_ POSTRIDER_GUARDED_BY(mutex_);
  bool woken_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider::amqp
