#include "demo/service.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace examples::demo {
namespace {

constexpr int start_patience_ms = 30'000;
constexpr int stop_patience_ms = 5'000;
constexpr int look_every_ms = 10;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Waits until something can be read; a signal does not end it, as its sender is answered later.
bool wait_for_input(int pipe) {
  pollfd watched{pipe, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, start_patience_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

/// The first line that comes out of a pipe; empty when none comes.
std::string first_line(int pipe) {
  std::string line;
  while (wait_for_input(pipe)) {
    char c = 0;
    if (::read(pipe, &c, 1) != 1) return {};
    if (c == '\n') return line;
    line += c;
  }
  return {};
}

[[noreturn]] void become(const std::vector<char*>& words, int output, const char* log_file) {
  // In a session of its own, so that Ctrl-C reaches this program alone, which then ends it.
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int log = ::open(log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

Service::Service(const std::string& program, const std::vector<std::string>& arguments,
                 const std::string& log_file) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> words{here / program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto argv = pointers(words);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) become(argv, ends[1], log_file.c_str());
  ::close(ends[1]);
  const auto line = first_line(ends[0]);
  ::close(ends[0]);
  const auto colon = line.rfind(':');
  if (colon == std::string::npos) {
    kill();
    throw std::runtime_error(program + " does not start. It stands beside this program: build it.");
  }
  port_ = std::stoi(line.substr(colon + 1));
}

Service::~Service() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  for (int waited = 0; waited < stop_patience_ms; waited += look_every_ms) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) return;
    ::poll(nullptr, 0, look_every_ms);
  }
  kill();
}

void Service::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

}  // namespace examples::demo
