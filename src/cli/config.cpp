#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/config_findings.hpp"
#include "cli/finding_view.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ShownValue {
  std::string key;
  std::string value;
  std::string origin;
};

// What a key that may hold a secret says; references stay as they are written.
std::string shown_value(const config::SetValue& value) {
  return value.key->expands ? registry::redacted(value.text) : value.text;
}

ShownValue shown(const config::Loaded& loaded, const config::Key& key, int element,
                 std::string name) {
  if (const auto* value = find_value(loaded, key, element)) {
    return {std::move(name), shown_value(*value), value->origin};
  }
  const auto& routes = loaded.settings.routes;
  const auto left_out = element < 0 || key.section == "schedules"
                            ? key.default_value
                            : default_text(key, routes.at(static_cast<std::size_t>(element)).route);
  return {std::move(name), left_out, "default"};
}

// "routes.orders.to", "routes.orders.amqp.exchange".
std::string name_in_route(const config::Key& key, const std::string& route) {
  return "routes." + route + full_name(key).substr(std::string_view("routes").size());
}

std::vector<ShownValue> shown_values(const config::Loaded& loaded) {
  std::vector<ShownValue> values;
  for (const auto& key : config::all_keys()) {
    if (!key.section.starts_with("routes") && key.section != "schedules")
      values.push_back(shown(loaded, key, -1, full_name(key)));
  }
  for (std::size_t i = 0; i < loaded.settings.routes.size(); ++i) {
    const auto& route = loaded.settings.routes[i].route;
    for (const auto& key : config::all_keys()) {
      const bool amqp = key.section == "routes.amqp" && route.destination.starts_with("amqp");
      const bool http = key.section == "routes.http" && route.destination.starts_with("http");
      if ((key.section != "routes" && !amqp && !http) || !applies(key, route)) continue;
      values.push_back(shown(loaded, key, static_cast<int>(i), name_in_route(key, route.name)));
    }
  }
  for (std::size_t i = 0; i < loaded.settings.schedules.size(); ++i) {
    const auto prefix = "schedules." + loaded.settings.schedules[i].schedule.name + ".";
    for (const auto& key : config::all_keys()) {
      if (key.section != "schedules") continue;
      values.push_back(shown(loaded, key, static_cast<int>(i), prefix + key.name));
    }
  }
  return values;
}

std::string values_text(const std::vector<ShownValue>& values, const Console& console) {
  Table table({{"key"}, {"value"}, {"origin"}});
  for (const auto& value : values)
    table.add({{value.key}, {value.value.empty() ? "-" : value.value}, {value.origin}});
  return table.text(console);
}

std::string values_json(const std::vector<ShownValue>& values) {
  auto json = Json::array();
  for (const auto& value : values) {
    json.push_back({{"key", value.key}, {"value", value.value}, {"origin", value.origin}});
  }
  return printed(json);
}

std::vector<Finding> diagnose_store(const Session& session) {
  const auto& settings = session.settings();
  if (settings.store.empty()) {
    return {{"no_store", FindingSeverity::error, session.path().value_or("configuration"),
             "no store is named.", "Every command needs one, by configuration or by --store.",
             "Add a line `store = \"URL\"`."}};
  }
  const auto backend = registry::open_backend(settings.store, settings.names);
  if (backend) return {};
  return {{"store_unusable", FindingSeverity::error, "store", backend.error().message,
           "No command works with it.", "Correct `store`."}};
}

}  // namespace

ExitCode run_config_show(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.load(Needs::store, console)) return *failed;
  const auto values = shown_values(session.loaded());
  console.print(options.config.json ? values_json(values) : values_text(values, console));
  return ExitCode::ok;
}

ExitCode run_config_check(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.load(Needs::store_and_routes, console)) return *failed;
  auto findings = diagnose_store(session);
  const auto rest = diagnose_config(session.loaded(), session.path());
  findings.insert(findings.end(), rest.begin(), rest.end());
  if (options.config.json) {
    console.print(printed(findings_json(findings)));
  } else if (findings.empty()) {
    console.print(
        fmt::format("{} can be used: {}.\n", session.path().value_or("The configuration"),
                    counted(static_cast<std::int64_t>(session.settings().routes.size()), "route")));
  } else {
    console.print(findings_text(findings, console));
  }
  return worst(findings) == FindingSeverity::error ? ExitCode::config : ExitCode::ok;
}

}  // namespace postrider::cli
