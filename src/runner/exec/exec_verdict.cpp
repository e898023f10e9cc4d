#include "runner/exec/exec_verdict.hpp"

#include <csignal>

#include <fmt/format.h>

#include "runner/exec/result_line.hpp"

namespace postrider::runner {
namespace {

// A shell, and many a runtime, turn the signal that ended their work into such a code.
bool tells_of_stop(int exit_code) {
  return exit_code == 128 + SIGTERM || exit_code == 128 + SIGINT;
}

bool ended_by_us(const ProcessEnd& end) {
  if (end.status.signal != 0) {
    return end.killed || (end.stop_requested && end.status.signal == SIGTERM);
  }
  if (end.status.exit_code < 0) return end.killed;
  return end.stop_requested && tells_of_stop(end.status.exit_code);
}

AttemptEnd judge_exit_code(const ProcessEnd& end) {
  const int code = end.status.exit_code;
  if (code == exit_done) return JobOutcome::done();
  const auto word = fmt::format("exit_{}", code);
  const auto detail =
      fmt::format("The command ended with {} and wrote {} bytes of output", code, end.output_bytes);
  return code == exit_retry ? JobOutcome::retry(word, detail) : JobOutcome::fail(word, detail);
}

AttemptEnd judge_result_line(const ProcessEnd& end) {
  if (end.result_cut) return JobOutcome::fail(bad_result_code, "It is too long; 16 KiB are read.");
  auto outcome = parse_result_line(end.result);
  if (!outcome) return JobOutcome::fail(bad_result_code, outcome.error().message);
  const bool contradicted =
      outcome->kind == JobOutcome::Kind::done && end.status.exit_code != exit_done;
  if (contradicted) return judge_exit_code(end);
  return std::move(outcome).value();
}

}  // namespace

AttemptEnd judge_exec(const ProcessEnd& end) {
  if (!end.start_error.empty()) return JobOutcome::retry(cannot_start_code, end.start_error);
  if (ended_by_us(end)) return Interrupted{};
  if (end.status.signal != 0) {
    return WorkerDeath{end.status.signal, std::nullopt, end.out_of_memory};
  }
  if (end.status.exit_code < 0) return WorkerDeath{};
  return end.result.empty() ? judge_exit_code(end) : judge_result_line(end);
}

}  // namespace postrider::runner
