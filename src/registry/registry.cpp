#include "registry/registry.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <postrider/publisher/file.hpp>
#include <postrider/store/mariadb.hpp>
#include <postrider/store/postgres.hpp>
#include <postrider/store/sqlite.hpp>

#include "registry/jobless.hpp"

// Set by CMake for what this build holds.
#ifndef POSTRIDER_REGISTRY_SQLITE
#define POSTRIDER_REGISTRY_SQLITE 0
#endif
#ifndef POSTRIDER_REGISTRY_POSTGRES
#define POSTRIDER_REGISTRY_POSTGRES 0
#endif
#ifndef POSTRIDER_REGISTRY_MARIADB
#define POSTRIDER_REGISTRY_MARIADB 0
#endif
#ifndef POSTRIDER_REGISTRY_AMQP
#define POSTRIDER_REGISTRY_AMQP 0
#endif
#ifndef POSTRIDER_REGISTRY_AMQP_SOURCE
#define POSTRIDER_REGISTRY_AMQP_SOURCE 0
#endif
#ifndef POSTRIDER_REGISTRY_WEBHOOK
#define POSTRIDER_REGISTRY_WEBHOOK 0
#endif

namespace postrider::registry {
namespace {

Error unusable(std::string message) {
  return {ErrorCode::config_invalid, Disposition::stop, std::move(message), "registry", ""};
}

/// What follows "scheme:" in a URL without a server.
Result<std::string> path_of(const std::string& url, std::string_view example) {
  auto path = url.substr(url.find(':') + 1);
  if (path.empty()) {
    return unusable(fmt::format("'{}' names no file. Write {}.", url, example));
  }
  // sqlite://app.db would silently be a file in the root folder; sqlite:///var/app.db is what some
  // other tools call the absolute path.
  if (path.starts_with("//") && !path.starts_with("///")) {
    return unusable(fmt::format("'{}' has a host, and a file has none. Write {}.", url, example));
  }
  return path;
}

Result<Backend> sqlite_backend(const std::string& url, const SchemaNames& names) {
  const auto path = path_of(url, "sqlite:app.db or sqlite:/var/lib/app.db");
  if (!path) return path.error();
  if (!names.schema.empty()) {
    return unusable("SQLite has no schemas. Leave 'schema' out, or set 'prefix' instead.");
  }
#if POSTRIDER_REGISTRY_SQLITE
  const SqliteOptions options{*path, names, false};
  auto creating = options;
  creating.create = true;
  return Backend{redacted(url),
                 [options] { return make_sqlite_store(options); },
                 [creating] { return make_sqlite_migrator(creating); },
                 [options] { return make_sqlite_operations(options); },
                 [options] { return make_sqlite_purger(options); },
                 [options] { return make_sqlite_doctor(options); },
                 [options] { return make_sqlite_job_store(options); },
                 [options] { return make_sqlite_job_operations(options); },
                 [options] { return make_sqlite_schedule_store(options); }};
#else
  return Backend{};
#endif
}

Result<Backend> postgres_backend([[maybe_unused]] const std::string& url,
                                 [[maybe_unused]] const SchemaNames& names) {
#if POSTRIDER_REGISTRY_POSTGRES
  PostgresOptions options;
  options.conninfo = url;
  options.names = names;
  return Backend{redacted(url),
                 [options] { return make_postgres_store(options); },
                 [options] { return make_postgres_migrator(options); },
                 [options] { return make_postgres_operations(options); },
                 [options] { return make_postgres_purger(options); },
                 [options] { return make_postgres_doctor(options); },
                 [options] { return make_postgres_job_store(options); },
                 [options] { return make_postgres_job_operations(options); },
                 [options] { return make_postgres_schedule_store(options); }};
#else
  return Backend{};
#endif
}

Result<Backend> mariadb_backend([[maybe_unused]] const std::string& url, const SchemaNames& names) {
  if (!names.schema.empty()) {
    return unusable(
        "MariaDB calls a schema a database: name it in the URL. Leave 'schema' out, or set "
        "'prefix' instead.");
  }
#if POSTRIDER_REGISTRY_MARIADB
  MariadbOptions options;
  options.url = url;
  options.names = names;
  return Backend{redacted(url),
                 [options] { return make_mariadb_store(options); },
                 [options] { return make_mariadb_migrator(options); },
                 [options] { return make_mariadb_operations(options); },
                 [options] { return make_mariadb_purger(options); },
                 [options] { return make_mariadb_doctor(options); },
                 [] { return make_jobless_store("MariaDB"); },
                 [] { return make_jobless_operations("MariaDB"); },
                 [] { return make_jobless_schedules("MariaDB"); },
                 false};
#else
  return Backend{};
#endif
}

Result<Destination> file_destination(const std::string& url, const DestinationOptions& options) {
  const auto path = path_of(url, "file:events.jsonl or file:/var/log/events.jsonl");
  if (!path) return path.error();
  const FileOptions file{*path, options.window};
  return Destination{redacted(url), false, [file] { return make_file_publisher(file); }};
}

Result<Destination> stdout_destination(const std::string& url, const DestinationOptions& options) {
  if (url != "stdout:") return unusable(fmt::format("'{}' says too much. Write stdout:.", url));
  const FileOptions file{"", options.window};
  return Destination{url, true, [file] { return make_file_publisher(file); }};
}

Result<Destination> amqp_destination([[maybe_unused]] const std::string& url,
                                     [[maybe_unused]] const DestinationOptions& options) {
#if POSTRIDER_REGISTRY_AMQP
  auto amqp = options.amqp;
  amqp.url = url;
  amqp.window = options.window;
  if (const auto faults = validate(amqp); !faults.empty()) {
    return unusable(fmt::format("{}: {}", redacted(url), fmt::join(faults, " ")));
  }
  return Destination{redacted(url), false, [amqp] { return make_amqp_publisher(amqp); }};
#else
  return Destination{};
#endif
}

Result<Source> amqp_source([[maybe_unused]] const std::string& url,
                           [[maybe_unused]] const SourceOptions& options) {
#if POSTRIDER_REGISTRY_AMQP_SOURCE
  auto amqp = options.amqp;
  amqp.url = url;
  if (const auto faults = validate(amqp); !faults.empty()) {
    return unusable(fmt::format("{}: {}", redacted(url), fmt::join(faults, " ")));
  }
  return Source{fmt::format("{} {}", redacted(url), amqp.queue),
                [amqp] { return make_amqp_task_source(amqp); }};
#else
  return Source{};
#endif
}

/// Without the query, in which many endpoints have their secret.
[[maybe_unused]] std::string endpoint_of(const std::string& url) {
  const auto question = url.find('?');
  const auto shown = redacted(url.substr(0, question));
  return question == std::string::npos ? shown : shown + "?***";
}

Result<Destination> http_destination([[maybe_unused]] const std::string& url,
                                     [[maybe_unused]] const DestinationOptions& options) {
#if POSTRIDER_REGISTRY_WEBHOOK
  auto http = options.http;
  http.url = url;
  http.window = options.window;
  const auto shown = endpoint_of(url);
  if (const auto faults = validate(http); !faults.empty()) {
    return unusable(fmt::format("{}: {}", shown, fmt::join(faults, " ")));
  }
  return Destination{shown, false, [http] { return make_http_publisher(http); }};
#else
  return Destination{};
#endif
}

template <class Made, class Options>
struct Scheme {
  std::string_view name;
  std::string_view form;    // for the list in messages
  std::string_view option;  // the CMake option that leaves it out
  bool built;
  Result<Made> (*make)(const std::string& url, const Options& options);
};

constexpr std::array stores{
    Scheme<Backend, SchemaNames>{"sqlite", "sqlite:PATH", "POSTRIDER_WITH_SQLITE",
                                 POSTRIDER_REGISTRY_SQLITE, sqlite_backend},
    Scheme<Backend, SchemaNames>{"postgresql", "postgresql://…", "POSTRIDER_WITH_POSTGRES",
                                 POSTRIDER_REGISTRY_POSTGRES, postgres_backend},
    Scheme<Backend, SchemaNames>{"postgres", "postgres://…", "POSTRIDER_WITH_POSTGRES",
                                 POSTRIDER_REGISTRY_POSTGRES, postgres_backend},
    Scheme<Backend, SchemaNames>{"mariadb", "mariadb://…", "POSTRIDER_WITH_MARIADB",
                                 POSTRIDER_REGISTRY_MARIADB, mariadb_backend},
};

constexpr std::array destinations{
    Scheme<Destination, DestinationOptions>{"file", "file:PATH", "", true, file_destination},
    Scheme<Destination, DestinationOptions>{"stdout", "stdout:", "", true, stdout_destination},
    Scheme<Destination, DestinationOptions>{"amqp", "amqp://…", "POSTRIDER_WITH_RABBITMQ",
                                            POSTRIDER_REGISTRY_AMQP, amqp_destination},
    Scheme<Destination, DestinationOptions>{"amqps", "amqps://…", "POSTRIDER_WITH_RABBITMQ",
                                            POSTRIDER_REGISTRY_AMQP, amqp_destination},
    Scheme<Destination, DestinationOptions>{"https", "https://…", "POSTRIDER_WITH_HTTP",
                                            POSTRIDER_REGISTRY_WEBHOOK, http_destination},
    Scheme<Destination, DestinationOptions>{"http", "http://…", "POSTRIDER_WITH_HTTP",
                                            POSTRIDER_REGISTRY_WEBHOOK, http_destination},
};

constexpr std::array sources{
    Scheme<Source, SourceOptions>{"amqp", "amqp://…", "POSTRIDER_WITH_RABBITMQ",
                                  POSTRIDER_REGISTRY_AMQP_SOURCE, amqp_source},
    Scheme<Source, SourceOptions>{"amqps", "amqps://…", "POSTRIDER_WITH_RABBITMQ",
                                  POSTRIDER_REGISTRY_AMQP_SOURCE, amqp_source},
};

template <class Table>
Error unknown_scheme(std::string_view kind, std::string_view scheme, const Table& table) {
  std::vector<std::string_view> forms;
  for (const auto& known : table)
    forms.push_back(known.form);
  // Only the scheme is shown: what follows it may hold a password in a form nobody can tell.
  return unusable(fmt::format("'{}:' is no {} that is known. Write one of {}.", scheme, kind,
                              fmt::join(forms, ", ")));
}

template <class Made, class Options, std::size_t count>
Result<Made> make(std::string_view kind, const std::array<Scheme<Made, Options>, count>& table,
                  const std::string& url, const Options& options) {
  const auto colon = url.find(':');
  if (colon == std::string::npos) {
    return unusable(
        fmt::format("a {} is given as a URL with a scheme, such as {}.", kind, table.front().form));
  }
  const auto scheme = std::string_view(url).substr(0, colon);
  for (const auto& known : table) {
    if (known.name != scheme) continue;
    if (known.built) return known.make(url, options);
    return Error{ErrorCode::unsupported, Disposition::stop,
                 fmt::format("this postrider was built without {}:. Install a build that has it, "
                             "or build with {}=ON.",
                             scheme, known.option),
                 "registry", ""};
  }
  return unknown_scheme(kind, scheme, table);
}

}  // namespace

Result<Backend> open_backend(const std::string& url, const SchemaNames& names) {
  return make("store", stores, url, names);
}

Result<Destination> find_destination(const std::string& url, const DestinationOptions& options) {
  return make("destination", destinations, url, options);
}

Result<Source> find_source(const std::string& url, const SourceOptions& options) {
  return make("source of tasks", sources, url, options);
}

}  // namespace postrider::registry
