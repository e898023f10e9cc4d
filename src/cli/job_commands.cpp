// The commands of jobs with their options: `job`, `queue`, `worker` and `attempt`.

#include <CLI/CLI.hpp>

#include <postrider/job.hpp>
#include <postrider/job_operations.hpp>

#include "cli/command_parts.hpp"

namespace postrider::cli {
namespace {

using CLI::App;

constexpr const char* an_id = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

void add_job_id(App& app, JobOptions& chosen) {
  app.add_option("id", chosen.id, "The job, as `job list` shows it")->type_name("ID")->required();
}

void add_event_options(App& app, EventOptions& event) {
  app.add_option("--type", event.type, "The event's type [the job's name]")->type_name("TYPE");
  app.add_option("--payload", event.payload, "The payload; @FILE or - (standard input) reads it")
      ->type_name("TEXT");
  app.add_option("--content-type", event.content_type, "Its media type [application/json]")
      ->type_name("TYPE");
  app.add_option("--header", event.headers, "A header; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--aggregate", event.aggregate, "What the event belongs to")->type_name("TYPE/ID");
  app.add_option("--id", event.id, "The event's identity, a UUID [a new one]")->type_name("UUID");
}

void add_due_options(App& app, EventOptions& event) {
  auto* at = app.add_option("--available-at", event.available_at, "Not before this time")
                 ->type_name("TIME");
  app.add_option("--delay", event.delay, "Not before so long from now [0s]")
      ->type_name("DURATION")
      ->excludes(at);
}

void add_policy_options(App& app, JobOptions& chosen) {
  app.add_option("--retry-delays", chosen.retry_delays,
                 "Waits before the next attempts, or none [1s,5s,30s,2m,10m]")
      ->type_name("LIST");
  app.add_option("--timeout", chosen.timeout, "How long an attempt may take [10m]")
      ->type_name("DURATION");
  app.add_option("--timeout-limit", chosen.timeout_limit, "Up to which it can be extended [1d]")
      ->type_name("DURATION");
  app.add_option("--priority", chosen.priority, "Lower goes first, -100 to 100 [0]")
      ->type_name("N")
      ->check(between(JobPolicy::least_priority, JobPolicy::most_priority));
  auto* serial_key =
      app.add_option("--serial-key", chosen.serial_key, "Jobs with equal keys run one by one")
          ->type_name("KEY");
  app.add_option("--serial-limit", chosen.serial_limit, "Or so many at once, 1 to 1000 [1]")
      ->type_name("N")
      ->check(between(1, JobPolicy::most_serial_limit))
      ->needs(serial_key);
  app.add_option("--unique-key", chosen.unique_key,
                 "Writes nothing while a job with this key waits or runs")
      ->type_name("KEY");
  app.add_option("--on-worker-death", chosen.on_worker_death,
                 "What becomes of it when its worker dies [fail]")
      ->type_name("fail|retry")
      ->check(one_of({"fail", "retry"}));
  app.add_option("--max-deaths", chosen.max_deaths, "With retry: how often, 0 to 100 [2]")
      ->type_name("N")
      ->check(between(0, JobPolicy::most_max_deaths));
  auto& hooks = chosen.hooks;
  app.add_option("--completed-event", hooks.completed_event, "The event written on its completion")
      ->type_name("TYPE");
  app.add_option("--retry-event", hooks.retry_event, "The event written before another attempt")
      ->type_name("TYPE");
  app.add_option("--failed-event", hooks.failed_event, "The event written when it failed for good")
      ->type_name("TYPE");
  app.add_option("--death-event", hooks.death_event, "The event written when its worker died")
      ->type_name("TYPE");
}

void add_job_enqueue(App& job, Options& options) {
  auto* enqueue =
      command(job, "enqueue", "Write a job with its event, without any route",
              "  postrider job enqueue ship_order --queue shipping --payload '{\"order\":17}'\n"
              "  postrider job enqueue send_report --queue mail --delay 2h --unique-key report\n"
              "  postrider job enqueue rebuild --queue slow --timeout 1h --retry-delays none\n");
  auto& chosen = options.job;
  enqueue->add_option("name", chosen.name, "The job")->type_name("JOB")->required();
  enqueue->add_option("--queue", chosen.queue, "Where it waits for a worker")
      ->type_name("QUEUE")
      ->required();
  add_event_options(*enqueue, chosen.event);
  add_due_options(*enqueue, chosen.event);
  add_policy_options(*enqueue, chosen);
  add_operator(*enqueue, chosen.reason, chosen.operator_name);
  add_format(*enqueue, chosen.json);
  add_database(*enqueue, options.database);
}

void add_job_list(App& job, Options& options) {
  auto* list = command(job, "list", "List jobs, newest first; never their payloads",
                       "  postrider job list --queue shipping --status failed\n"
                       "  postrider job list --job ship_order --limit 1000 --format json\n");
  auto& chosen = options.job;
  list->add_option("--queue", chosen.queue, "Only of this queue")->type_name("QUEUE");
  list->add_option("--job", chosen.name, "Only with this name")->type_name("JOB");
  list->add_option("--status", chosen.status,
                   "pending, dispatched, completed, failed, discarded or cancelled")
      ->type_name("STATUS")
      ->check(one_of({"pending", "dispatched", "completed", "failed", "discarded", "cancelled"}));
  list->add_option("--after", chosen.after, "The next page: only behind this job")->type_name("ID");
  list->add_option("--limit", chosen.limit, "Most of them, up to 10000 [100]")
      ->type_name("N")
      ->check(between(1, static_cast<std::int64_t>(most_listed)));
  add_format(*list, chosen.json);
  add_database(*list, options.database);
}

void add_job(App& app, Options& options) {
  auto* job = command(app, "job", "Enqueue jobs and look after them",
                      "  postrider job enqueue ship_order --queue shipping\n"
                      "  postrider job list --status failed\n");
  job->require_subcommand(1);
  auto& chosen = options.job;
  add_job_enqueue(*job, options);
  add_job_list(*job, options);
  auto* show = command(*job, "show", "Show one job with its worker, progress and deadline",
                       std::string("  postrider job show ") + an_id + "\n");
  add_job_id(*show, chosen);
  add_format(*show, chosen.json);
  add_database(*show, options.database);

  auto* cancel =
      command(*job, "cancel", "End a waiting job, or ask a running one to stop",
              std::string("  postrider job cancel ") + an_id + " --reason 'order withdrawn'\n");
  add_job_id(*cancel, chosen);
  add_operator(*cancel, chosen.reason, chosen.operator_name);
  add_format(*cancel, chosen.json);
  add_database(*cancel, options.database);

  auto* move = command(*job, "reschedule", "Move the due time of a waiting job",
                       std::string("  postrider job reschedule ") + an_id + "\n" +
                           "  postrider job reschedule " + an_id + " --delay 2h\n\n" +
                           "Without a time it is due at once.");
  add_job_id(*move, chosen);
  add_due_options(*move, chosen.event);
  add_operator(*move, chosen.reason, chosen.operator_name);
  add_format(*move, chosen.json);
  add_database(*move, options.database);
}

void add_queue(App& app, Options& options) {
  auto* queue = command(app, "queue", "Pause, resume and limit queues of jobs",
                        "  postrider queue list\n"
                        "  postrider queue pause mail --reason 'provider is down'\n"
                        "  postrider queue resume mail\n"
                        "  postrider queue limit mail 100/1m\n");
  queue->require_subcommand(1);
  auto& chosen = options.queue;
  auto* list = command(*queue, "list", "List queues with jobs, and what is said of them",
                       "  postrider queue list --format json\n");
  add_format(*list, chosen.json);
  add_database(*list, options.database);
  const auto change = [&](const std::string& name, const std::string& purpose,
                          const std::string& examples) {
    auto* made = command(*queue, name, purpose, examples);
    made->add_option("name", chosen.name, "The queue")->type_name("QUEUE")->required();
    add_operator(*made, chosen.reason, chosen.operator_name);
    add_database(*made, options.database);
    return made;
  };
  change("pause", "Take nothing from a queue; what runs goes on",
         "  postrider queue pause mail --reason 'provider is down'\n");
  change("resume", "Let a paused queue go on", "  postrider queue resume mail\n");
  auto* limit = change("limit", "Begin only so many jobs of a queue, over all workers",
                       "  postrider queue limit mail 100/1m       at most 100 in a minute\n"
                       "  postrider queue limit mail off\n");
  limit->add_option("rate", chosen.rate, "How many in how long, or off")
      ->type_name("N/DURATION")
      ->required();
}

void add_worker(App& app, Options& options) {
  auto* worker = command(
      app, "worker", "Run jobs by a command or an HTTP endpoint, until SIGTERM or SIGINT",
      "  postrider worker --queue shipping --exec python3 ship_order.py\n"
      "  postrider worker --queue mail:3 --queue reports --concurrency 20 --exec ./handle\n"
      "  postrider worker --queue mail --http http://127.0.0.1:8080/jobs\n"
      "  postrider worker --from amqp://rabbit/jobs --from-queue shipping --exec ./handle\n"
      "  postrider worker list\n\n"
      "--exec stands last: all behind it is the command, which gets the event as one line of\n"
      "JSON on standard input. Its exit code 0 is done, 75 retry, any other one fail.\n"
      "--from is for routes with `job` and `to`: their relay hands tasks to RabbitMQ, and\n"
      "--from-queue, which must exist, is where they arrive. --queue is for all other jobs.\n"
      "A password belongs into the configuration: worker.from, or POSTRIDER_WORKER_FROM.\n"
      "The first signal waits for what runs, the second asks it to stop. Exit code 75 when jobs\n"
      "were given back unfinished.");
  worker->require_subcommand(0, 1);
  auto& chosen = options.worker;
  worker
      ->add_option("--queue", chosen.queues,
                   "A queue to serve, with its share of the slots; may be repeated")
      ->type_name("QUEUE[:N]")
      ->allow_extra_args(false);
  worker->add_option("--from", chosen.from, "The broker whose tasks are run")->type_name("URL");
  worker->add_option("--from-queue", chosen.from_queue, "The queue of that broker")
      ->type_name("QUEUE");
  worker->add_option("--concurrency", chosen.concurrency, "Jobs at once, 1 to 1000 [10]")
      ->type_name("N")
      ->check(between(1, 1000));
  worker->add_option("--name", chosen.name, "A label for people [worker]")->type_name("TEXT");
  auto* http =
      worker->add_option("--http", chosen.http, "The endpoint that runs jobs")->type_name("URL");
  worker->add_option("--exec", chosen.exec, "The command that runs jobs")
      ->type_name("CMD...")
      ->excludes(http);
  worker
      ->add_option("--exec-output", chosen.exec_output,
                   "Its output: discarded, the tail shown when it fails, or all shown [discard]")
      ->type_name("discard|tail|inherit")
      ->check(one_of({"discard", "tail", "inherit"}));
  worker->add_option("--log-level", chosen.log_level, "Least severity that is logged [info]")
      ->type_name("debug|info|warning|error");
  worker->add_option("--log-format", chosen.log_format, "How log lines look [auto]")
      ->type_name("auto|json|text");
  add_database(*worker, options.database);

  auto* list = command(*worker, "list", "List workers and what they run",
                       "  postrider worker list\n"
                       "  postrider worker list --ended --format json\n");
  list->add_flag("--ended", chosen.ended, "Those that have stopped or died, too");
  add_format(*list, chosen.json);
  add_database(*list, options.database);
}

App* add_attempt_command(App& attempt, const std::string& name, const std::string& purpose,
                         const std::string& examples, Options& options) {
  auto* made = command(attempt, name, purpose, examples);
  auto& chosen = options.attempt;
  made->add_option("--delivery", chosen.delivery, "The job [POSTRIDER_DELIVERY_ID]")
      ->type_name("ID");
  made->add_option("--dispatch", chosen.dispatch, "The attempt [POSTRIDER_DISPATCH_ID]")
      ->type_name("ID");
  add_format(*made, chosen.json);
  add_database(*made, options.database);
  return made;
}

void add_attempt(App& app, Options& options) {
  auto* attempt = command(
      app, "attempt", "In a handler: ask and say how its attempt goes",
      "  postrider attempt current || exit 75\n"
      "  postrider attempt extend 10m\n"
      "  postrider attempt progress 40 --note 'page 4 of 10'\n"
      "  postrider attempt checkpoint page=4\n\n"
      "Exit code 0 while the attempt is current, 3 when another one has taken its place or the\n"
      "job has ended: then stop, as a result would change nothing. 4 when it is current and a\n"
      "person wants it to stop.");
  attempt->require_subcommand(1);
  auto& chosen = options.attempt;
  add_attempt_command(*attempt, "current", "Is this attempt still current?",
                      "  postrider attempt current || exit 75\n", options);
  add_attempt_command(*attempt, "extend", "Move the deadline to so long from now",
                      "  postrider attempt extend 10m\n", options)
      ->add_option("duration", chosen.duration, "Up to the job's timeout_limit")
      ->type_name("DURATION")
      ->required();
  auto* progress =
      add_attempt_command(*attempt, "progress", "Say how far it is, for people",
                          "  postrider attempt progress 40 --note 'page 4 of 10'\n", options);
  progress->add_option("percent", chosen.percent, "0 to 100")
      ->type_name("N")
      ->required()
      ->check(between(0, 100));
  progress->add_option("--note", chosen.note, "A few words without secrets, up to 200 bytes")
      ->type_name("TEXT");
  add_attempt_command(*attempt, "checkpoint", "Keep what the next attempt begins with",
                      "  postrider attempt checkpoint page=4\n"
                      "  postrider attempt checkpoint @state.json\n",
                      options)
      ->add_option("cursor", chosen.checkpoint,
                   "Up to 64 KiB; @FILE or - (standard input) reads it")
      ->type_name("TEXT")
      ->required();
}

}  // namespace

void add_job_commands(App& app, Options& options) {
  add_job(app, options);
  add_queue(app, options);
  add_worker(app, options);
  add_attempt(app, options);
}

}  // namespace postrider::cli
