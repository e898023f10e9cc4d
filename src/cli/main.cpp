#include <array>
#include <string_view>
#include <variant>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"

namespace postrider::cli {
namespace {

struct Command {
  std::string_view name;
  ExitCode (*run)(const Options& options, Console& console);
};

constexpr std::array commands{
    Command{"init", run_init},
    Command{"migrate", run_migrate},
    Command{"relay", run_relay},
    Command{"emit", run_emit},
    Command{"status", run_status},
    Command{"events", run_events},
    Command{"events show", run_events_show},
    Command{"deliveries", run_deliveries},
    Command{"deliveries show", run_deliveries_show},
    Command{"check", run_check},
    Command{"doctor", run_doctor},
    Command{"config check", run_config_check},
    Command{"config show", run_config_show},
    Command{"dead list", run_dead_list},
    Command{"dead show", run_dead_show},
    Command{"dead retry", run_dead_retry},
    Command{"dead discard", run_dead_discard},
    Command{"route list", run_route_list},
    Command{"route pause", run_route_pause},
    Command{"route resume", run_route_resume},
    Command{"job enqueue", run_job_enqueue},
    Command{"job list", run_job_list},
    Command{"job show", run_job_show},
    Command{"job cancel", run_job_cancel},
    Command{"job reschedule", run_job_reschedule},
    Command{"queue list", run_queue_list},
    Command{"queue pause", run_queue_pause},
    Command{"queue resume", run_queue_resume},
    Command{"queue limit", run_queue_limit},
    Command{"schedule list", run_schedule_list},
    Command{"schedule run", run_schedule_run},
    Command{"schedule pause", run_schedule_pause},
    Command{"schedule resume", run_schedule_resume},
    Command{"schedule forget", run_schedule_forget},
    Command{"worker", run_worker},
    Command{"worker list", run_worker_list},
    Command{"attempt current", run_attempt_current},
    Command{"attempt extend", run_attempt_extend},
    Command{"attempt progress", run_attempt_progress},
    Command{"attempt checkpoint", run_attempt_checkpoint},
    Command{"purge", run_purge},
    Command{"version", run_version},
    Command{"completion bash", run_completion_bash},
};

ExitCode run(int count, const char* const* arguments) {
  Console console;
  const auto parsed = parse_command_line(count, arguments);
  if (const auto* help = std::get_if<HelpText>(&parsed)) {
    console.print(help->text);
    return ExitCode::ok;
  }
  if (const auto* fault = std::get_if<UsageError>(&parsed)) {
    console.complain("usage", fault->message);
    return ExitCode::usage;
  }
  const auto& options = std::get<Options>(parsed);
  for (const auto& command : commands) {
    if (command.name == options.command) return command.run(options, console);
  }
  console.complain(options.command, "this command has no implementation. Please report this.");
  return ExitCode::software;
}

}  // namespace
}  // namespace postrider::cli

int main(int count, char** arguments) {
  return static_cast<int>(postrider::cli::run(count, arguments));
}
