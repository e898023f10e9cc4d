#include "config/keys.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <type_traits>

#include <postrider/webhook.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/duration.hpp"

namespace postrider::config {
namespace {

// A key without its setter and default, which come from the member it sets.
struct Head {
  std::string section;
  std::string name;
  std::string purpose;
};

constexpr std::int64_t ms = 1;
constexpr std::int64_t second = 1000 * ms;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;

std::string quoted(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("\"{}\"", text);
}

std::string shown(const std::string& value) {
  return quoted(value);
}
std::string shown(std::size_t value) {
  return std::to_string(value);
}
std::string shown(int value) {
  return std::to_string(value);
}
std::string shown(const std::optional<std::size_t>& value) {
  return value ? std::to_string(*value) : "";
}
std::string shown(bool value) {
  return value ? "true" : "false";
}
std::string shown(milliseconds value) {
  return quoted(duration_text(value));
}
std::string shown(const std::vector<std::string>& values) {
  if (values.empty()) return "[]";
  return fmt::format("[\"{}\"]", fmt::join(values, "\", \""));
}
std::string shown(const std::vector<milliseconds>& values) {
  std::vector<std::string> texts;
  std::transform(values.begin(), values.end(), std::back_inserter(texts), duration_text);
  return shown(texts);
}

void assign(std::string& member, const Checked& value) {
  member = std::get<std::string>(value);
}
void assign(std::size_t& member, const Checked& value) {
  member = static_cast<std::size_t>(std::get<std::int64_t>(value));
}
void assign(int& member, const Checked& value) {
  member = static_cast<int>(std::get<std::int64_t>(value));
}
void assign(std::optional<std::size_t>& member, const Checked& value) {
  member = static_cast<std::size_t>(std::get<std::int64_t>(value));
}
void assign(milliseconds& member, const Checked& value) {
  member = milliseconds(std::get<std::int64_t>(value));
}
void assign(bool& member, const Checked& value) {
  member = std::get<bool>(value);
}
void assign(std::vector<std::string>& member, const Checked& value) {
  member = std::get<std::vector<std::string>>(value);
}
void assign(std::vector<milliseconds>& member, const Checked& value) {
  member = std::get<std::vector<milliseconds>>(value);
}

// `member` finds the value that the key sets in a target; what it holds in fresh settings is the
// default.
template <class Member>
Key key(Head head, KeyType type, std::int64_t least, std::int64_t most, Member member) {
  Settings settings;
  RouteSettings route;
  ScheduleSettings schedule;
  Key made;
  made.section = std::move(head.section);
  made.name = std::move(head.name);
  made.purpose = std::move(head.purpose);
  made.type = type;
  made.least = least;
  made.most = most;
  made.default_value = shown(member(Target{&settings, &route, &schedule}));
  made.set = [member](const Target& target, const Checked& value) {
    assign(member(target), value);
  };
  return made;
}

// A choice's member is an enum: `parse` reads one of `values`.
template <class Member, class Enum, class Parse>
Key choice(Head head, std::vector<Enum> values, Parse parse, Member member) {
  Settings settings;
  RouteSettings route;
  ScheduleSettings schedule;
  Key made;
  made.section = std::move(head.section);
  made.name = std::move(head.name);
  made.purpose = std::move(head.purpose);
  made.type = KeyType::choice;
  for (const auto value : values)
    made.choices.emplace_back(to_string(value));
  made.default_value = quoted(to_string(member(Target{&settings, &route, &schedule})));
  made.set = [member, parse](const Target& target, const Checked& value) {
    member(target) = parse(std::get<std::string>(value)).value();
  };
  return made;
}

Key required(Key key) {
  key.required = true;
  return key;
}

Key expanding(Key key) {
  key.expands = true;
  return key;
}

Key secret(Key key) {
  key.expands = key.secret = true;
  return key;
}

Key identifier(Key key) {
  key.identifier = true;
  return key;
}

Key publish_only(Key key) {
  key.route_kind = RouteKind::publish;
  return key;
}

Key job_only(Key key) {
  key.route_kind = RouteKind::job;
  return key;
}

// What it holds is zero when it is off.
Key retention(Key key) {
  key.type = KeyType::retention;
  return key;
}

using K = KeyType;
#define MEMBER(path)             \
  [](const Target& t) -> auto& { \
    return t.path;               \
  }

std::vector<Key> top_keys() {
  return {
      expanding(required(key({"", "store", "The database, as a URL."}, K::text, 1, 4096,
                             MEMBER(settings->store)))),
      identifier(
          key({"", "schema", "PostgreSQL schema of the tables. Fixed with the first migration."},
              K::text, 1, 63, MEMBER(settings->names.schema))),
      identifier(
          key({"", "prefix", "Put before every table's name. Fixed with the first migration."},
              K::text, 1, 20, MEMBER(settings->names.prefix))),
  };
}

std::vector<Key> relay_keys() {
  const auto relay = [](std::string name, std::string purpose) {
    return Head{"relay", std::move(name), std::move(purpose)};
  };
  return {
      key(relay("name", "A label for people."), K::text, 1, 64, MEMBER(settings->relay.name)),
      key(relay("batch", "Events read at once."), K::integer, 1, 10'000,
          MEMBER(settings->relay.batch)),
      key(relay("batch_bytes", "Payload bytes read at once."), K::integer, 1 << 10, 1 << 30,
          MEMBER(settings->relay.batch_bytes)),
      key(relay("sleep", "Pause of an idle loop."), K::duration, 1, hour,
          MEMBER(settings->relay.sleep)),
      key(relay("lease_time", "How long a relay that says nothing keeps its partitions."),
          K::duration, 200 * ms, 10 * minute, MEMBER(settings->relay.lease_time)),
      key(relay("lease_renewal", "How often leases are renewed; at most a third of lease_time."),
          K::duration, 50 * ms, 200 * second, MEMBER(settings->relay.lease_renewal)),
      key(relay("settle_patience", "How long one slow route may delay the others' mark."),
          K::duration, 1, 10 * minute, MEMBER(settings->relay.settle_patience)),
      key(relay("probe_least", "First wait before a paused route is tried again."), K::duration, 1,
          hour, MEMBER(settings->relay.probe_least)),
      key(relay("probe_most", "The wait doubles up to this."), K::duration, 1, hour,
          MEMBER(settings->relay.probe_most)),
      key(relay("drain_timeout", "How long a stop waits for what is in flight."), K::duration, 0,
          hour, MEMBER(settings->relay.drain_timeout)),
      key(relay("store_timeout", "Patience of one call of the database."), K::duration, 100 * ms,
          10 * minute, MEMBER(settings->relay.store_timeout)),
      choice(relay("unrouted", "What becomes of an event that matches no route."),
             std::vector{Unrouted::hold, Unrouted::discard}, parse_unrouted,
             MEMBER(settings->relay.unrouted)),
      key(relay("max_passes", "Most passes of `relay --drain`; no limit when left out."),
          K::integer, 1, 1'000'000, MEMBER(settings->max_passes)),
  };
}

std::vector<Key> worker_keys() {
  const auto worker = [](std::string name, std::string purpose) {
    return Head{"worker", std::move(name), std::move(purpose)};
  };
  return {
      key(worker("name", "A label for people."), K::text, 1, 64, MEMBER(settings->worker.name)),
      key(worker("queues", "Queues to serve; \"mail:3\" gets three times the slots of \"rest\"."),
          K::texts, 1, 100, MEMBER(settings->worker_queues)),
      expanding(key(worker("from", "The broker whose tasks are run, beside the queues or alone."),
                    K::text, 1, 4096, MEMBER(settings->worker_source.url))),
      key(worker("from_queue", "The queue of that broker. Required with `from`."), K::text, 1, 255,
          MEMBER(settings->worker_source.queue)),
      key(worker("from_ca_file", "amqps: trusted authorities; the system's when left out."),
          K::text, 1, 4096, MEMBER(settings->worker_source.ca_file)),
      key(worker("from_certificate_file", "amqps: our own certificate."), K::text, 1, 4096,
          MEMBER(settings->worker_source.certificate_file)),
      key(worker("from_key_file", "amqps: the key of our certificate."), K::text, 1, 4096,
          MEMBER(settings->worker_source.key_file)),
      key(worker("concurrency", "Jobs at once."), K::integer, 1, 1000,
          MEMBER(settings->worker.concurrency)),
      key(worker("heartbeat", "How often a worker says that it lives."), K::duration, 50 * ms,
          10 * minute, MEMBER(settings->worker.heartbeat)),
      key(worker("dead_after",
                 "A worker that says nothing for so long is dead; at least four heartbeats, and "
                 "the same for all."),
          K::duration, 200 * ms, hour, MEMBER(settings->worker.dead_after)),
      key(worker("poll", "Longest wait before the queues are looked at again."), K::duration, 1,
          hour, MEMBER(settings->worker.poll)),
      key(worker("grace", "How long a stop waits for running jobs."), K::duration, 0, day,
          MEMBER(settings->worker.grace)),
      key(worker("hard_grace", "How long it then waits for those that were asked to stop."),
          K::duration, 0, hour, MEMBER(settings->worker.hard_grace)),
      key(worker("kill_grace", "From the stop request at a job's deadline to its kill."),
          K::duration, 0, hour, MEMBER(settings->worker.kill_grace)),
      key(worker("ageing", "A job gains one priority for each of these that it waits; 0s: never."),
          K::duration, 0, 7 * day, MEMBER(settings->worker.ageing)),
  };
}

std::vector<Key> retention_keys() {
  const auto kept = [](std::string name, std::string purpose, auto member) {
    return retention(key({"retention", std::move(name), std::move(purpose)}, K::duration,
                         Retention::least.count(), Retention::most.count(), member));
  };
  return {
      kept("events", "How long an event is kept after its completion.",
           MEMBER(settings->relay.retention.events)),
      kept("keys", "How long an idempotency key is remembered.",
           MEMBER(settings->relay.retention.keys)),
      kept("receipts", "How long the inbox remembers a message; longer than a copy may take.",
           MEMBER(settings->relay.retention.receipts)),
      kept("workers", "How long a worker that has stopped or died is listed.",
           MEMBER(settings->relay.retention.workers)),
  };
}

std::vector<Key> log_keys() {
  return {
      choice({"log", "format", "How log lines look; auto is text on a terminal, else JSON."},
             std::vector{LogFormat::automatic, LogFormat::json, LogFormat::text}, parse_log_format,
             MEMBER(settings->log_format)),
      choice({"log", "level", "The least severity that is logged."},
             std::vector{Severity::debug, Severity::info, Severity::warning, Severity::error},
             parse_severity, MEMBER(settings->log_level)),
  };
}

std::vector<Key> schedule_keys() {
  const auto schedules = [](std::string name, std::string purpose) {
    return Head{"schedules", std::move(name), std::move(purpose)};
  };
  return {
      required(key(schedules("name", "What rows, logs and commands show."), K::text, 1, 64,
                   MEMBER(schedule->schedule.name))),
      required(key(schedules("cron",
                             "When: minute, hour, day of month, month, day of week; or @hourly, "
                             "@daily, @weekly, @monthly, @yearly."),
                   K::text, 1, 256, MEMBER(schedule->schedule.cron))),
      key(schedules("time_zone", "Whose clock that is: UTC, Europe/Berlin."), K::text, 1, 64,
          MEMBER(schedule->schedule.time_zone)),
      required(key(schedules("type", "The type of the event that is written."), K::text, 1, 255,
                   MEMBER(schedule->schedule.type))),
      key(schedules("aggregate", "Its aggregate, as TYPE/ID."), K::text, 3, 511,
          MEMBER(schedule->aggregate)),
      key(schedules("payload", "Its payload."), K::text, 1, 1 << 16,
          MEMBER(schedule->schedule.payload)),
      choice(schedules("missed",
                       "What becomes of slots that nobody was there to run: nothing, the latest "
                       "is run, or each."),
             std::vector{Missed::skip, Missed::one, Missed::all}, parse_missed,
             MEMBER(schedule->schedule.missed)),
      key(schedules("most_missed", "With missed = \"all\": at most so many, the latest."),
          K::integer, 1, Schedule::greatest_most_missed, MEMBER(schedule->schedule.most_missed)),
  };
}

std::vector<Key> route_keys() {
  const auto routes = [](std::string name, std::string purpose) {
    return Head{"routes", std::move(name), std::move(purpose)};
  };
  return {
      required(key(routes("name", "What rows, logs and commands show."), K::text, 1, 64,
                   MEMBER(route->route.name))),
      key(routes("events", "Event types: order.placed, order.*, or *."), K::texts, 1, 1000,
          MEMBER(route->route.events)),
      expanding(key(routes("to", "The destination, as a URL. Required without a job."), K::text, 1,
                    4096, MEMBER(route->route.destination))),
      publish_only(choice(routes("order", "What keeps its order."),
                          std::vector{Order::aggregate, Order::global, Order::none}, parse_order,
                          MEMBER(route->route.order))),
      key(routes("retry_delays", "Waits before the next tries; [] means no retry."), K::durations,
          0, static_cast<std::int64_t>(Route::most_retry_delays),
          MEMBER(route->route.retry_delays)),
      key(routes("timeout", "How long an attempt may stay unanswered; 1h at most without a job."),
          K::duration, 100 * ms, 7 * day, MEMBER(route->route.timeout)),
      publish_only(choice(routes("on_failed", "What a dead letter does to its successors."),
                          std::vector{OnFailed::halt, OnFailed::skip, OnFailed::stop},
                          parse_on_failed, MEMBER(route->route.on_failed))),
      publish_only(choice(routes("record", "Which deliveries become rows."),
                          std::vector{Record::open, Record::all}, parse_record,
                          MEMBER(route->route.record))),
      publish_only(key(routes("window", "Messages in flight at once."), K::integer, 1,
                       static_cast<std::int64_t>(Route::most_window), MEMBER(route->route.window))),
      key(routes("outage_counts", "An outage of the destination uses up retries."), K::boolean, 0,
          0, MEMBER(route->route.outage_counts)),
  };
}

template <class Member>
Key hook(std::string name, std::string_view when, Member member) {
  const auto most_bytes = static_cast<std::int64_t>(EventLimits{}.name_bytes);
  return key(Head{"routes", std::move(name), fmt::format("The event that is written {}.", when)},
             K::text, 1, most_bytes, member);
}

std::vector<Key> job_keys() {
  const auto routes = [](std::string name, std::string purpose) {
    return Head{"routes", std::move(name), std::move(purpose)};
  };
  std::vector<Key> keys = {
      key(routes("queue", "Where the job's tasks wait for a worker. Required with a job."), K::text,
          1, 64, MEMBER(route->job.queue)),
      choice(routes("on_worker_death", "What becomes of a job whose worker died."),
             std::vector{OnWorkerDeath::fail, OnWorkerDeath::retry}, parse_on_worker_death,
             MEMBER(route->job.on_worker_death)),
      key(routes("max_deaths",
                 "With on_worker_death = \"retry\": the death after so many is final."),
          K::integer, 0, JobPolicy::most_max_deaths, MEMBER(route->job.max_deaths)),
      key(routes("priority", "Lower goes first."), K::integer, JobPolicy::least_priority,
          JobPolicy::most_priority, MEMBER(route->job.priority)),
      key(routes("serial_key", "Jobs of a queue with equal keys run in order; a template."),
          K::text, 1, static_cast<std::int64_t>(JobPolicy::most_key_bytes),
          MEMBER(route->job.serial_key)),
      key(routes("serial_limit", "How many of them run at once."), K::integer, 1,
          JobPolicy::most_serial_limit, MEMBER(route->job.serial_limit)),
      key(routes("unique_key", "While a job with this key is open, no second is made; a template."),
          K::text, 1, static_cast<std::int64_t>(JobPolicy::most_key_bytes),
          MEMBER(route->job.unique_key)),
      key(routes("timeout_limit", "How far an attempt may extend its timeout."), K::duration,
          100 * ms, 7 * day, MEMBER(route->job.timeout_limit)),
      hook("completed_event", "when the job has completed",
           MEMBER(route->job.hooks.completed_event)),
      hook("retry_event", "when an attempt failed and another follows",
           MEMBER(route->job.hooks.retry_event)),
      hook("failed_event", "when the job has failed for good",
           MEMBER(route->job.hooks.failed_event)),
      hook("death_event", "when a worker died", MEMBER(route->job.hooks.death_event)),
  };
  std::transform(keys.begin(), keys.end(), keys.begin(), job_only);
  keys.insert(keys.begin(),
              key(routes("job", "Makes a job of each event: what a handler is bound to."), K::text,
                  1, 64, MEMBER(route->job.job)));
  return keys;
}

std::vector<Key> amqp_keys() {
  const auto amqp = [](std::string name, std::string purpose) {
    return Head{"routes.amqp", std::move(name), std::move(purpose)};
  };
  return {
      key(amqp("exchange", "The exchange; the default exchange when left out."), K::text, 1, 255,
          MEMBER(route->amqp.exchange)),
      key(amqp("routing_key",
               "With {type}, {aggregate_type}, {aggregate_id} and {header:NAME} replaced."),
          K::text, 1, 1024, MEMBER(route->amqp.routing_key)),
      choice(amqp("unroutable", "What becomes of a message that reaches no queue."),
             std::vector{Unroutable::fail, Unroutable::retry}, parse_unroutable,
             MEMBER(route->amqp.unroutable)),
      key(amqp("ca_file", "amqps: trusted authorities; the system's when left out."), K::text, 1,
          4096, MEMBER(route->amqp.ca_file)),
      key(amqp("certificate_file", "amqps: our own certificate."), K::text, 1, 4096,
          MEMBER(route->amqp.certificate_file)),
      key(amqp("key_file", "amqps: its private key."), K::text, 1, 4096,
          MEMBER(route->amqp.key_file)),
      key(amqp("heartbeat", "How soon a dead connection is noticed."), K::duration, second,
          10 * minute, MEMBER(route->amqp.heartbeat)),
      key(amqp("connect_timeout", "Patience of connecting."), K::duration, 100 * ms, 10 * minute,
          MEMBER(route->amqp.connect_timeout)),
  };
}

std::vector<Key> http_keys() {
  const auto http = [](std::string name, std::string purpose) {
    return Head{"routes.http", std::move(name), std::move(purpose)};
  };
  const auto count = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  return {
      secret(key(http("secrets", "whsec_…, by reference; the first one signs first."), K::texts, 1,
                 count(WebhookKeys::most_keys), MEMBER(route->http.secrets))),
      secret(key(http("headers", "\"Name: value\" for every request, such as Authorization."),
                 K::texts, 1, 32, MEMBER(route->http.headers))),
      choice(http("format", "How an event is told beside its payload."),
             std::vector{HttpFormat::plain, HttpFormat::cloudevents}, parse_http_format,
             MEMBER(route->http.format)),
      key(http("source", "With cloudevents: whose ids these are, as a URI."), K::text, 1, 255,
          MEMBER(route->http.source)),
      key(http("idempotency_key", "Also send the event's id as Idempotency-Key."), K::boolean, 0, 0,
          MEMBER(route->http.idempotency_key)),
      key(http("statuses", "Changes of what statuses mean: \"404=rejected\", \"5xx=unavailable\"."),
          K::texts, 1, 100, MEMBER(route->http.statuses)),
      key(http("plain_http", "Allows http://, which everybody on the way can read."), K::boolean, 0,
          0, MEMBER(route->http.plain_http)),
      key(http("allow", "Addresses and ranges that are allowed although they are not public."),
          K::texts, 1, 100, MEMBER(route->http.allow)),
      expanding(key(http("proxy", "http://host:port; the environment's is not used."), K::text, 1,
                    4096, MEMBER(route->http.proxy))),
      key(http("ca_file", "Trusted authorities; the system's when left out."), K::text, 1, 4096,
          MEMBER(route->http.ca_file)),
      key(http("certificate_file", "Our own certificate."), K::text, 1, 4096,
          MEMBER(route->http.certificate_file)),
      key(http("key_file", "Its private key."), K::text, 1, 4096, MEMBER(route->http.key_file)),
      key(http("connections", "Requests at once."), K::integer, 1,
          count(HttpOptions::most_connections), MEMBER(route->http.connections)),
      key(http("rate", "Requests begun per second; 0: no limit."), K::integer, 0,
          count(HttpOptions::most_rate), MEMBER(route->http.rate)),
      key(http("connect_timeout", "Patience of name, connection and TLS together."), K::duration,
          100 * ms, HttpOptions::most_connect_timeout.count(), MEMBER(route->http.connect_timeout)),
      key(http("most_retry_after", "The longest pause that an endpoint can ask for."), K::duration,
          second, HttpOptions::longest_pause.count(), MEMBER(route->http.most_retry_after)),
      key(http("gone_after", "How long it has to answer 410, and nothing else, to be gone."),
          K::duration, 0, HttpOptions::longest_pause.count(), MEMBER(route->http.gone_after)),
  };
}

#undef MEMBER

/// What may be read by others: a reference, and the name of a header.
std::string masked(const std::string& text) {
  if (text.find("${") != std::string::npos) return text;
  const auto colon = text.find(':');
  const auto name = colon == std::string::npos ? std::string() : text.substr(0, colon) + ": ";
  return name + std::string(secret_mask);
}

std::vector<Key> make_keys() {
  std::vector<Key> keys;
  for (auto&& part : {top_keys(), relay_keys(), worker_keys(), retention_keys(), log_keys(),
                      schedule_keys(), route_keys(), job_keys(), amqp_keys(), http_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace

std::string_view to_string(LogFormat format) noexcept {
  switch (format) {
    case LogFormat::automatic:
      return "auto";
    case LogFormat::json:
      return "json";
    case LogFormat::text:
      return "text";
  }
  return "auto";
}

std::optional<LogFormat> parse_log_format(std::string_view text) noexcept {
  for (const auto format : {LogFormat::automatic, LogFormat::json, LogFormat::text}) {
    if (to_string(format) == text) return format;
  }
  return std::nullopt;
}

std::optional<Severity> parse_severity(std::string_view text) noexcept {
  for (const auto severity :
       {Severity::debug, Severity::info, Severity::warning, Severity::error}) {
    if (to_string(severity) == text) return severity;
  }
  return std::nullopt;
}

const std::vector<Key>& all_keys() {
  static const auto keys = make_keys();
  return keys;
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const auto& key : all_keys()) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

bool is_section(std::string_view section) {
  const auto& keys = all_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const Key& key) { return key.section == section; });
}

bool applies(const Key& key, const Route& route) noexcept {
  return key.route_kind == RouteKind::any ||
         (key.route_kind == RouteKind::job) == route.job.has_value();
}

std::string default_text(const Key& key, const Route& route) {
  if (route.job && key.name == "timeout") return shown(JobPolicy::default_timeout);
  return key.default_value;
}

std::string full_name(const Key& key) {
  return key.section.empty() ? key.name : key.section + "." + key.name;
}

std::string environment_name(const Key& key) {
  if (key.section.starts_with("routes") || key.section == "schedules") return {};
  auto name = "POSTRIDER_" + full_name(key);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '.' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

std::string value_text(const Key& key, const Checked& value) {
  if (key.secret) {
    auto texts = std::get<std::vector<std::string>>(value);
    std::transform(texts.begin(), texts.end(), texts.begin(), masked);
    return shown(texts);
  }
  const auto* const count = std::get_if<std::int64_t>(&value);
  if (key.type == KeyType::retention && *count == 0) return quoted("off");
  if (key.type == KeyType::duration || key.type == KeyType::retention) {
    return shown(milliseconds(*count));
  }
  return std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<decltype(held), const std::int64_t&>) {
          return std::to_string(held);
        } else {
          return shown(held);
        }
      },
      value);
}

std::string range_text(const Key& key) {
  const auto duration = [](std::int64_t count) { return duration_text(milliseconds(count)); };
  switch (key.type) {
    case KeyType::text:
      return fmt::format("a text of {} to {} bytes{}", key.least, key.most,
                         key.identifier ? " of a-z, 0-9 and _" : "");
    case KeyType::integer:
      return fmt::format("a whole number from {} to {}", key.least, key.most);
    case KeyType::duration:
      return fmt::format("a duration from {} to {}", duration(key.least), duration(key.most));
    case KeyType::retention:
      return fmt::format("a duration from {} to {}, or off", duration(key.least),
                         duration(key.most));
    case KeyType::boolean:
      return "true or false";
    case KeyType::choice:
      return fmt::format("one of {}", fmt::join(key.choices, ", "));
    case KeyType::texts:
      return fmt::format("a list of {} to {} texts", key.least, key.most);
    case KeyType::durations:
      return fmt::format("a list of {} to {} durations from 1ms to 30d", key.least, key.most);
  }
  return {};
}

}  // namespace postrider::config
