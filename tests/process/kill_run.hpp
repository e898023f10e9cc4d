#pragma once
/// \file
/// A relay process that is killed at random moments while it drains, again and again, and what has
/// to hold of what arrived.

#include <cstdint>
#include <functional>
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

struct KillRun {
  int events = 10'000;
  int aggregates = 100;
  int kills = 50;
  std::function<std::unique_ptr<Store>()> open_store;
  /// How much has arrived so far, in any unit; cheap, as kills aim by it.
  std::function<std::size_t()> progress;
  std::size_t progress_per_event = 1;
  /// Everything that has arrived so far.
  std::function<std::vector<Arrived>()> arrived;
};

/// Writes `events` in portions, starts `postrider relay --loop` in `shop` after each portion and
/// kills it when a random part of the portion has arrived; then drains, and expects that nothing is
/// lost, that first occurrences of an aggregate ascend by seq, and that repeats are equal.
void expect_survival(Workshop& shop, const KillRun& run);

/// [relay] of postrider.toml with small batches and short leases, so that kills meet work.
extern const std::string_view relay_settings;

}  // namespace postrider::testing
