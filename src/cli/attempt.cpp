// What a handler in any language asks and says of its attempt while it runs. The two ids come from
// the environment, where `worker --exec` puts them.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <postrider/job_store.hpp>

#include "cli/commands.hpp"
#include "cli/given.hpp"
#include "cli/given_event.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

/// An id from its option, or from the environment.
Result<Uuid> attempt_id(const std::string& given, const char* option, const char* variable) {
  const auto text = given.empty() ? environment(variable).value_or("") : given;
  if (text.empty()) {
    return Error{ErrorCode::invalid_argument, Disposition::reject,
                 fmt::format("{} is not set, and {} is not given. Run this from a handler that "
                             "`postrider worker --exec` has started.",
                             variable, option),
                 "cli", ""};
  }
  if (const auto id = Uuid::parse(text)) return *id;
  return Error{
      ErrorCode::invalid_argument, Disposition::reject,
      fmt::format("'{}' is no id. Hand on {} as the handler got it.", harmless(text), variable),
      "cli", ""};
}

Result<AttemptUpdate> attempt_update(const AttemptOptions& options) {
  const auto delivery = attempt_id(options.delivery, "--delivery", "POSTRIDER_DELIVERY_ID");
  if (!delivery) return delivery.error();
  const auto dispatch = attempt_id(options.dispatch, "--dispatch", "POSTRIDER_DISPATCH_ID");
  if (!dispatch) return dispatch.error();
  AttemptUpdate update;
  update.delivery_id = DeliveryId(*delivery);
  update.dispatch_id = DispatchId(*dispatch);
  return update;
}

std::string_view word_of(const AttemptState& state) {
  if (!state.current) return "stale";
  return state.cancel_requested ? "cancel" : "current";
}

std::string attempt_json(const AttemptState& state) {
  return printed({{"current", state.current},
                  {"cancel_requested", state.cancel_requested},
                  {"until_timeout_ms", state.current ? state.until_timeout.count() : 0}});
}

std::string attempt_text(const AttemptState& state) {
  if (!state.current) return fmt::format("{}\n", word_of(state));
  return fmt::format("{}, {} left\n", word_of(state), age_text(state.until_timeout));
}

ExitCode attempt_code(const AttemptState& state) {
  if (!state.current) return ExitCode::stale;
  return state.cancel_requested ? ExitCode::cancel : ExitCode::ok;
}

ExitCode touch(std::string_view command, const AttemptUpdate& update, const Options& options,
               Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto state = session.backend().job_store()->touch(update, session.deadline());
  if (!state) return console.fail(command, state.error());
  console.print(options.attempt.json ? attempt_json(*state) : attempt_text(*state));
  return attempt_code(*state);
}

}  // namespace

ExitCode run_attempt_current(const Options& options, Console& console) {
  const auto update = attempt_update(options.attempt);
  if (!update) return console.fail("attempt current", update.error());
  return touch("attempt current", *update, options, console);
}

ExitCode run_attempt_extend(const Options& options, Console& console) {
  auto update = attempt_update(options.attempt);
  if (!update) return console.fail("attempt extend", update.error());
  const auto duration = duration_of(options.attempt.duration, "the extension");
  if (!duration) return console.fail("attempt extend", duration.error());
  update->extend = *duration;
  return touch("attempt extend", *update, options, console);
}

ExitCode run_attempt_progress(const Options& options, Console& console) {
  auto update = attempt_update(options.attempt);
  if (!update) return console.fail("attempt progress", update.error());
  update->percent = options.attempt.percent;
  update->note = options.attempt.note;
  return touch("attempt progress", *update, options, console);
}

ExitCode run_attempt_checkpoint(const Options& options, Console& console) {
  auto update = attempt_update(options.attempt);
  if (!update) return console.fail("attempt checkpoint", update.error());
  auto bytes = payload_of(options.attempt.checkpoint);
  if (!bytes) return console.fail("attempt checkpoint", bytes.error());
  update->checkpoint = std::move(bytes).value();
  return touch("attempt checkpoint", *update, options, console);
}

}  // namespace postrider::cli
