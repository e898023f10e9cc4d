#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "cli/console.hpp"
#include "cli/options.hpp"
#include "config/load.hpp"
#include "registry/registry.hpp"

namespace postrider::cli {

/// What a command opens beside the store: only then are the secrets of the routes, or of the
/// worker's broker, looked up.
enum class Needs { store, store_and_routes, store_and_worker };

/// Settings and database of one command.
class Session {
 public:
  explicit Session(const DatabaseOptions& options) : options_(&options) {}

  /// Loads the settings and says everything that is wrong with them.
  [[nodiscard]] std::optional<ExitCode> load(Needs needs, Console& console,
                                             std::vector<config::Override> overrides = {});
  /// Loads the settings and finds the store. On failure everything that is wrong has been said and
  /// the exit code is returned.
  [[nodiscard]] std::optional<ExitCode> open(Needs needs, Console& console,
                                             std::vector<config::Override> overrides = {});

  [[nodiscard]] const config::Settings& settings() const { return loaded_.settings; }
  /// The settings with where each comes from.
  [[nodiscard]] const config::Loaded& loaded() const { return loaded_; }
  /// Of the configuration file; nothing when there is none.
  [[nodiscard]] const std::optional<std::string>& path() const { return path_; }
  [[nodiscard]] const registry::Backend& backend() const { return *backend_; }
  /// Patience of one call of the store.
  [[nodiscard]] Deadline deadline() const {
    return Deadline::after(settings().relay.store_timeout);
  }

 private:
  const DatabaseOptions* options_;
  std::optional<std::string> path_;
  config::Loaded loaded_;
  std::optional<registry::Backend> backend_;
};

/// The name for the audit: what was given, else that of the user.
[[nodiscard]] std::string operator_name(const std::string& given);

/// Reads a variable of the environment.
[[nodiscard]] std::optional<std::string> environment(std::string_view name);

}  // namespace postrider::cli
