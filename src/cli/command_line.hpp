#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/options.hpp"

namespace postrider::cli {

/// A command line that asks for text and no more: help.
struct HelpText {
  std::string text;
};
/// A command line that cannot be understood.
struct UsageError {
  std::string message;  ///< ends with what to do
};

[[nodiscard]] std::variant<Options, HelpText, UsageError> parse_command_line(
    int count, const char* const* arguments);

/// A command with its options, for completion.
struct CommandWords {
  std::string command;             ///< "" for the program itself, "dead", "dead retry", …
  std::vector<std::string> words;  ///< subcommands and long options
};
[[nodiscard]] std::vector<CommandWords> command_words();

}  // namespace postrider::cli
