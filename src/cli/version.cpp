#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "registry/registry.hpp"

namespace postrider::cli {

ExitCode run_version(const Options& options, Console& console) {
  const auto clients = registry::client_versions();
  if (options.version.json) {
    nlohmann::ordered_json json;
    json["postrider"] = POSTRIDER_VERSION;
    for (const auto& client : clients)
      json[client.name] = client.version;
    console.print(json.dump(2) + "\n");
    return ExitCode::ok;
  }
  std::string text = "postrider " POSTRIDER_VERSION "\n";
  for (const auto& client : clients)
    text += fmt::format("  {} {}\n", client.name, client.version);
  console.print(text);
  return ExitCode::ok;
}

}  // namespace postrider::cli
