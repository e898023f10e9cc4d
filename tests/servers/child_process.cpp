#include "servers/child_process.hpp"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "run/run_marks.hpp"

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));  // NOLINT: posix_spawn changes nothing
  }
  result.push_back(nullptr);
  return result;
}

/// Under setpriv the kernel kills the process when the test program dies in whatever way.
std::vector<std::string> bound_to_us(std::vector<std::string> arguments) {
  const auto setpriv = find_program("setpriv");
  if (setpriv.empty()) return arguments;
  std::vector<std::string> bound = {setpriv, "--pdeathsig", "KILL", "--"};
  bound.insert(bound.end(), arguments.begin(), arguments.end());
  return bound;
}

/// What /proc/PID/stat says of a process.
struct ProcessState {
  char state = 0;
  pid_t parent = -1;
  pid_t group = -1;
  pid_t session = -1;
};

ProcessState state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  ProcessState process;
  // The name stands in parentheses and may hold anything, parentheses too.
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return process;
  std::istringstream(line.substr(name_end + 1)) >> process.state >> process.parent >>
      process.group >> process.session;
  return process;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    pid_t candidate = 0;
    const auto end = name.data() + name.size();
    if (std::from_chars(name.data(), end, candidate).ptr != end) continue;
    if (state_of(candidate).parent == pid) children.push_back(candidate);
  }
  return children;
}

void collect_descendants(pid_t pid, std::vector<pid_t>& into) {
  for (const auto child : children_of(pid)) {
    into.push_back(child);
    collect_descendants(child, into);
  }
}

/// The processes of all ChildProcess objects; their ends are for these to see.
std::set<pid_t>& own_processes() {
  static std::set<pid_t> pids;
  return pids;
}

/// Buries what servers and their tools left behind. Each of them is in a session of its own, unlike
/// anything else that this program may have started.
void reap_orphans() {
  for (const auto pid : children_of(getpid())) {
    const auto process = state_of(pid);
    const bool ours = process.state == 'Z' && process.session != getsid(0);
    if (ours && !own_processes().contains(pid)) waitpid(pid, nullptr, WNOHANG);
  }
}

}  // namespace

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto program = folder + "/" + name;
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const Environment& environment, const std::string& output_file) {
  // What the server leaves behind becomes our child, so that it can be waited for.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> variables;
  auto all = environment;
  all.merge(marks_of_run());
  for (const auto& [name, value] : all)
    variables.push_back(name + "=" + value);
  const auto command = bound_to_us(arguments);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const int error = posix_spawn(&pid_, command[0].c_str(), &files, &attributes,
                                pointers(command).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  own_processes().insert(pid_);
}

bool ChildProcess::running() {
  return pid_ > 0 && wait(milliseconds(0)) == -1 && pid_ > 0;
}

int ChildProcess::wait(milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      own_processes().erase(std::exchange(pid_, -1));
      reap_orphans();
      break;
    }
    if (std::chrono::steady_clock::now() >= give_up) return -1;
    std::this_thread::sleep_for(milliseconds(10));  // Polls an external process.
  }
  return exit_code_;
}

void ChildProcess::signal(int number) {
  if (pid_ > 0) ::kill(pid_, number);
}

void ChildProcess::stop(milliseconds patience) {
  signal(SIGTERM);
  (void)wait(patience);
  kill();
}

void ChildProcess::kill() {
  if (pid_ <= 0) return;
  std::vector<pid_t> descendants;
  collect_descendants(pid_, descendants);
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  own_processes().erase(std::exchange(pid_, -1));
  // They were found below a process of ours a moment ago, and are our children by now.
  for (const auto pid : descendants) {
    if (state_of(pid).parent != getpid()) continue;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  reap_orphans();
}

}  // namespace postrider::testing
