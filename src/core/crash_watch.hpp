#pragma once
/// \file
/// Decides whether an event may be what kills relays, and which one.
///
/// Counted on the row of each partition are takeovers from owners that had released nothing:
///
///              takeover               takeover                 two takeovers with one probe
///   calm (0) ───────────▶ watched (1) ─────────▶ alone (2 and more) ───────────────────┐
///      ▲                       │                     │      ▲                          │
///      └── a round is settled ─┴─────────────────────┘      └── the probe is a dead ◀──┘
///          whole, or a release                                  letter, unsent
///
///   calm, watched: full speed.
///   alone:         one delivery at a time, first what the dead owner had named, then the oldest;
///                  its event is the *probe*, named on the row before it is sent and until its
///                  outcome is settled. Naming another one takes the count back to 2: whoever got
///                  past a probe has shown that it kills nobody.
///
/// A *round* is what could be read when the partition was taken over: all that the dead owner can
/// have been sending.

#include <map>
#include <optional>
#include <vector>

#include <postrider/ids.hpp>
#include <postrider/store_values.hpp>

namespace postrider::core {

class CrashWatch {
 public:
  /// From so many crashes on, events are sent one at a time.
  static constexpr int alone_from = 2;
  /// From so many on, the probe that a dead owner left is to blame: two have died of it, alone. One
  /// may have been killed by somebody else, while this event happened to be on its way.
  static constexpr int blamed_from = alone_from + 2;

  struct Probe {
    Partition partition;
    Seq seq;
  };

  /// A partition comes from another owner, or from nobody.
  void gain(Partition partition, const Suspicion& stored);
  /// What the row of a partition that was held all along says.
  void refresh(Partition partition, const Suspicion& stored);
  void lose(Partition partition);

  /// The greatest count of all partitions held.
  [[nodiscard]] int crashes() const;
  [[nodiscard]] bool calm() const { return crashes() == 0; }
  [[nodiscard]] bool alone() const { return crashes() >= alone_from; }

  /// Tells whether the last owner died with this event as its probe.
  [[nodiscard]] bool suspects(Partition partition, Seq seq) const;

  /// Tells whether the last two did.
  [[nodiscard]] bool blames(Partition partition, Seq seq) const;

  /// What has to be stored before `probe`, or nothing, is being sent; empty when it is stored.
  [[nodiscard]] std::vector<PartitionSuspicion> to_probe(const std::optional<Probe>& probe) const;
  /// What has to be stored after a round.
  [[nodiscard]] std::vector<PartitionSuspicion> to_clear() const;
  void on_stored(const std::vector<PartitionSuspicion>& stored);

 private:
  struct State {
    Suspicion stored;
    std::optional<Seq> left;  // the probe of a dead owner, until something else is stored
  };

  std::map<Partition, State> partitions_;  // all that are held
};

}  // namespace postrider::core
