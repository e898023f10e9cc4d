#include "core/verdict.hpp"

#include "base/assert.hpp"

namespace postrider::core {
namespace {

Verdict failed_attempt(const Outcome& outcome, bool final, int attempts,
                       std::span<const milliseconds> retry_delays) {
  const auto used = static_cast<std::size_t>(attempts);  // retries that were used up before
  Verdict verdict;
  verdict.attempts = attempts + 1;
  verdict.code = outcome.code;
  verdict.detail = outcome.detail;
  if (final || used >= retry_delays.size()) {
    verdict.kind = Verdict::Kind::failed;
  } else {
    verdict.kind = Verdict::Kind::retry;
    verdict.wait = retry_delays[used];
  }
  return verdict;
}

}  // namespace

Verdict judge(const Outcome& outcome, bool outage, int attempts,
              std::span<const milliseconds> retry_delays) {
  POSTRIDER_ASSERT(attempts >= 0);
  switch (outcome.kind) {
    case OutcomeKind::confirmed:
      return {Verdict::Kind::completed, attempts, {}, {}, {}};
    case OutcomeKind::rejected:
    case OutcomeKind::gone:
      return failed_attempt(outcome, true, attempts, retry_delays);
    case OutcomeKind::refused:
    case OutcomeKind::unknown:
    case OutcomeKind::unavailable:
    case OutcomeKind::throttled:
      break;
  }
  if (outage) return {Verdict::Kind::unchanged, attempts, {}, outcome.code, outcome.detail};
  return failed_attempt(outcome, false, attempts, retry_delays);
}

}  // namespace postrider::core
