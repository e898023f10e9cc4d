#include "cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "run/run_marks.hpp"

namespace postrider::testing {
namespace {

// Far more than any command takes; a test that runs into it fails.
constexpr std::chrono::seconds patience{60};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Bounded polling for an external process, which is the only way to wait for one with a deadline.
template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void redirect(const std::filesystem::path& path, int flags, int target) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file < 0 || ::dup2(file, target) < 0) ::_exit(126);
}

}  // namespace

Running::Running(const std::filesystem::path& folder, const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& variables, const std::string& input,
                 const std::filesystem::path& streams)
    : streams_(streams) {
  std::filesystem::create_directory(streams_);
  std::ofstream(streams_ / "in", std::ios::binary) << input;
  auto arguments = words;
  std::vector<std::string> settings;
  for (const auto& [name, value] : variables)
    settings.push_back(name + "=" + value);
  const auto argv = pointers(arguments);
  const auto envp = pointers(settings);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  redirect(streams_ / "in", O_RDONLY, STDIN_FILENO);
  redirect(streams_ / "out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(streams_ / "err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  if (::chdir(folder.c_str()) != 0) ::_exit(126);
  ::execvpe(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

Running::~Running() {
  if (ended()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void Running::signal(int number) const {
  ::kill(pid_, number);
}

std::int64_t Running::peak_memory_bytes() const {
  const auto status = content("/proc/" + std::to_string(pid_) + "/status");
  const std::string_view label = "VmHWM:";
  const auto line = status.find(label);
  if (line == std::string::npos) throw std::runtime_error("the process is gone");
  return std::stoll(status.substr(line + label.size())) * 1024;
}

std::string Running::err() const {
  return content(streams_ / "err");
}

bool Running::says(const std::string& text) const {
  return eventually([&] { return err().find(text) != std::string::npos; });
}

bool Running::prints(const std::string& text) const {
  return eventually([&] { return content(streams_ / "out").find(text) != std::string::npos; });
}

bool Running::ended() {
  if (pid_ < 0) return true;
  if (::waitpid(pid_, &status_, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

Finished Running::finish() {
  Finished finished;
  if (eventually([this] { return ended(); })) {
    finished.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  finished.out = content(streams_ / "out");
  finished.err = err();
  return finished;
}

Workshop::Workshop() {
  auto pattern = (std::filesystem::temp_directory_path() / "postrider-cli-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  const char* search_path = std::getenv("PATH");
  variables["PATH"] = search_path == nullptr ? "/usr/bin:/bin" : search_path;
  variables["USER"] = "tester";
  variables.merge(marks_of_run());
}

Workshop::~Workshop() {
  std::filesystem::remove_all(folder_);
}

std::unique_ptr<Running> Workshop::start(const std::vector<std::string>& words,
                                         const std::string& input) {
  std::vector<std::string> command{POSTRIDER_TEST_BIN_DIR "/postrider"};
  command.insert(command.end(), words.begin(), words.end());
  return start_program(command, input);
}

Finished Workshop::run(const std::vector<std::string>& words, const std::string& input) {
  return start(words, input)->finish();
}

Finished Workshop::run_program(const std::vector<std::string>& words) {
  return start_program(words)->finish();
}

std::unique_ptr<Running> Workshop::start_program(const std::vector<std::string>& words,
                                                 const std::string& input) {
  const auto streams = folder_ / (".run-" + std::to_string(++runs_));
  return std::make_unique<Running>(folder_, words, variables, input, streams);
}

void Workshop::write(const std::string& name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string Workshop::read(const std::string& name) const {
  return content(path(name));
}

bool Workshop::will_hold(const std::string& name, const std::string& text) const {
  return eventually([&] { return read(name).find(text) != std::string::npos; });
}

}  // namespace postrider::testing
