#pragma once
/// \file
/// When the next slice of what is older than its retention is deleted.
///
/// A *sweep* goes over events, keys, receipts and workers, one after the other, each in slices.
/// Between two slices there is a pause, so that a long sweep takes a share of the database and
/// never all of it; between two sweeps there is an interval.
///
///   waiting ──(time)──▶ asked ──more──▶ waiting, slice_pause ──▶ …
///                         ├──no more, or a failure──▶ the next kind, slice_pause
///                         └──of the last kind──▶ waiting, sweep_interval; from the first one again
///
/// A failure is told once in a row, and costs the kind its turn in this sweep.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/notice.hpp>
#include <postrider/result.hpp>
#include <postrider/retention.hpp>

namespace postrider::core {

class PurgePlan {
 public:
  /// 500 events without large payloads are a few milliseconds of a database's time.
  static constexpr std::size_t slice_rows = 500;
  static constexpr milliseconds slice_pause{100};
  static constexpr milliseconds sweep_interval{60'000};
  /// A sweep that goes on for long tells of itself each time that so many rows are gone.
  static constexpr std::int64_t most_untold = 100'000;

  explicit PurgePlan(const Retention& retention);

  /// When the next slice may be asked for; none while one is, and when all is kept for ever.
  [[nodiscard]] std::optional<Instant> due_at() const;

  /// The next slice. Requires: `due_at` is not empty.
  [[nodiscard]] PurgeRequest ask();

  /// The answer to what was asked for last: what to tell of it, if anything.
  [[nodiscard]] std::optional<Notice> on_slice(const PurgeSlice& slice, Instant now);
  [[nodiscard]] std::optional<Notice> on_failure(const Error& error, Instant now);

 private:
  struct Kind {
    Kept kept = Kept::events;
    milliseconds age{0};
    bool failing = false;  // since its last answer
  };

  [[nodiscard]] std::optional<Notice> told();
  void next_kind(Instant now);

  std::vector<Kind> kinds_;  // those that are not kept for ever
  std::size_t current_ = 0;
  Seq after_;
  std::int64_t untold_ = 0;
  Instant due_at_{};
  bool asked_ = false;
};

}  // namespace postrider::core
