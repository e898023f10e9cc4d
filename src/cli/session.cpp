#include "cli/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

namespace postrider::cli {
namespace {

constexpr std::string_view default_file = "postrider.toml";

std::optional<std::string> config_path(const std::string& given) {
  if (!given.empty()) return given;
  if (auto named = environment("POSTRIDER_CONFIG"); named && !named->empty()) return named;
  if (std::filesystem::exists(default_file)) return std::string(default_file);
  return std::nullopt;
}

bool only_flags(const std::vector<config::Problem>& problems) {
  return std::all_of(problems.begin(), problems.end(),
                     [](const auto& problem) { return problem.origin.starts_with("--"); });
}

void add_override(std::vector<config::Override>& overrides, const std::string& key,
                  const std::string& value) {
  if (!value.empty()) overrides.push_back({key, value, "--" + key});
}

}  // namespace

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<ExitCode> Session::load(Needs needs, Console& console,
                                      std::vector<config::Override> overrides) {
  add_override(overrides, "store", options_->store);
  add_override(overrides, "schema", options_->schema);
  add_override(overrides, "prefix", options_->prefix);
  path_ = config_path(options_->config);
  loaded_ = config::load({path_, environment, std::move(overrides),
                          needs == Needs::store_and_routes, needs == Needs::store_and_worker});
  for (const auto& problem : loaded_.problems)
    console.complain(problem.origin, problem.message);
  if (loaded_.problems.empty()) return std::nullopt;
  return only_flags(loaded_.problems) ? ExitCode::usage : ExitCode::config;
}

std::optional<ExitCode> Session::open(Needs needs, Console& console,
                                      std::vector<config::Override> overrides) {
  if (const auto failed = load(needs, console, std::move(overrides))) return failed;
  if (settings().store.empty()) {
    console.complain(
        "configuration",
        path_ ? *path_ + " names no store. Add a line `store = \"URL\"`, or give --store."
              : "there is no postrider.toml here and no store is named. Run `postrider "
                "init`, or give --config or --store.");
    return ExitCode::config;
  }
  auto backend = registry::open_backend(settings().store, settings().names);
  if (!backend) return console.fail("store", backend.error());
  backend_ = std::move(backend).value();
  return std::nullopt;
}

std::string operator_name(const std::string& given) {
  if (!given.empty()) return given;
  for (const auto* name : {"POSTRIDER_OPERATOR", "SUDO_USER", "USER", "LOGNAME"}) {
    if (auto value = environment(name); value && !value->empty()) return *value;
  }
  return fmt::format("uid {}", ::getuid());
}

}  // namespace postrider::cli
