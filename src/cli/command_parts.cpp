#include "cli/command_parts.hpp"

#include <CLI/CLI.hpp>

namespace postrider::cli {

using CLI::App;

CLI::Validator between(std::int64_t least, std::int64_t most) {
  return CLI::Range(least, most).description("");
}

CLI::Validator one_of(const std::set<std::string>& words) {
  return CLI::IsMember(words).description("");
}

App* command(App& parent, const std::string& name, const std::string& purpose,
             const std::string& examples) {
  auto* app = parent.add_subcommand(name, purpose);
  app->footer("Examples:\n" + examples);
  return app;
}

void add_database(App& app, DatabaseOptions& options) {
  const std::string group = "Database";
  app.add_option("--config", options.config, "Configuration file [postrider.toml]")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--store", options.store, "Database instead of the configured one")
      ->type_name("URL")
      ->group(group);
  app.add_option("--schema", options.schema, "PostgreSQL schema of the tables")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--prefix", options.prefix, "Prefix of the tables")
      ->type_name("TEXT")
      ->group(group);
}

void add_format(App& app, bool& json) {
  app.add_option_function<std::string>(
         "--format", [&json](const std::string& format) { json = format == "json"; },
         "table for people, json for scripts [table]")
      ->type_name("table|json")
      ->check(one_of({"table", "json"}));
}

void add_operator(App& app, std::string& reason, std::string& name) {
  app.add_option("--reason", reason, "Why, for the audit")->type_name("TEXT");
  app.add_option("--operator", name, "Who, for the audit [the user's name]")->type_name("NAME");
}

}  // namespace postrider::cli
