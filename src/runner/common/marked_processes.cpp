#include "runner/common/marked_processes.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"

namespace postrider::runner {
namespace {

// What is found may have started another one in the meantime; a fork bomb has no end.
constexpr int most_rounds = 5;
// An environment may have megabytes; ours stands in front where it was not sorted.
constexpr std::size_t most_environment_bytes = 256U << 10U;

std::string environment_of(pid_t pid) {
  const auto file = "/proc/" + std::to_string(pid) + "/environ";
  const Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string environment;
  std::array<char, 16U << 10U> part{};
  while (descriptor && environment.size() < most_environment_bytes) {
    const auto size = read(descriptor.get(), part.data(), part.size());
    if (size <= 0) break;
    environment.append(part.data(), static_cast<std::size_t>(size));
  }
  return environment;
}

bool is_marked(pid_t pid, const EnvironmentMarks& marks) {
  const auto environment = environment_of(pid);
  std::string_view rest = environment;
  while (!rest.empty()) {
    const auto entry = rest.substr(0, rest.find('\0'));
    if (marks.find(entry) != marks.end()) return true;
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return false;
}

// By a pidfd, and asked again behind it: the number may have become another process's.
bool kill_if_marked(pid_t pid, const EnvironmentMarks& marks) {
  if (!is_marked(pid, marks)) return false;
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process || !is_marked(pid, marks)) return false;
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  return true;
}

bool kill_all_marked(const EnvironmentMarks& marks) {
  bool found = false;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    pid_t pid = 0;
    const auto [rest, fault] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (fault != std::errc() || *rest != '\0' || pid == getpid()) continue;
    found = kill_if_marked(pid, marks) || found;
  }
  return found;
}

}  // namespace

void kill_marked_processes(const EnvironmentMarks& marks) {
  if (marks.empty()) return;
  for (int round = 0; round < most_rounds && kill_all_marked(marks); ++round)
    continue;
}

}  // namespace postrider::runner
