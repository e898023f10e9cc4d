// What a command line says, and what is said of one that cannot be understood.

#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command_tree.hpp"

namespace postrider::cli {
namespace {

using CLI::App;

// The command that was given as far as it was understood: "dead retry".
std::pair<App*, std::string> innermost(App& app) {
  auto* current = &app;
  std::string words;
  while (!current->get_subcommands().empty()) {
    current = current->get_subcommands().front();
    words.append(words.empty() ? "" : " ").append(current->get_name());
  }
  return {current, words};
}

// CLI11 puts the words before the innermost command's own name.
HelpText help_of(App& app) {
  const auto [inner, words] = innermost(app);
  if (words.empty()) return {inner->help()};
  const auto last = words.rfind(' ');
  return {
      inner->help(last == std::string::npos ? "postrider" : "postrider " + words.substr(0, last))};
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

UsageError usage_error(const std::string& what, const std::string& command) {
  auto why = one_line(what);
  if (!why.ends_with('.')) why += '.';
  return {why + " Run `postrider" + (command.empty() ? "" : " " + command) + " --help`."};
}

// What CLI11 cannot express. The source package has --sleep for the permanent process only.
std::string contradiction(const Options& options) {
  if (options.command == "relay" && options.relay.sleep && !options.relay.loop &&
      !options.relay.drain) {
    return "--sleep requires --loop or --drain: one pass does not wait";
  }
  if (options.command == "emit" && !options.emit.jsonl && options.emit.type.empty()) {
    return "emit needs --type or --jsonl";
  }
  if (options.command == "worker" && options.worker.exec.empty() == options.worker.http.empty()) {
    return "worker needs --exec CMD or --http URL, and not both: how else would it run jobs";
  }
  const auto& purge = options.purge;
  if (options.command == "purge" && purge.older_than && !purge.events && !purge.keys &&
      !purge.receipts && !purge.workers) {
    return "--older-than needs --events, --keys, --receipts or --workers: each has its own "
           "retention";
  }
  return {};
}

// Everything behind --exec is the command of the worker, whatever it looks like. Alone it stays
// where it is, and is found to lack its command.
std::size_t end_of_own_words(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] != "worker") return words.size();
  const auto exec = std::find(words.begin(), words.end(), "--exec");
  if (exec == words.end() || exec + 1 == words.end()) return words.size();
  return static_cast<std::size_t>(exec - words.begin());
}

void collect_words(App& app, const std::string& command, std::vector<CommandWords>& all) {
  CommandWords words{command, {}};
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames())
      words.words.push_back("--" + name);
  }
  for (auto* inner : app.get_subcommands([](const App*) { return true; })) {
    words.words.push_back(inner->get_name());
    collect_words(*inner, command.empty() ? inner->get_name() : command + " " + inner->get_name(),
                  all);
  }
  all.push_back(std::move(words));
}

}  // namespace

std::variant<Options, HelpText, UsageError> parse_command_line(int count,
                                                               const char* const* arguments) {
  Options options;
  const auto app = make_app(options);
  // The old spelling that everybody tries first.
  if (count == 2 && std::string_view(arguments[1]) == "--version") {
    options.command = "version";
    return options;
  }
  const std::vector<std::string> words(arguments, arguments + count);
  const auto own = end_of_own_words(words);
  try {
    app->parse(static_cast<int>(own), arguments);
  } catch (const CLI::CallForHelp&) {
    return help_of(*app);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), innermost(*app).second);
  }
  options.command = innermost(*app).second;
  if (own < words.size()) {
    options.worker.exec.assign(words.begin() + static_cast<std::ptrdiff_t>(own) + 1, words.end());
  }
  if (const auto fault = contradiction(options); !fault.empty()) {
    return usage_error(fault, options.command);
  }
  return options;
}

std::vector<CommandWords> command_words() {
  Options options;
  std::vector<CommandWords> all;
  collect_words(*make_app(options), "", all);
  return all;
}

}  // namespace postrider::cli
