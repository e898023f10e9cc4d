// Every command with its options, but for those of jobs and schedules, which stand in
// job_commands.cpp and schedule_commands.cpp. These three, command_parts.cpp and command_line.cpp
// are the files that see CLI11.

#include "cli/command_tree.hpp"

#include <CLI/CLI.hpp>

#include <postrider/listing.hpp>

#include "cli/command_parts.hpp"

namespace postrider::cli {
namespace {

using CLI::App;

constexpr std::int64_t most_count = 1'000'000'000'000;
constexpr auto most_page = static_cast<std::int64_t>(most_listed);

// The help says in words, or a usage error does, what an option needs and excludes; CLI11 would put
// all of it before the description.
class PlainFormatter final : public CLI::Formatter {
 public:
  PlainFormatter() { column_width(32); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const auto type = option->get_type_name();
    return type.empty() ? "" : " " + type;
  }
};

void add_init(App& app, Options& options) {
  auto* init = command(app, "init", "Write a commented postrider.toml with one route",
                       "  postrider init --store sqlite:app.db --to file:events.jsonl\n"
                       "  postrider init --store 'postgresql://app@localhost/app' --to stdout:\n");
  init->add_option("--store", options.init.store, "The database [sqlite:app.db]")->type_name("URL");
  init->add_option("--to", options.init.to, "Where all events go [file:events.jsonl]")
      ->type_name("URL");
  init->add_option("--config", options.database.config, "File to write [postrider.toml]")
      ->type_name("FILE");
  init->add_flag("--force", options.init.force, "Replace an existing file");
}

void add_migrate(App& app, Options& options) {
  auto* migrate = command(app, "migrate", "Create the tables, or bring them up to date",
                          "  postrider migrate\n"
                          "  postrider migrate --status\n"
                          "  postrider migrate --print > postrider.sql\n"
                          "  postrider migrate --down-to 0\n");
  auto& chosen = options.migrate;
  auto* print = migrate->add_flag("--print", chosen.print, "Print the SQL and change nothing");
  auto* status = migrate->add_flag("--status", chosen.status, "List the steps, change nothing");
  auto* down = migrate->add_option("--down-to", chosen.down_to, "Take steps back down to this one")
                   ->type_name("N")
                   ->check(CLI::Range(0, 999).description(""));
  migrate->add_flag("--even-with-rows", chosen.even_with_rows, "Take steps back that lose rows")
      ->needs(down);
  print->excludes(status)->excludes(down);
  status->excludes(down);
  add_database(*migrate, options.database);
}

void add_relay(App& app, Options& options) {
  auto* relay = command(app, "relay", "Carry events to their destinations: one pass, or a daemon",
                        "  postrider relay                        one pass\n"
                        "  postrider relay --drain                until nothing is due\n"
                        "  postrider relay --loop                 until SIGTERM or SIGINT\n"
                        "  postrider relay --loop --sleep 5\n");
  auto& chosen = options.relay;
  auto* loop = relay->add_flag("--loop", chosen.loop, "Run until SIGTERM or SIGINT");
  auto* drain = relay->add_flag("--drain", chosen.drain, "Repeat until nothing is due");
  relay->add_option("--max-passes", chosen.max_passes, "Most passes of --drain, from 1 on")
      ->type_name("N")
      ->check(between(1, 1'000'000))
      ->needs(drain);
  relay
      ->add_option("--sleep", chosen.sleep,
                   "Seconds to wait when there is nothing to do, 1 to 3600 [1]")
      ->type_name("N")
      ->check(between(1, 3600));
  relay
      ->add_option("--log-level", chosen.log_level,
                   "Least severity that is logged [info with --loop, else warning]")
      ->type_name("debug|info|warning|error");
  relay->add_option("--log-format", chosen.log_format, "How log lines look [auto]")
      ->type_name("auto|json|text");
  add_format(*relay, chosen.json);
  add_database(*relay, options.database);
  loop->excludes(drain);
}

void add_emit(App& app, Options& options) {
  auto* emit = command(
      app, "emit", "Write events into the outbox",
      "  postrider emit --type order.placed --aggregate order/1 --payload '{\"id\":1}'\n"
      "  postrider emit --type report.made --payload @report.pdf --content-type application/pdf\n"
      "  postrider emit --type order.placed --key orders-api/request-17 --payload '{}'\n"
      "  postrider emit --type reminder.sent --available-at 2026-12-01T08:00:00+01:00\n"
      "  date | postrider emit --type clock.read --payload - --content-type text/plain\n"
      "  postrider emit --jsonl < events.jsonl\n");
  auto& chosen = options.emit;
  auto* type = emit->add_option("--type", chosen.type, "Event type, such as order.placed")
                   ->type_name("TYPE");
  emit->add_option("--aggregate", chosen.aggregate, "What the event belongs to; keeps its order")
      ->type_name("TYPE/ID")
      ->needs(type);
  emit->add_option("--aggregate-version", chosen.aggregate_version, "Unique per aggregate")
      ->type_name("N")
      ->needs(type);
  emit->add_option("--payload", chosen.payload, "The payload; @FILE or - (standard input) reads it")
      ->type_name("TEXT")
      ->needs(type);
  emit->add_option("--content-type", chosen.content_type, "Its media type [application/json]")
      ->type_name("TYPE")
      ->needs(type);
  emit->add_option("--header", chosen.headers, "A header; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->needs(type);
  emit->add_option("--id", chosen.id, "The event's identity, a UUID [a new one]")
      ->type_name("UUID")
      ->needs(type);
  emit->add_option("--key", chosen.key, "Idempotency key: a repetition writes no second event")
      ->type_name("SCOPE/KEY")
      ->needs(type);
  auto* available_at = emit->add_option("--available-at", chosen.available_at,
                                        "Not to be delivered before this time")
                           ->type_name("TIME")
                           ->needs(type);
  emit->add_option("--delay", chosen.delay, "Not to be delivered for so long, by this clock")
      ->type_name("DURATION")
      ->needs(type)
      ->excludes(available_at);
  auto* jsonl = emit->add_flag("--jsonl", chosen.jsonl, "Read JSON Lines from standard input");
  emit->add_option("--from-line", chosen.from_line,
                   "With --jsonl: skip the lines before this one [1]")
      ->type_name("N")
      ->check(between(1, most_count))
      ->needs(jsonl);
  type->excludes(jsonl);
  add_database(*emit, options.database);
}

void add_status(App& app, Options& options) {
  auto* status = command(app, "status", "Show what is in the outbox; only reads, asks no broker",
                         "  postrider status\n"
                         "  postrider status --format json | jq .events.unrouted\n");
  add_format(*status, options.status.json);
  add_database(*status, options.database);
}

void add_events(App& app, Options& options) {
  auto* events = command(app, "events", "List events, newest first; never their payloads",
                         "  postrider events --state unrouted\n"
                         "  postrider events --aggregate order/1 --since 1d\n"
                         "  postrider events --type order.placed --limit 1000 --format json\n"
                         "  postrider events show 01890a5d-ac96-774b-bcce-b302099a8057\n");
  events->require_subcommand(0, 1);
  auto& chosen = options.events;
  events->add_option("--id", chosen.id, "Only this one")->type_name("UUID");
  events->add_option("--type", chosen.type, "Only of this type")->type_name("TYPE");
  events->add_option("--aggregate", chosen.aggregate, "Only of this aggregate")
      ->type_name("TYPE/ID");
  events->add_option("--state", chosen.state, "Only those that stand there")
      ->type_name("unrouted|routed|held")
      ->check(one_of({"unrouted", "routed", "held"}));
  events->add_option("--since", chosen.since, "Written at most so long ago")->type_name("DURATION");
  events->add_option("--until", chosen.until, "Written at least so long ago")
      ->type_name("DURATION");
  events->add_option("--after", chosen.after, "The next page: only below this seq")
      ->type_name("SEQ")
      ->check(between(0, most_count));
  events->add_option("--limit", chosen.limit, "Most of them, up to 10000 [100]")
      ->type_name("N")
      ->check(between(1, most_page));
  add_format(*events, chosen.json);
  add_database(*events, options.database);

  auto* show = command(*events, "show", "Show one event and its deliveries, with their history",
                       "  postrider events show 01890a5d-ac96-774b-bcce-b302099a8057\n"
                       "  postrider events show 01890a5d-ac96-774b-bcce-b302099a8057 --payload\n");
  show->add_option("id", chosen.id, "The event")->type_name("ID")->required();
  show->add_flag("--payload", chosen.payload,
                 "With the payload, which may be anybody's secret; as base64 when it is no text");
  add_format(*show, chosen.json);
  add_database(*show, options.database);
}

void add_deliveries(App& app, Options& options) {
  auto* deliveries =
      command(app, "deliveries", "List stored deliveries: open, failed or recorded ones",
              "  postrider deliveries --route orders --status pending\n"
              "  postrider deliveries --due --limit 1000 --format json\n"
              "  postrider deliveries --event 01890a5d-ac96-774b-bcce-b302099a8057 --history\n"
              "  postrider deliveries show 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b\n");
  deliveries->require_subcommand(0, 1);
  auto& chosen = options.deliveries;
  deliveries->add_option("--route", chosen.route, "Only of this route")->type_name("NAME");
  deliveries
      ->add_option("--status", chosen.status,
                   "held, pending, dispatched, completed, failed, discarded or cancelled")
      ->type_name("STATUS")
      ->check(one_of(
          {"held", "pending", "dispatched", "completed", "failed", "discarded", "cancelled"}));
  deliveries->add_option("--event", chosen.event, "Only of this event")->type_name("UUID");
  deliveries->add_option("--aggregate", chosen.aggregate, "Only of this aggregate")
      ->type_name("TYPE/ID");
  deliveries->add_flag("--due", chosen.due, "Only pending ones whose time has come");
  deliveries->add_flag("--history", chosen.history, "Earlier generations, too");
  deliveries->add_option("--after", chosen.after, "The next page: only behind this delivery")
      ->type_name("ID");
  deliveries->add_option("--limit", chosen.limit, "Most of them, up to 10000 [100]")
      ->type_name("N")
      ->check(between(1, most_page));
  add_format(*deliveries, chosen.json);
  add_database(*deliveries, options.database);

  auto* show = command(*deliveries, "show", "Show one delivery",
                       "  postrider deliveries show 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b\n");
  show->add_option("id", chosen.id, "The delivery")->type_name("ID")->required();
  add_format(*show, chosen.json);
  add_database(*show, options.database);
}

void add_doctor(App& app, Options& options) {
  auto* doctor = command(app, "doctor", "Say what is wrong with database and configuration",
                         "  postrider doctor\n"
                         "  postrider doctor --as writer --store postgresql://app@localhost/app\n"
                         "  postrider doctor --deep --strict --format json\n\n"
                         "Only looks. Exit code 0 without errors, 1 with one.");
  auto& chosen = options.doctor;
  doctor->add_option("--as", chosen.as, "Whose rights the role needs [relay]")
      ->type_name("relay|worker|writer|reader")
      ->check(one_of({"relay", "worker", "writer", "reader"}));
  doctor->add_flag("--deep", chosen.deep, "Check whole tables, which may take minutes");
  doctor->add_flag("--strict", chosen.strict, "A warning counts as an error, too");
  add_format(*doctor, chosen.json);
  add_database(*doctor, options.database);
}

void add_config(App& app, Options& options) {
  auto* config = command(app, "config", "Look at the configuration; asks no database",
                         "  postrider config check\n"
                         "  postrider config show --format json\n");
  config->require_subcommand(1);
  auto* check = command(*config, "check", "Say everything that is wrong with it",
                        "  postrider config check --config /etc/postrider/postrider.toml\n");
  add_format(*check, options.config.json);
  add_database(*check, options.database);
  auto* show = command(*config, "show", "Show every value and where it comes from; no secret",
                       "  postrider config show\n"
                       "  POSTRIDER_RELAY_BATCH=50 postrider config show | grep batch\n");
  add_format(*show, options.config.json);
  add_database(*show, options.database);
}

void add_check(App& app, Options& options) {
  auto* check = command(app, "check", "Compare the status with thresholds, for monitoring",
                        "  postrider check\n"
                        "  postrider check --max-unrouted-age 30s --max-failed 10\n\n"
                        "Exit code 0 when all hold, 1 when one is exceeded.");
  auto& chosen = options.check;
  check->add_option("--max-unrouted-age", chosen.max_unrouted_age, "Oldest event not routed [5m]")
      ->type_name("DURATION");
  check->add_option("--max-due-age", chosen.max_due_age, "Oldest delivery due [15m]")
      ->type_name("DURATION");
  check->add_option("--max-failed", chosen.max_failed, "Dead letters [0]")
      ->type_name("N")
      ->check(between(0, most_count));
  check->add_option("--max-overdue", chosen.max_overdue, "Deliveries without their result [0]")
      ->type_name("N")
      ->check(between(0, most_count));
  check->add_flag("--allow-paused", chosen.allow_paused,
                  "A paused route or schedule is no finding");
  add_format(*check, chosen.json);
  add_database(*check, options.database);
}

void add_dead_filter(App& app, DeadOptions& chosen, std::int64_t most, const char* limit) {
  app.add_option("--route", chosen.route, "Only of this route")->type_name("NAME");
  app.add_option("--type", chosen.type, "Only events of this type")->type_name("TYPE");
  app.add_option("--code", chosen.code, "Only with this failure code")->type_name("CODE");
  app.add_option_function<std::string>(
         "--ambiguous", [&chosen](const std::string& word) { chosen.ambiguous = word == "yes"; },
         "Only those that may (not) have arrived")
      ->type_name("yes|no")
      ->check(one_of({"yes", "no"}));
  app.add_option("--limit", chosen.limit, limit)->type_name("N")->check(between(1, most));
}

void add_dead_change(App& dead, const std::string& name, const std::string& purpose,
                     const std::string& examples, Options& options) {
  auto* change = command(dead, name, purpose, examples);
  auto& chosen = options.dead;
  change->add_option("ids", chosen.ids, "Deliveries, as `dead list` shows them")->type_name("ID");
  add_dead_filter(*change, chosen, most_count, "Most of them, oldest first [no limit]");
  change->add_flag("--all", chosen.all, "All dead letters, when nothing else selects some");
  change->add_flag("--dry-run", chosen.dry_run, "Show the first and how many, change nothing");
  change->add_flag("--yes", chosen.yes, "Do not ask");
  add_operator(*change, chosen.reason, chosen.operator_name);
  add_database(*change, options.database);
}

void add_dead(App& app, Options& options) {
  auto* dead = command(app, "dead", "Look after deliveries that have failed for good",
                       "  postrider dead list\n"
                       "  postrider dead retry --route orders --reason 'broker is back'\n");
  dead->require_subcommand(1);
  auto* list = command(*dead, "list", "List dead letters",
                       "  postrider dead list --route orders --format json\n");
  add_dead_filter(*list, options.dead, 100'000, "Most of them [1000]");
  add_format(*list, options.dead.json);
  add_database(*list, options.database);

  auto* show = command(*dead, "show", "Show one dead letter; never its payload",
                       "  postrider dead show 01890a5d-ac96-774b-bcce-b302099a8057\n");
  show->add_option("id", options.dead.ids, "The delivery")
      ->type_name("ID")
      ->required()
      ->expected(1);
  add_format(*show, options.dead.json);
  add_database(*show, options.database);

  add_dead_change(*dead, "retry", "Give dead letters a new life, due at once",
                  "  postrider dead retry 01890a5d-ac96-774b-bcce-b302099a8057\n"
                  "  postrider dead retry --code timeout --dry-run\n"
                  "  postrider dead retry --all --yes --reason 'broker is back'\n",
                  options);
  add_dead_change(*dead, "discard", "Give dead letters up; their aggregates go on",
                  "  postrider dead discard --type cart.viewed --reason 'nobody needs them'\n",
                  options);
}

void add_route(App& app, Options& options) {
  auto* route = command(app, "route", "Pause and resume routes",
                        "  postrider route list\n"
                        "  postrider route pause orders --reason 'broker upgrade'\n"
                        "  postrider route resume orders\n");
  route->require_subcommand(1);
  auto& chosen = options.route;
  auto* list = command(*route, "list", "List routes, and which are paused",
                       "  postrider route list --format json\n");
  add_format(*list, chosen.json);
  add_database(*list, options.database);
  for (const auto* name : {"pause", "resume"}) {
    auto* change =
        command(*route, name,
                std::string(name) == "pause" ? "Stop deliveries of a route; its events wait"
                                             : "Let a paused or stopped route go on",
                std::string("  postrider route ") + name + " orders\n");
    change->add_option("name", chosen.name, "The route")->type_name("NAME")->required();
    add_operator(*change, chosen.reason, chosen.operator_name);
    add_database(*change, options.database);
  }
}

void add_purge(App& app, Options& options) {
  auto* purge = command(
      app, "purge", "Delete what is older than its retention",
      "  postrider purge                             each by its retention\n"
      "  postrider purge --events --older-than 30d --dry-run\n"
      "  postrider purge --receipts --older-than 90d --reason 'disk'\n\n"
      "An event goes only if nothing of it is open or a dead letter. relay --loop does the\n"
      "same by itself.");
  auto& chosen = options.purge;
  purge->add_flag("--events", chosen.events, "Events, counted from their completion");
  purge->add_flag("--keys", chosen.keys, "Idempotency keys");
  purge->add_flag("--receipts", chosen.receipts, "Receipts of the inbox");
  purge->add_flag("--workers", chosen.workers, "Workers that have stopped or died");
  purge->add_option("--older-than", chosen.older_than, "Instead of the configured retention")
      ->type_name("DURATION");
  purge->add_flag("--dry-run", chosen.dry_run, "Count, delete nothing");
  add_operator(*purge, chosen.reason, chosen.operator_name);
  add_database(*purge, options.database);
}

void add_rest(App& app, Options& options) {
  auto* version = command(app, "version", "Show the version, and those of the client libraries",
                          "  postrider version --format json\n");
  add_format(*version, options.version.json);
  auto* completion = command(app, "completion", "Print a completion script for a shell",
                             "  source <(postrider completion bash)\n");
  completion->require_subcommand(1);
  command(*completion, "bash", "For bash", "  source <(postrider completion bash)\n");
}

}  // namespace

std::unique_ptr<App> make_app(Options& options) {
  auto app = std::make_unique<App>("Carries events out of a SQL database, reliably and in order.",
                                   "postrider");
  app->require_subcommand(1);
  app->formatter(std::make_shared<PlainFormatter>());  // commands added below inherit it
  app->footer(
      "The first four commands:\n"
      "  postrider init --store sqlite:app.db --to file:events.jsonl\n"
      "  postrider migrate\n"
      "  postrider emit --type order.placed --aggregate order/1 --payload '{\"id\":1}'\n"
      "  postrider relay\n\n"
      "`postrider COMMAND --help` tells more. Settings: flags, then POSTRIDER_... in the\n"
      "environment, then postrider.toml.");
  add_init(*app, options);
  add_migrate(*app, options);
  add_emit(*app, options);
  add_relay(*app, options);
  add_status(*app, options);
  add_events(*app, options);
  add_deliveries(*app, options);
  add_check(*app, options);
  add_doctor(*app, options);
  add_config(*app, options);
  add_dead(*app, options);
  add_route(*app, options);
  add_job_commands(*app, options);
  add_schedule_commands(*app, options);
  add_purge(*app, options);
  add_rest(*app, options);
  return app;
}

}  // namespace postrider::cli
