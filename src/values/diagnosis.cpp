#include <postrider/diagnosis.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace postrider {
namespace {

using Severity = FindingSeverity;

/// Older than this, an event waits for more than a busy relay.
constexpr milliseconds old_event = std::chrono::minutes(5);
/// Older than this, an event waits for more than the next pass of a relay that is run by cron.
constexpr milliseconds unattended_event = std::chrono::minutes(1);
/// The longest lease that can be configured: what reaches further was made by another clock.
constexpr milliseconds longest_lease = std::chrono::minutes(10);
/// One death is an accident.
constexpr int suspicious_crashes = 2;

std::string seconds_text(milliseconds duration) {
  return fmt::format("{} s", duration.count() / 1000);
}

std::int64_t held_in(const Status& status) {
  std::int64_t held = 0;
  for (const auto& counts : status.routes)
    held += counts.held;
  return held;
}

void add_held(const Status& status, std::vector<Finding>& findings) {
  const auto held = held_in(status);
  if (held == 0) return;
  findings.push_back(
      {"events_held", Severity::warning, "outbox_events",
       fmt::format("{} events are held: no route matches them.", held),
       "They are delivered nowhere until a route matches them.",
       "See `postrider events --state held`, and add a route or correct a pattern."});
}

void add_dead(const std::vector<DeadLetter>& letters, std::vector<Finding>& findings) {
  std::set<std::pair<std::string, std::string>> halted;
  for (const auto& letter : letters) {
    const auto& delivery = letter.delivery;
    if (delivery.on_failed == OnFailed::halt && delivery.ordering_key) {
      halted.emplace(delivery.route, *delivery.ordering_key);
    }
  }
  if (!halted.empty()) {
    const auto& [route, key] = *halted.begin();
    findings.push_back(
        {"aggregates_halted", Severity::warning, fmt::format("{} on route {}", key, route),
         fmt::format("dead letters halt {} aggregates, this one among them.", halted.size()),
         "Later events of these aggregates wait on that route.",
         "See `postrider dead list`, then retry or discard."});
  } else if (!letters.empty()) {
    findings.push_back(
        {"dead_letters", Severity::note, "route " + letters.front().delivery.route,
         fmt::format("there are {} dead letters, which halt nobody.", letters.size()),
         "They have not been delivered, and will not be by themselves.",
         "See `postrider dead list`, then retry or discard."});
  }
}

void add_paused(const Status& status, std::vector<Finding>& findings) {
  for (const auto& route : status.paused_routes) {
    findings.push_back({"route_paused", Severity::warning, "route " + route,
                        "the route is paused by a person or stopped by a dead letter.",
                        "Its events wait, and nothing resumes it by itself.",
                        fmt::format("postrider route resume {}", route)});
  }
}

void add_unrouted(const Status& status, bool owned, std::vector<Finding>& findings) {
  const auto& age = status.events.oldest_unrouted_age;
  const auto waiting = status.events.unrouted - held_in(status);
  if (!age || waiting <= 0) return;
  if (!owned && *age > unattended_event) {
    findings.push_back({"no_relay", Severity::warning, "outbox_events",
                        fmt::format("{} events wait, the oldest for {}, and no relay owns a "
                                    "partition.",
                                    waiting, seconds_text(*age)),
                        "Nobody delivers them.", "Start `postrider relay --loop`."});
  } else if (owned && *age > old_event) {
    findings.push_back(
        {"events_old", Severity::warning, "outbox_events",
         fmt::format("the oldest event that is not routed waits for {}.", seconds_text(*age)),
         "A relay is at work and does not reach it.",
         "Look at the relay's log for paused routes and errors of the store."});
  }
}

void add_leases(const Status& status, bool owned, std::vector<Finding>& findings) {
  std::int64_t lapsed = 0;
  std::int64_t free = 0;
  milliseconds longest{0};
  for (const auto& partition : status.partitions) {
    if (partition.lapsed) {
      ++lapsed;
      longest = std::max(longest, *partition.lapsed);
    } else if (!partition.remaining) {
      ++free;
    }
    if (partition.remaining && *partition.remaining > longest_lease) {
      findings.push_back(
          {"lease_far_ahead", Severity::error, partition.owner,
           fmt::format("the lease of partition {} still runs for {}.", partition.partition.value(),
                       seconds_text(*partition.remaining)),
           "No lease is that long: the database's clock has gone back, and nobody can take the "
           "partition over until then.",
           "Correct the clock of the database's host; then stop and start the relay."});
    }
  }
  if (lapsed > 0) {
    findings.push_back({"lease_lapsed", Severity::warning, "outbox_partitions",
                        fmt::format("the leases of {} partitions ran out, up to {} ago, and were "
                                    "neither given back nor taken over.",
                                    lapsed, seconds_text(longest)),
                        "Their relay died or cannot reach the database, and no other one stands "
                        "by.",
                        "Start a relay, and look at the end of the last one's log."});
  }
  if (owned && free > 0) {
    findings.push_back({"partitions_without_owner", Severity::warning, "outbox_partitions",
                        fmt::format("{} partitions have no owner, and others have one.", free),
                        "Events of these partitions wait.",
                        "A relay takes them with its next renewal; if they stay, restart it."});
  }
}

void add_crashes(const Status& status, std::vector<Finding>& findings) {
  const auto worst = std::max_element(
      status.partitions.begin(), status.partitions.end(),
      [](const auto& a, const auto& b) { return a.suspicion.crashes < b.suspicion.crashes; });
  if (worst == status.partitions.end() || worst->suspicion.crashes < suspicious_crashes) return;
  const auto& probe = worst->suspicion.probe_seq;
  findings.push_back(
      {"relays_crash", Severity::warning, fmt::format("partition {}", worst->partition.value()),
       fmt::format(
           "{} owners of the partition have died in a row{}.", worst->suspicion.crashes,
           probe ? fmt::format(", the last one with event {} on its way", probe->value()) : ""),
       "An event may kill whoever sends it; until it is found, one is sent at a time.",
       "See the end of the relay's log, and `postrider events` around that seq."});
}

}  // namespace

std::string_view to_string(FindingSeverity severity) noexcept {
  switch (severity) {
    case FindingSeverity::note:
      return "note";
    case FindingSeverity::warning:
      return "warning";
    case FindingSeverity::error:
      return "error";
  }
  return "unknown";
}

std::vector<Finding> diagnose_work(const Status& status, const std::vector<DeadLetter>& letters) {
  std::vector<Finding> findings;
  const bool owned = std::any_of(status.partitions.begin(), status.partitions.end(),
                                 [](const auto& partition) { return !partition.owner.empty(); });
  add_held(status, findings);
  add_dead(letters, findings);
  add_paused(status, findings);
  add_unrouted(status, owned, findings);
  add_leases(status, owned, findings);
  add_crashes(status, findings);
  return findings;
}

}  // namespace postrider
