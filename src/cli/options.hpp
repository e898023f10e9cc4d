#pragma once
/// \file
/// What each command was asked for, as plain values: the command line parsed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <postrider/job.hpp>

namespace postrider::cli {

/// Options that every command on a database has.
struct DatabaseOptions {
  std::string config;  ///< path; empty: POSTRIDER_CONFIG, then ./postrider.toml if there is one
  std::string store;
  std::string schema;
  std::string prefix;
};

struct InitOptions {
  std::string store = "sqlite:app.db";
  std::string to = "file:events.jsonl";
  bool force = false;
};

struct MigrateOptions {
  bool print = false;
  bool status = false;
  std::optional<int> down_to;
  bool even_with_rows = false;
};

struct RelayCommandOptions {
  bool loop = false;
  bool drain = false;
  std::optional<std::int64_t> max_passes;
  std::optional<std::int64_t> sleep;
  bool json = false;
  std::string log_format;
  std::string log_level;
};

/// One event, and when it is due.
struct EventOptions {
  std::string type;
  std::string aggregate;
  std::optional<std::int64_t> aggregate_version;
  std::string payload;
  std::string content_type = "application/json";
  std::vector<std::string> headers;
  std::string id;
  std::optional<std::string> available_at;  ///< at most one of these two
  std::optional<std::string> delay;
};

struct EmitOptions : EventOptions {
  bool jsonl = false;
  std::int64_t from_line = 1;
  std::optional<std::string> key;  ///< "SCOPE/KEY"
};

struct StatusOptions {
  bool json = false;
};

/// `events` and `events show`.
struct EventsOptions {
  std::string id;
  std::string type;
  std::string aggregate;
  std::string state;
  std::string since;
  std::string until;
  std::optional<std::int64_t> after;
  std::int64_t limit = 100;
  bool payload = false;
  bool json = false;
};

/// `deliveries` and `deliveries show`.
struct DeliveriesOptions {
  std::string id;
  std::string route;
  std::string status;
  std::string event;
  std::string aggregate;
  bool due = false;
  bool history = false;
  std::string after;
  std::int64_t limit = 100;
  bool json = false;
};

struct DoctorOptions {
  std::string as = "relay";
  bool deep = false;
  bool strict = false;
  bool json = false;
};

struct ConfigOptions {
  bool json = false;
};

struct CheckOptions {
  std::string max_unrouted_age = "5m";
  std::string max_due_age = "15m";
  std::int64_t max_failed = 0;
  std::int64_t max_overdue = 0;
  bool allow_paused = false;
  bool json = false;
};

/// Which dead letters, and who acts why.
struct DeadOptions {
  std::vector<std::string> ids;
  std::optional<std::string> route;
  std::optional<std::string> type;
  std::optional<std::string> code;
  std::optional<bool> ambiguous;
  std::optional<std::int64_t> limit;
  bool all = false;
  bool dry_run = false;
  bool yes = false;
  bool json = false;
  std::string reason;
  std::string operator_name;
};

struct RouteOptions {
  std::string name;
  bool json = false;
  std::string reason;
  std::string operator_name;
};

/// `job enqueue`, `job list`, `job show`, `job cancel` and `job reschedule`.
struct JobOptions {
  std::string name;  ///< of the job
  std::string id;    ///< of its delivery
  std::string queue;
  EventOptions event;  ///< with the due time
  std::optional<std::string> retry_delays;
  std::optional<std::string> timeout;
  std::optional<std::string> timeout_limit;
  std::optional<int> priority;
  std::string serial_key;
  std::optional<int> serial_limit;
  std::string unique_key;
  std::string on_worker_death;
  std::optional<int> max_deaths;
  JobHooks hooks;
  std::string status;
  std::string after;
  std::int64_t limit = 100;
  bool json = false;
  std::string reason;
  std::string operator_name;
};

struct QueueOptions {
  std::string name;
  std::string rate;  ///< "100/1m" or "off"
  bool json = false;
  std::string reason;
  std::string operator_name;
};

/// All that begin with `schedule`.
struct ScheduleOptions {
  std::string name;
  bool json = false;
  std::string reason;
  std::string operator_name;
};

/// `worker` and `worker list`.
struct WorkerCommandOptions {
  std::vector<std::string> queues;  ///< "mail", "mail:3"
  std::string from;                 ///< URL of a broker
  std::string from_queue;
  std::optional<std::int64_t> concurrency;
  std::string name;
  std::vector<std::string> exec;  ///< the command and its arguments
  std::string exec_output;
  std::string http;
  std::string log_format;
  std::string log_level;
  bool ended = false;
  bool json = false;
};

/// What a handler in any language says of its attempt.
struct AttemptOptions {
  std::string delivery;  ///< empty: of the environment, as the next one
  std::string dispatch;
  std::string duration;
  int percent = 0;
  std::optional<std::string> note;
  std::string checkpoint;
  bool json = false;
};

/// What is purged: all that is named, or everything when nothing is.
struct PurgeOptions {
  bool events = false;
  bool keys = false;
  bool receipts = false;
  bool workers = false;
  std::optional<std::string> older_than;  ///< none: each by its own retention
  bool dry_run = false;
  std::string reason;
  std::string operator_name;
};

struct VersionOptions {
  bool json = false;
};

struct Options {
  std::string command;  ///< "status", "dead retry", …
  DatabaseOptions database;
  InitOptions init;
  MigrateOptions migrate;
  RelayCommandOptions relay;
  EmitOptions emit;
  StatusOptions status;
  EventsOptions events;
  DeliveriesOptions deliveries;
  CheckOptions check;
  DoctorOptions doctor;
  ConfigOptions config;
  DeadOptions dead;
  RouteOptions route;
  JobOptions job;
  QueueOptions queue;
  ScheduleOptions schedule;
  WorkerCommandOptions worker;
  AttemptOptions attempt;
  PurgeOptions purge;
  VersionOptions version;
};

}  // namespace postrider::cli
