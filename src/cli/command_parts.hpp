#pragma once
/// \file
/// What the commands of the tree are made of: bounds, and options that many of them have.

#include <cstdint>
#include <set>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/options.hpp"

namespace postrider::cli {

/// Without CLI11's own description of the bounds, which the help says in words.
[[nodiscard]] CLI::Validator between(std::int64_t least, std::int64_t most);
[[nodiscard]] CLI::Validator one_of(const std::set<std::string>& words);

CLI::App* command(CLI::App& parent, const std::string& name, const std::string& purpose,
                  const std::string& examples);

void add_database(CLI::App& app, DatabaseOptions& options);
void add_format(CLI::App& app, bool& json);
void add_operator(CLI::App& app, std::string& reason, std::string& name);

/// `job`, `queue`, `worker` and `attempt`.
void add_job_commands(CLI::App& app, Options& options);
/// `schedule`.
void add_schedule_commands(CLI::App& app, Options& options);

}  // namespace postrider::cli
