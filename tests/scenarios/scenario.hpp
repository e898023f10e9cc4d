#pragma once
/// \file
/// The language of scenarios: text that somebody who knows no C++ can read.
///
///     scenario: the broker refuses the first attempt
///       add      1 order.placed order/1
///       fault    1 down                    # the first attempt does not arrive
///       pass     sends nothing
///
/// One command a line; `#` begins a comment. docs/extend/scenarios.md lists the commands.

#include <string>
#include <vector>

namespace postrider::scenarios {

struct Command {
  int line = 0;
  std::vector<std::string> words;
};

struct Scenario {
  std::string file;
  std::string name;
  std::vector<Command> commands;
};

/// Reads every scenario of a file; a file that cannot be read or parsed ends the test program.
std::vector<Scenario> load_scenarios(const std::string& path);

}  // namespace postrider::scenarios
