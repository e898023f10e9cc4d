#pragma once
/// \file
/// Which delivery tag of the channel belongs to which attempt.
///
/// A channel numbers its messages 1, 2, 3, …; the broker confirms by number, one or all up to one.
/// A tag lives:
///
///   add ──▶ live ──▶ settled (gone)
///             │
///             └ expire ──▶ forgotten ──▶ settled late (gone, reported to nobody)
///
/// A forgotten tag keeps its place until the broker answers it or the channel goes, so that a late
/// answer is never taken for that of another attempt.
///
/// Pure: no clock, no I/O.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/publisher.hpp>

namespace postrider::amqp {

/// Thread safety: one thread at a time.
class ConfirmWindow {
 public:
  enum class Answer : std::uint8_t {
    expected,    ///< at least one live tag
    late,        ///< only forgotten ones
    repeated,    ///< only tags that were answered before; harmless
    impossible,  ///< a tag that was never given: the two sides do not agree on the channel
  };
  struct Settled {
    AttemptId attempt;
    bool returned;  ///< the broker sent the message back, so its acknowledgement means nothing
  };
  struct Settlement {
    Answer answer;
    std::vector<Settled> settled;  ///< in the order of their tags
  };

  /// Takes the next tag.
  std::uint64_t add(AttemptId attempt, const EventId& event, Instant expires_at);

  /// Notes that the broker returned a message. AMQP names no tag in a return, only the message
  /// itself; it comes before the acknowledgement and in the order of tags, so it belongs to the
  /// first tag of that event that has none. False when there is no such tag.
  bool mark_returned(const EventId& event);

  /// Settles `tag`, or every tag up to it. Tag 0 with `multiple` means all.
  [[nodiscard]] Settlement settle(std::uint64_t tag, bool multiple);

  /// Forgets what expired at `now`, and says which.
  [[nodiscard]] std::vector<AttemptId> expire(Instant now);

  /// The channel is gone: forgets everything and starts again with tag 1. Returns the live ones.
  [[nodiscard]] std::vector<AttemptId> reset();

  [[nodiscard]] std::size_t live() const noexcept { return live_; }
  [[nodiscard]] std::size_t forgotten() const noexcept { return tags_.size() - live_; }
  /// Not later than the first live tag expires; none when nothing is live.
  [[nodiscard]] std::optional<Instant> next_expiry() const noexcept;

 private:
  struct Tag {
    AttemptId attempt;
    EventId event;
    Instant expires_at;
    bool returned = false;
    bool live = true;
  };
  using Tags = std::map<std::uint64_t, Tag>;

  void take(Tags::iterator first, Tags::iterator last, Settlement& settlement);

  Tags tags_;
  std::uint64_t next_tag_ = 1;
  std::size_t live_ = 0;
  /// A lower bound: it is only made exact by `expire`, so that settling stays cheap.
  Instant next_expiry_ = Instant::max();
};

}  // namespace postrider::amqp
