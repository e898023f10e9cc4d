#include "runner/common/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace postrider::runner {
namespace {

// Above every number under which a child finds something: dup2 must not overwrite what is still
// to be copied.
constexpr int first_own_descriptor = 10;
constexpr int start_error_descriptor = 4;
constexpr int last_signal = 64;
constexpr int not_started = 127;

Error no_process(std::string_view what, int native) {
  return {ErrorCode::unavailable, Disposition::retry,
          fmt::format("A process cannot be started: {}: {}. Raise the limits of open files and "
                      "processes, or lower the number of slots.",
                      what, std::generic_category().message(native)),
          "process", std::to_string(native)};
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

bool move_up(Descriptor& descriptor) {
  const int moved = fcntl(descriptor.get(), F_DUPFD_CLOEXEC, first_own_descriptor);
  if (moved >= 0) descriptor.reset(moved);
  return moved >= 0;
}

std::optional<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  if (!move_up(pipe.read) || !move_up(pipe.write)) return std::nullopt;
  return pipe;
}

// O_NONBLOCK belongs to one end of a pipe: the child's end goes on to block.
void never_block(const Descriptor& descriptor) {
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const auto& text : texts)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// All that the child needs, made before the fork: after it only async-signal-safe calls are
// allowed, as another thread may have held any lock at that moment.
struct Plan {
  const char* program;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const std::vector<ResourceLimit>* limits;
  pid_t parent;
  int input;
  int output;
  int result;
  int start_error;
};

// Ignored signals and blocked ones survive exec, and a child that ignores SIGTERM because we do
// would never stop.
void reset_signals() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal <= last_signal; ++signal)
    sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// When memory runs out, a job is the better victim than the worker that has to record its end.
void offer_to_oom_killer() noexcept {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  constexpr std::string_view score = "500";
  [[maybe_unused]] const auto written = write(file, score.data(), score.size());
  close(file);
}

bool set_limits(const std::vector<ResourceLimit>& limits) noexcept {
  for (const auto& limit : limits) {
    const struct rlimit bound { limit.most, limit.most };
    if (setrlimit(static_cast<__rlimit_resource>(limit.resource), &bound) != 0) return false;
  }
  return true;
}

bool place_descriptors(const Plan& plan) noexcept {
  const int output = plan.output >= 0 ? plan.output : STDERR_FILENO;
  return dup2(plan.input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
         dup2(output, STDERR_FILENO) >= 0 && dup2(plan.result, result_descriptor) >= 0 &&
         dup3(plan.start_error, start_error_descriptor, O_CLOEXEC) >= 0;
}

[[noreturn]] void give_up(int start_error) noexcept {
  const int native = errno;
  [[maybe_unused]] const auto written = write(start_error, &native, sizeof native);
  _exit(not_started);
}

[[noreturn]] void become(const Plan& plan) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(not_started);  // It died before the line above.
  reset_signals();
  offer_to_oom_killer();
  if (!place_descriptors(plan)) give_up(plan.start_error);
  // Libraries of the application open descriptors that survive exec: a socket of the database would
  // keep the worker's session alive.
  syscall(SYS_close_range, start_error_descriptor + 1, ~0U, 0);
  if (!set_limits(*plan.limits)) give_up(start_error_descriptor);
  execve(plan.program, plan.arguments.data(), plan.environment.data());
  give_up(start_error_descriptor);
}

// With every signal blocked, so that no handler of ours runs in the child.
pid_t fork_with(const Plan& plan) {
  sigset_t every;
  sigset_t before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  const pid_t pid = fork();
  if (pid == 0) become(plan);
  const int native = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = native;
  return pid;
}

void end_at_once(const Child& child) {
  kill(child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
}

bool is_executable(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<Child> spawn(const Command& command) {
  auto input = make_pipe();
  auto output = command.inherit_output ? Pipe{} : make_pipe();
  auto result = make_pipe();
  auto start_error = make_pipe();
  if (!input || !output || !result || !start_error) return no_process("no pipe", errno);

  const Plan plan{command.program.c_str(),
                  pointers_to(command.arguments),
                  pointers_to(command.environment),
                  &command.limits,
                  getpid(),
                  input->read.get(),
                  output->write.get(),
                  result->write.get(),
                  start_error->write.get()};
  Child child;
  child.pid = fork_with(plan);
  if (child.pid < 0) return no_process("no process", errno);
  setpgid(child.pid, child.pid);  // Whoever is first; a signal to the group must find it.
  child.exit = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.exit) {
    const int native = errno;
    end_at_once(child);
    return no_process("no pidfd", native);
  }
  child.input = std::move(input->write);
  child.output = std::move(output->read);
  child.result = std::move(result->read);
  child.start_error = std::move(start_error->read);
  for (const auto* end : {&child.input, &child.output, &child.result, &child.start_error}) {
    if (*end) never_block(*end);
  }
  return child;
}

void signal_group(const Child& child, int signal) noexcept {
  kill(-child.pid, signal);
}

ExitStatus reap(const Child& child) noexcept {
  int status = 0;
  pid_t ended = -1;
  do {
    ended = waitpid(child.pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0) return {};
  if (WIFSIGNALED(status)) return {WTERMSIG(status), -1};
  return {0, WEXITSTATUS(status)};
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    auto file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_executable(file)) return file;
  }
  return {};
}

}  // namespace postrider::runner
