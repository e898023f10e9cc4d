#pragma once
#include <set>
#include <string>

namespace postrider::runner {

/// Entries of an environment, NAME=value.
using EnvironmentMarks = std::set<std::string, std::less<>>;

/// Kills every process that has one of `marks` in its environment: what has left its process group,
/// as daemons do, keeps that.
///
/// Cost: reads /proc once, and again while something was found, a few times at most; milliseconds.
void kill_marked_processes(const EnvironmentMarks& marks);

}  // namespace postrider::runner
