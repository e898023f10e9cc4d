#pragma once
/// \file
/// Events that are written in portions while something happens to the relays that carry them, or to
/// the servers around, and what has to hold of what arrived.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <postrider/store.hpp>

#include "cli/program.hpp"

namespace postrider::testing {

/// One message as the destination has it, in the order of arrival.
struct Arrived {
  std::int64_t seq = 0;
  std::string aggregate;
  std::string id;
  std::string bytes;  ///< everything that a repeat has to have in common with the first copy
};

struct DrainRun {
  int events = 10'000;
  int aggregates = 100;
  int portions = 50;
  std::function<std::unique_ptr<Store>()> open_store;
  /// How much has arrived so far, in any unit; cheap, as disturbances aim by it.
  std::function<std::size_t()> progress;
  std::size_t progress_per_event = 1;
  /// Everything that has arrived so far.
  std::function<std::vector<Arrived>()> arrived;
};

/// What happens to each portion, counted from 0.
struct Disturbance {
  std::function<void(int portion)> begin;   ///< after it was written
  std::function<void(int portion)> strike;  ///< when a random part of it has arrived
};

/// Writes `events` from number `from` to number `to`, as an application would.
void write_events(const DrainRun& run, int from, int to);

/// Writes the events portion by portion and disturbs each. Expects that enough strikes met relays
/// at work.
void drain_disturbed(const DrainRun& run, const Disturbance& disturbance);

/// Waits until the progress of all events is made; false when it does not come to that.
[[nodiscard]] bool all_arrive(const DrainRun& run);

/// How many of them are repeats.
[[nodiscard]] std::size_t repeats_among(const std::vector<Arrived>& arrived);

/// Expects that first occurrences of an aggregate ascend by seq, and that repeats are equal.
void expect_ordered(const std::vector<Arrived>& arrived);

/// Expects besides that nothing is lost.
void expect_sound(const DrainRun& run, const std::vector<Arrived>& arrived);

/// Starts `postrider relay --loop` in `shop` for each portion and kills it in the midst; then
/// drains, and expects what arrived to be sound, and that no event was blamed for the kills.
void expect_survival(Workshop& shop, const DrainRun& run);

/// [relay] of postrider.toml with small batches and short leases, so that strikes meet work.
extern const std::string_view relay_settings;

}  // namespace postrider::testing
