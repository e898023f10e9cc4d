// cgroup v2: `oom_kill N` in memory.events; v1: the same line in memory.oom_control. The kernel
// counts before it sends the signal, so the counter is never behind a death.

#include "runner/common/oom_watch.hpp"

#include <filesystem>
#include <fstream>

namespace postrider::runner {
namespace {

std::string existing(const std::string& file) {
  std::error_code error;
  return std::filesystem::exists(file, error) ? file : std::string();
}

std::string counter_in(const std::string& folder) {
  const auto file = existing(folder + "/memory.events");
  return file.empty() ? existing(folder + "/memory.oom_control") : file;
}

// A line is `id:controllers:path`; v2 has no controllers.
std::string counter_of_line(const std::string& line) {
  const auto first = line.find(':');
  const auto second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return {};
  const auto controllers = line.substr(first + 1, second - first - 1);
  const auto path = line.substr(second + 1);
  if (controllers == "memory") return counter_in("/sys/fs/cgroup/memory" + path);
  return controllers.empty() ? counter_in("/sys/fs/cgroup" + path) : std::string();
}

std::string own_counter() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (auto file = counter_of_line(line); !file.empty()) return file;
  }
  return {};
}

}  // namespace

OomWatch::OomWatch(const std::string& folder)
    : file_(folder.empty() ? own_counter() : counter_in(folder)) {}

OomWatch::Mark OomWatch::mark() const {
  return {kills(), explained_};
}

bool OomWatch::explains_death(const Mark& mark) {
  const auto now = kills();
  const bool more = now > mark.kills && now - mark.kills > explained_ - mark.explained;
  if (more) ++explained_;
  return more;
}

std::uint64_t OomWatch::kills() const {
  if (file_.empty()) return 0;
  std::ifstream counters(file_);
  std::string name;
  for (std::uint64_t count = 0; counters >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace postrider::runner
