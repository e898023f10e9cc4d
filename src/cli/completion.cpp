#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"

namespace postrider::cli {
namespace {

// Walks the words before the cursor as far as they are commands, then offers what may follow.
constexpr std::string_view head =
    R"(# bash completion of postrider; load it with: source <(postrider completion bash)
_postrider() {
  local current=${COMP_WORDS[COMP_CWORD]} command= word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command $word" in
)";
constexpr std::string_view middle = R"(    esac
  done
  case "$command" in
)";
constexpr std::string_view tail = R"(  esac
}
complete -o default -F _postrider postrider
)";

}  // namespace

ExitCode run_completion_bash(const Options&, Console& console) {
  const auto commands = command_words();
  std::string script(head);
  for (const auto& each : commands) {
    if (each.command.empty()) continue;
    script += fmt::format("      '{0}{1}') command='{1}' ;;\n",
                          each.command.find(' ') == std::string::npos ? " " : "", each.command);
  }
  script += middle;
  for (const auto& each : commands) {
    script +=
        fmt::format("    '{}') mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$current\") ;;\n",
                    each.command, fmt::join(each.words, " "));
  }
  console.print(script.append(tail));
  return ExitCode::ok;
}

}  // namespace postrider::cli
