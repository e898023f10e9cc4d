#include "cli/config_findings.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "registry/registry.hpp"

namespace postrider::cli {
namespace {

constexpr std::string_view file_reference = "${file:";

// The paths of `${file:PATH}`.
std::vector<std::string> files_in(std::string_view text) {
  std::vector<std::string> paths;
  for (auto at = text.find(file_reference); at != std::string_view::npos;
       at = text.find(file_reference, at + 1)) {
    const auto from = at + file_reference.size();
    const auto end = text.find('}', from);
    if (end != std::string_view::npos) paths.emplace_back(text.substr(from, end - from));
  }
  return paths;
}

// Whether the value itself holds a secret, and not only where it stands.
bool holds_secret(std::string_view text) {
  const auto shown = registry::redacted(text);
  if (shown == text) return false;
  // A reference in the place of the password is masked like one.
  return text.find("${") == std::string_view::npos;
}

struct SecretFile {
  std::string path;
  std::string holds;
};

std::set<std::string> paths_of_keys(const config::RouteSettings& route) {
  std::set<std::string> paths{route.amqp.key_file, route.http.key_file};
  paths.erase("");
  return paths;
}

std::vector<SecretFile> secret_files(const config::Loaded& loaded,
                                     const std::optional<std::string>& path) {
  std::vector<SecretFile> files;
  for (const auto& value : loaded.values) {
    if (!value.key->expands) continue;
    for (auto& file : files_in(value.text))
      files.push_back({std::move(file), full_name(*value.key)});
    const bool in_file = path && value.origin.starts_with(*path + ":");
    const bool literal = value.key->secret
                             ? value.text.find(config::secret_mask) != std::string::npos
                             : holds_secret(value.text);
    if (in_file && literal) files.push_back({*path, full_name(*value.key)});
  }
  for (const auto& route : loaded.settings.routes) {
    for (const auto& file : paths_of_keys(route))
      files.push_back({file, "key_file"});
  }
  return files;
}

void diagnose_file(const SecretFile& file, std::vector<Finding>& findings) {
  struct stat about {};
  if (::stat(file.path.c_str(), &about) != 0) return;  // what needs it says so
  const auto mode = about.st_mode & 0777U;
  if ((mode & 0007U) == 0) return;
  findings.push_back(
      {"secret_file_open", FindingSeverity::warning, file.path,
       fmt::format("the file has the mode {:04o} and holds the secret of {}.", mode, file.holds),
       "Every user of this machine may read or change it.",
       fmt::format("chmod o-rwx {}", file.path)});
}

void diagnose_route(const config::RouteSettings& settings, std::vector<Finding>& findings) {
  const auto& route = settings.route;
  const bool from_database = route.job && route.destination.empty();
  const auto found =
      registry::find_destination(route.destination, {route.window, settings.amqp, settings.http});
  if (!from_database && !found) {
    findings.push_back({"destination_unusable", FindingSeverity::error, "route " + route.name,
                        found.error().message, "A relay does not start with it.",
                        "Correct `to` of this route."});
  }
  for (const auto& pattern : route.events) {
    const auto covers = [&](const std::string& other) {
      if (other == pattern) return false;
      return other == "*" ||
             (other.ends_with(".*") &&
              pattern.starts_with(std::string_view(other).substr(0, other.size() - 1)));
    };
    const auto wider = std::find_if(route.events.begin(), route.events.end(), covers);
    if (wider == route.events.end()) continue;
    findings.push_back(
        {"pattern_redundant", FindingSeverity::note, "route " + route.name,
         fmt::format("the pattern {} matches nothing that {} does not match.", pattern, *wider),
         "One of the two is not needed, or was meant to say something else.",
         "Remove the narrower one, or correct it."});
  }
}

// Queues that stand on one side only. Workers may be told their queues elsewhere, too.
void diagnose_queues(const config::Settings& settings, std::vector<Finding>& findings) {
  std::set<std::string> fed;
  std::set<std::string> served;
  for (const auto& each : settings.routes)
    if (each.route.job) fed.insert(each.route.job->queue);
  for (const auto& share : settings.worker.queues)
    served.insert(share.queue);
  if (served.empty()) return;
  for (const auto& queue : served) {
    if (fed.contains(queue)) continue;
    findings.push_back({"worker_queue_unfed", FindingSeverity::warning, "queue " + queue,
                        "[worker] serves the queue, and no route has it.",
                        "Its workers get what is enqueued by hand, and nothing else.",
                        "Correct the name in [worker] queues, or in the route."});
  }
  for (const auto& queue : fed) {
    if (served.contains(queue)) continue;
    findings.push_back({"route_queue_unserved", FindingSeverity::note, "queue " + queue,
                        "a route makes jobs of the queue, and [worker] does not serve it.",
                        "They wait, unless a worker is started with this queue elsewhere.",
                        "Add it to [worker] queues, or start another worker for it."});
  }
}

void diagnose_schedule(const Schedule& schedule, const config::Settings& settings,
                       std::vector<Finding>& findings) {
  const bool any =
      std::any_of(settings.routes.begin(), settings.routes.end(),
                  [&](const auto& each) { return matches(each.route, schedule.type); });
  if (any) return;
  findings.push_back({"schedule_unrouted", FindingSeverity::warning, "schedule " + schedule.name,
                      fmt::format("no route matches its event type {}.", schedule.type),
                      "Its events are held until a route does.",
                      "Add the type to `events` of a route, or a route."});
}

}  // namespace

std::vector<Finding> diagnose_config(const config::Loaded& loaded,
                                     const std::optional<std::string>& path) {
  std::vector<Finding> findings;
  const auto& settings = loaded.settings;
  if (settings.routes.empty()) {
    findings.push_back({"no_route", FindingSeverity::warning, path.value_or("configuration"),
                        "there is no route.", "A relay with this configuration does not start.",
                        "Add a [[routes]] table with name and to, or with name, job and queue."});
  }
  for (const auto& route : settings.routes)
    diagnose_route(route, findings);
  diagnose_queues(settings, findings);
  for (const auto& each : settings.schedules)
    diagnose_schedule(each.schedule, settings, findings);
  for (const auto& file : secret_files(loaded, path))
    diagnose_file(file, findings);
  return findings;
}

std::vector<Finding> diagnose_patterns(const config::Settings& settings,
                                       const std::vector<EventSummary>& latest) {
  std::vector<Finding> findings;
  if (latest.empty()) return findings;
  for (const auto& [route, job, amqp, http] : settings.routes) {
    for (const auto& pattern : route.events) {
      auto alone = route;
      alone.events = {pattern};
      const bool any = std::any_of(latest.begin(), latest.end(),
                                   [&](const auto& event) { return matches(alone, event.type); });
      if (any) continue;
      findings.push_back({"pattern_matches_nothing", FindingSeverity::note, "route " + route.name,
                          fmt::format("the pattern {} matches none of the last {} events.", pattern,
                                      latest.size()),
                          "A misspelt pattern delivers nothing and nobody is told.",
                          "Compare it with `postrider events`."});
    }
  }
  return findings;
}

}  // namespace postrider::cli
