#pragma once
/// \file
/// Flags of a small program: `--name value`, and `--name` alone for a switch.

#include <map>
#include <set>
#include <stdexcept>
#include <string>

namespace examples {

/// The command line cannot be used; the message says why.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Options {
 public:
  Options(int argc, const char* const* argv, const std::set<std::string>& flags,
          const std::set<std::string>& switches) {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      if (switches.contains(name)) {
        values_[name] = "";
      } else if (!flags.contains(name)) {
        throw UsageError("unknown option " + name);
      } else if (i + 1 == argc) {
        throw UsageError(name + " needs a value");
      } else {
        values_[name] = argv[++i];
      }
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  [[nodiscard]] std::string required(const std::string& name) const {
    if (!has(name)) throw UsageError(name + " is missing");
    return values_.at(name);
  }
  [[nodiscard]] int port(const std::string& name) const {
    const auto given = text(name, "0");
    if (given.empty() || given.size() > 5 ||
        given.find_first_not_of("0123456789") != std::string::npos || std::stoi(given) > 65535) {
      throw UsageError(name + " is a number up to 65535");
    }
    return std::stoi(given);
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace examples
