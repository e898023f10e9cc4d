#include <postrider/outcome.hpp>

#include "base/utf8.hpp"

namespace postrider {
namespace {

Outcome make(OutcomeKind kind, std::string_view code, std::string_view detail) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.code = code;
  outcome.detail = clean_text(detail, Outcome::detail_bytes);
  return outcome;
}

}  // namespace

std::string_view to_string(OutcomeKind kind) noexcept {
  switch (kind) {
    case OutcomeKind::confirmed:
      return "confirmed";
    case OutcomeKind::refused:
      return "refused";
    case OutcomeKind::rejected:
      return "rejected";
    case OutcomeKind::unknown:
      return "unknown";
    case OutcomeKind::unavailable:
      return "unavailable";
    case OutcomeKind::throttled:
      return "throttled";
    case OutcomeKind::gone:
      return "gone";
  }
  return "unknown";
}

Outcome Outcome::confirmed() {
  return make(OutcomeKind::confirmed, "", "");
}

Outcome Outcome::refused(std::string_view code, std::string_view detail) {
  return make(OutcomeKind::refused, code, detail);
}

Outcome Outcome::rejected(std::string_view code, std::string_view detail) {
  return make(OutcomeKind::rejected, code, detail);
}

Outcome Outcome::unknown(std::string_view code, std::string_view detail) {
  return make(OutcomeKind::unknown, code, detail);
}

Outcome Outcome::answered_unknown(std::string_view code, std::string_view detail) {
  auto outcome = make(OutcomeKind::unknown, code, detail);
  outcome.answered = true;
  return outcome;
}

Outcome Outcome::lost_connection(std::string_view detail) {
  auto outcome = make(OutcomeKind::unknown, "connection_lost", detail);
  outcome.connection_lost = true;
  return outcome;
}

Outcome Outcome::unavailable(std::string_view code, std::string_view detail) {
  return make(OutcomeKind::unavailable, code, detail);
}

Outcome Outcome::throttled(milliseconds after, std::string_view detail) {
  auto outcome = make(OutcomeKind::throttled, "throttled", detail);
  outcome.after = after;
  return outcome;
}

Outcome Outcome::gone(std::string_view detail) {
  return make(OutcomeKind::gone, "gone", detail);
}

Outcome outcome_of(const Error& error) {
  const auto code = to_string(error.code);
  switch (error.disposition) {
    case Disposition::retry:
      return Outcome::unavailable(code, error.message);
    case Disposition::in_doubt:
      return Outcome::unknown(code, error.message);
    case Disposition::reject:
      return Outcome::rejected(code, error.message);
    case Disposition::stop:
      return Outcome::unavailable(code, error.message);
  }
  return Outcome::unknown(code, error.message);
}

}  // namespace postrider
