#pragma once
#include <string_view>

namespace postrider::runner {

/// Kills every process that has `mark` (NAME=value) in its environment: what has left its process
/// group, as daemons do, keeps that.
///
/// Cost: reads /proc once, and again while something was found, a few times at most; milliseconds.
void kill_marked_processes(std::string_view mark);

}  // namespace postrider::runner
