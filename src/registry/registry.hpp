#pragma once
/// \file
/// From URLs to backends: `open_backend` for stores, `find_destination` for publishers. The only
/// place that lists backends.
///
/// Nothing here connects: a factory's product does, at its first call.
/// Thread safety: functions without state; a `Backend` may be used from one thread at a time.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/consumer/amqp.hpp>
#include <postrider/diagnosis.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/job_store.hpp>
#include <postrider/operations.hpp>
#include <postrider/publisher.hpp>
#include <postrider/publisher/amqp.hpp>
#include <postrider/publisher/http.hpp>
#include <postrider/purger.hpp>
#include <postrider/result.hpp>
#include <postrider/schedule_store.hpp>
#include <postrider/schema.hpp>
#include <postrider/store.hpp>
#include <postrider/task_source.hpp>

namespace postrider::registry {

/// One database, from eight sides. Each call makes a new object with a connection of its own.
struct Backend {
  std::string shown_url;  ///< without secrets: for messages
  std::function<std::unique_ptr<Store>()> store;
  std::function<std::unique_ptr<Migrator>()> migrator;
  std::function<std::unique_ptr<Operations>()> operations;
  std::function<std::unique_ptr<Purger>()> purger;
  std::function<std::unique_ptr<Doctor>()> doctor;
  std::function<std::unique_ptr<JobStore>()> job_store;
  std::function<std::unique_ptr<JobOperations>()> job_operations;
  std::function<std::unique_ptr<ScheduleStore>()> schedule_store;
  bool keeps_jobs = true;  ///< false: the three above have no jobs or schedules and take none
};

/// The database that `url` names: sqlite:PATH (relative to the working directory), postgresql://…,
/// postgres://… or mariadb://….
///
/// Errors: `config_invalid` for a URL that cannot be used, `unsupported` when this build lacks the
///   backend. No message holds a password.
[[nodiscard]] Result<Backend> open_backend(const std::string& url, const SchemaNames& names);

/// What a route says beyond its URL. Only the options of the URL's own scheme are looked at.
struct DestinationOptions {
  std::size_t window = 1000;
  AmqpOptions amqp;       ///< `url` and `window` are overwritten
  HttpOptions http = {};  ///< the same
};

struct Destination {
  std::string shown_url;         ///< without secrets: for messages
  bool standard_output = false;  ///< events go to standard output, so nothing else should
  std::function<std::unique_ptr<Publisher>()> publisher;
};

/// The destination that `url` names: file:PATH (relative to the working directory), stdout:,
/// amqp://…, amqps://…, https://… or http://….
///
/// Errors: as for `open_backend`.
[[nodiscard]] Result<Destination> find_destination(const std::string& url,
                                                   const DestinationOptions& options);

/// What a worker says of its broker beyond its URL.
struct SourceOptions {
  AmqpSourceOptions amqp;  ///< `url` is overwritten
};

struct Source {
  std::string shown_url;  ///< without secrets, with the queue: for messages
  TaskSourceFactory source;
};

/// The source of tasks that `url` names: amqp://… or amqps://….
///
/// Errors: as for `open_backend`.
[[nodiscard]] Result<Source> find_source(const std::string& url, const SourceOptions& options);

/// `url` with passwords replaced by ***: what stands between the user's name and the last @, and
/// query parameters whose names speak of a secret.
[[nodiscard]] std::string redacted(std::string_view url);

/// A client library that this program runs with.
struct ClientVersion {
  std::string name;     ///< "SQLite", "libpq", …
  std::string version;  ///< as the library says it at run time
};
[[nodiscard]] std::vector<ClientVersion> client_versions();

}  // namespace postrider::registry
