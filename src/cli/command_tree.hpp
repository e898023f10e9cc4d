#pragma once
/// \file
/// The commands that there are, with their options, bounds and help.

#include <memory>

#include "cli/options.hpp"

namespace CLI {
class App;
}

namespace postrider::cli {

/// Parsing with it fills `options`, which is borrowed.
[[nodiscard]] std::unique_ptr<CLI::App> make_app(Options& options);

}  // namespace postrider::cli
