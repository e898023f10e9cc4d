#pragma once
/// \file
/// One function per command, each in the file of its noun. What they share is in session.hpp and
/// console.hpp.

#include "cli/console.hpp"
#include "cli/options.hpp"

namespace postrider::cli {

ExitCode run_init(const Options& options, Console& console);
ExitCode run_migrate(const Options& options, Console& console);
ExitCode run_relay(const Options& options, Console& console);
ExitCode run_emit(const Options& options, Console& console);
ExitCode run_status(const Options& options, Console& console);
ExitCode run_events(const Options& options, Console& console);
ExitCode run_events_show(const Options& options, Console& console);
ExitCode run_deliveries(const Options& options, Console& console);
ExitCode run_deliveries_show(const Options& options, Console& console);
ExitCode run_check(const Options& options, Console& console);
ExitCode run_doctor(const Options& options, Console& console);
ExitCode run_config_check(const Options& options, Console& console);
ExitCode run_config_show(const Options& options, Console& console);
ExitCode run_dead_list(const Options& options, Console& console);
ExitCode run_dead_show(const Options& options, Console& console);
ExitCode run_dead_retry(const Options& options, Console& console);
ExitCode run_dead_discard(const Options& options, Console& console);
ExitCode run_route_list(const Options& options, Console& console);
ExitCode run_route_pause(const Options& options, Console& console);
ExitCode run_route_resume(const Options& options, Console& console);
ExitCode run_job_enqueue(const Options& options, Console& console);
ExitCode run_job_list(const Options& options, Console& console);
ExitCode run_job_show(const Options& options, Console& console);
ExitCode run_job_cancel(const Options& options, Console& console);
ExitCode run_job_reschedule(const Options& options, Console& console);
ExitCode run_queue_list(const Options& options, Console& console);
ExitCode run_queue_pause(const Options& options, Console& console);
ExitCode run_queue_resume(const Options& options, Console& console);
ExitCode run_queue_limit(const Options& options, Console& console);
ExitCode run_schedule_list(const Options& options, Console& console);
ExitCode run_schedule_run(const Options& options, Console& console);
ExitCode run_schedule_pause(const Options& options, Console& console);
ExitCode run_schedule_resume(const Options& options, Console& console);
ExitCode run_schedule_forget(const Options& options, Console& console);
ExitCode run_worker(const Options& options, Console& console);
ExitCode run_worker_list(const Options& options, Console& console);
ExitCode run_attempt_current(const Options& options, Console& console);
ExitCode run_attempt_extend(const Options& options, Console& console);
ExitCode run_attempt_progress(const Options& options, Console& console);
ExitCode run_attempt_checkpoint(const Options& options, Console& console);
ExitCode run_purge(const Options& options, Console& console);
ExitCode run_version(const Options& options, Console& console);
ExitCode run_completion_bash(const Options& options, Console& console);

}  // namespace postrider::cli
