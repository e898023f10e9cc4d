#include <array>

#include <fmt/format.h>

#include <postrider/relay_values.hpp>

#include "values/lease_bounds.hpp"
#include "values/parse_word.hpp"
#include "values/range_check.hpp"

namespace postrider {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

// Nothing between "for ever" and a second: a retention of a few milliseconds is a wrong unit.
void check_retention(std::vector<std::string>& faults, Kept kept, milliseconds value) {
  if (value == milliseconds::zero()) return;
  check_duration(faults, fmt::format("retention.{}", to_string(kept)), value, Retention::least,
                 Retention::most);
}

}  // namespace

std::string_view to_string(Unrouted unrouted) noexcept {
  return unrouted == Unrouted::hold ? "hold" : "discard";
}

std::optional<Unrouted> parse_unrouted(std::string_view text) noexcept {
  return parse_word(text, std::array{Unrouted::hold, Unrouted::discard});
}

std::vector<std::string> validate(const RelayOptions& options) {
  std::vector<std::string> faults;
  check_count(faults, "the length of name", options.name.size(), 1, 64);
  check_count(faults, "batch", options.batch, 1, 10'000);
  check_count(faults, "batch_bytes", options.batch_bytes, 1U << 10U, 1U << 30U);
  check_duration(faults, "sleep", options.sleep, milliseconds(1), hours(1));
  check_duration(faults, "lease_time", options.lease_time, milliseconds(200), most_lease_time);
  check_duration(faults, "lease_renewal", options.lease_renewal, milliseconds(50),
                 options.lease_time / 3);
  check_duration(faults, "settle_patience", options.settle_patience, milliseconds(1), minutes(10));
  check_duration(faults, "probe_least", options.probe_least, milliseconds(1), hours(1));
  check_duration(faults, "probe_most", options.probe_most, options.probe_least, hours(1));
  check_duration(faults, "drain_timeout", options.drain_timeout, milliseconds(0), hours(1));
  check_duration(faults, "store_timeout", options.store_timeout, milliseconds(100), minutes(10));
  for (const auto kept : all_kept) {
    check_retention(faults, kept, options.retention.of(kept));
  }
  return faults;
}

}  // namespace postrider
