#include "engine/worker_identity.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "base/mutex.hpp"

namespace postrider::engine {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The number in "pid:[4026531836]".
std::string process_namespace() {
  std::array<char, 64> link{};
  const auto size = readlink("/proc/self/ns/pid", link.data(), link.size());
  if (size <= 0) return {};
  const std::string text(link.data(), static_cast<std::size_t>(size));
  const auto open = text.find('[');
  const auto close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return text.substr(open + 1, close - open - 1);
}

// Dead and not yet collected by its parent: the state stands behind the name in parentheses, which
// may hold anything.
bool is_zombie(std::int64_t pid) {
  const auto line = first_line_of("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'Z' || state == 'X';
}

struct StartsHere {
  Mutex mutex;
  std::set<WorkerId> ids POSTRIDER_GUARDED_BY(mutex);
};

StartsHere& starts_here() {
  static StartsHere starts;
  return starts;
}

bool is_of_this_process(WorkerId id) {
  auto& starts = starts_here();
  const MutexLock lock(starts.mutex);
  return starts.ids.contains(id);
}

}  // namespace

HostIdentity this_host() {
  const auto name = host_name();
  const auto boot = first_line_of("/proc/sys/kernel/random/boot_id");
  const auto processes = process_namespace();
  return {name + "/" + boot + "/" + processes,
          !name.empty() && !boot.empty() && !processes.empty()};
}

std::int64_t this_process() noexcept {
  return getpid();
}

// `kill` asks the kernel: /proc may hide what belongs to other users.
bool is_gone(const WorkerInfo& other) {
  if (other.pid <= 0 || other.pid > std::numeric_limits<pid_t>::max()) return false;
  if (other.pid == this_process()) return !is_of_this_process(other.id);
  if (kill(static_cast<pid_t>(other.pid), 0) != 0) return errno == ESRCH;
  return is_zombie(other.pid);
}

OwnStart::~OwnStart() {
  if (!id_) return;
  auto& starts = starts_here();
  const MutexLock lock(starts.mutex);
  starts.ids.erase(*id_);
}

void OwnStart::set(WorkerId id) {
  if (id_ == id) return;
  auto& starts = starts_here();
  const MutexLock lock(starts.mutex);
  if (id_) starts.ids.erase(*id_);
  starts.ids.insert(id);
  id_ = id;
}

}  // namespace postrider::engine
