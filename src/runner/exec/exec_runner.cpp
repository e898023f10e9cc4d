#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <postrider/runner/exec.hpp>

#include "base/assert.hpp"
#include "base/bounded_queue.hpp"
#include "base/utf8.hpp"
#include "runner/common/process_supervisor.hpp"
#include "runner/exec/exec_verdict.hpp"
#include "runner/exec/result_line.hpp"
#include "values/event_line.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has no header for it.

namespace postrider {
namespace {

constexpr std::string_view own_prefix = "POSTRIDER_";
constexpr std::uint64_t least_open_files = 16;
// A write of so much either fits into a pipe or would have to wait.
constexpr std::size_t written_at_once = 4096;

/// Ours, without what is only for the worker, such as a database's password.
std::vector<std::string> environment_to_hand_on(const std::map<std::string, std::string>& added) {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (!text.starts_with(own_prefix) && added.count(name) == 0) environment.emplace_back(text);
  }
  for (const auto& [name, value] : added)
    environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

std::vector<runner::ResourceLimit> limits_of(const ExecOptions& options) {
  std::vector<runner::ResourceLimit> limits;
  const auto add = [&](int resource, std::uint64_t most) {
    if (most != 0) limits.push_back({resource, most});
  };
  add(RLIMIT_NOFILE, options.most_open_files);
  add(RLIMIT_NPROC, options.most_processes);
  add(RLIMIT_AS, options.most_memory_bytes);
  return limits;
}

std::string mark_of(const Task& task) {
  return "POSTRIDER_DISPATCH_ID=" + task.dispatch_id.value().to_string();
}

/// In front of everything else, where it is found quickly in /proc.
std::vector<std::string> environment_of(const Task& task) {
  const auto& job = task.job;
  std::vector<std::string> environment{
      mark_of(task),
      "POSTRIDER_DELIVERY_ID=" + job.delivery_id.value().to_string(),
      "POSTRIDER_EVENT_ID=" + job.event_id.value().to_string(),
      "POSTRIDER_JOB=" + job.job,
      "POSTRIDER_QUEUE=" + job.queue,
      std::string("POSTRIDER_LAST_ATTEMPT=") + (job.last_attempt() ? "true" : "false"),
      fmt::format("POSTRIDER_RESULT_FD={}", runner::result_descriptor)};
  if (!task.checkpoint.empty()) environment.push_back("POSTRIDER_CHECKPOINT=" + task.checkpoint);
  return environment;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.find_first_of(std::string_view("=\0", 2)) == std::string_view::npos;
}

bool holds_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

std::uint64_t descriptors_allowed() {
  struct rlimit limit {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// Shows the last output of an attempt. Lines stay lines; nothing else may steer a terminal.
std::string shown_output(const runner::ProcessEnd& end) {
  auto text = fmt::format("postrider: {}: last {} of {} bytes of output:\n", end.label,
                          end.last_output.size(), end.output_bytes);
  std::string_view rest = end.last_output;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    text += "  " + clean_text(line, line.size()) + "\n";
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return text;
}

/// Never waits: whoever reads our standard error slowly must not hold up the jobs.
void write_to_standard_error(std::string_view text) {
  while (!text.empty()) {
    pollfd error{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&error, 1, 0) != 1) return;
    const auto size = write(STDERR_FILENO, text.data(), std::min(text.size(), written_at_once));
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

bool is_done(const AttemptEnd& end) {
  const auto* const outcome = std::get_if<JobOutcome>(&end);
  return outcome != nullptr && outcome->kind == JobOutcome::Kind::done;
}

class ExecRunner final : public JobRunner {
 public:
  explicit ExecRunner(ExecOptions options)
      : options_(std::move(options)),
        environment_(environment_to_hand_on(options_.environment)),
        limits_(limits_of(options_)),
        reports_(options_.slots),
        supervisor_(
            {options_.slots, runner::most_result_line_bytes,
             options_.output == ExecOutput::tail ? options_.tail_bytes : 0, options_.cgroup_folder},
            [this](const DispatchId& dispatch, const runner::ProcessEnd& end) {
              on_end(dispatch, end);
            }) {}

  JobRunnerTraits traits() const override { return {"exec", options_.slots, false, true}; }

  /// The command gets the name of the job and knows itself what it can do.
  Result<void> check_job(std::string_view) const override { return {}; }

  void start(Task task) override {
    const auto open = ++open_;
    POSTRIDER_ASSERT(open <= options_.slots);
    if (!task.event || !task.malformed.empty()) {
      return report(task.dispatch_id, JobOutcome::fail(job_code::undecodable, task.malformed));
    }
    auto line = event_line(*task.event);
    if (!line) {
      return report(task.dispatch_id,
                    JobOutcome::fail(job_code::undecodable, line.error().message));
    }
    if (holds_nul(task.checkpoint)) {
      return report(task.dispatch_id,
                    JobOutcome::fail(job_code::undecodable,
                                     "The checkpoint holds a NUL, which no environment can."));
    }
    start_command(task, std::move(line).value());
  }

  void request_stop(const DispatchId& dispatch) override { supervisor_.request_stop(dispatch); }
  void kill(const DispatchId& dispatch) override { supervisor_.kill(dispatch); }

  std::vector<RunnerReport> poll(Deadline deadline) override {
    auto reports = reports_.pop_all(deadline.remaining());
    open_ -= reports.size();
    return reports;
  }
  void wake() noexcept override { reports_.interrupt(); }
  void close() override { supervisor_.close(); }

 private:
  void start_command(const Task& task, std::string line) {
    runner::ProcessRequest request;
    request.id = task.dispatch_id;
    request.command.program = runner::find_program(options_.command.front());
    if (request.command.program.empty()) {
      return report(task.dispatch_id,
                    JobOutcome::retry(runner::cannot_start_code,
                                      "The program is not in PATH; install it or give its path."));
    }
    request.command.arguments = options_.command;
    request.command.environment = environment_of(task);
    request.command.environment.insert(request.command.environment.end(), environment_.begin(),
                                       environment_.end());
    request.command.limits = limits_;
    request.command.inherit_output = options_.output == ExecOutput::inherit;
    request.input = std::move(line);
    request.mark = mark_of(task);
    request.label =
        fmt::format("job {} {}", task.job.job, task.job.delivery_id.value().to_string());
    supervisor_.start(std::move(request));
  }

  /// By the supervising thread.
  void on_end(const DispatchId& dispatch, const runner::ProcessEnd& end) {
    auto verdict = runner::judge_exec(end);
    if (options_.output == ExecOutput::tail && end.output_bytes > 0 && !is_done(verdict)) {
      write_to_standard_error(shown_output(end));
    }
    report(dispatch, std::move(verdict));
  }

  void report(const DispatchId& dispatch, AttemptEnd end) {
    std::vector<RunnerReport> reports;
    reports.push_back({dispatch, std::move(end)});
    reports_.push(std::move(reports));
  }

  const ExecOptions options_;
  const std::vector<std::string> environment_;
  const std::vector<runner::ResourceLimit> limits_;
  std::atomic<std::size_t> open_{0};  ///< started, and their ends not taken by `poll`
  BoundedQueue<RunnerReport> reports_;
  runner::ProcessSupervisor supervisor_;  // ends before what it uses
};

void check_command(const ExecOptions& options, std::vector<std::string>& faults) {
  if (options.command.empty() || options.command.front().empty()) {
    faults.emplace_back("command is empty; give a program.");
  }
  if (std::any_of(options.command.begin(), options.command.end(), holds_nul)) {
    faults.emplace_back("command holds a NUL; remove it.");
  }
  for (const auto& [name, value] : options.environment) {
    if (!is_variable_name(name) || holds_nul(value)) {
      faults.emplace_back("environment has a name or value that cannot be one; correct it.");
    }
  }
}

void check_slots(const ExecOptions& options, std::vector<std::string>& faults) {
  if (options.slots < 1 || options.slots > ExecOptions::most_slots) {
    faults.push_back(
        fmt::format("slots is {}; it must be 1 to {}.", options.slots, ExecOptions::most_slots));
    return;
  }
  const auto needed = options.slots * runner::descriptors_per_child;
  const auto allowed = descriptors_allowed();
  if (needed >= allowed) {
    faults.push_back(
        fmt::format("{} slots need {} open files, and {} are allowed; raise the limit (ulimit -n) "
                    "or lower slots.",
                    options.slots, needed, allowed));
  }
}

void check_bounds(const ExecOptions& options, std::vector<std::string>& faults) {
  if (options.tail_bytes < 1 || options.tail_bytes > ExecOptions::most_tail_bytes) {
    faults.push_back(fmt::format("tail_bytes is {}; it must be 1 to {}.", options.tail_bytes,
                                 ExecOptions::most_tail_bytes));
  }
  if (options.most_open_files != 0 && options.most_open_files < least_open_files) {
    faults.push_back(fmt::format("most_open_files is {}; it must be 0 or at least {}.",
                                 options.most_open_files, least_open_files));
  }
}

}  // namespace

std::string_view to_string(ExecOutput output) noexcept {
  constexpr std::array<std::string_view, 3> words{"discard", "tail", "inherit"};
  return words.at(static_cast<std::size_t>(output));
}

std::optional<ExecOutput> parse_exec_output(std::string_view text) noexcept {
  for (const auto output : {ExecOutput::discard, ExecOutput::tail, ExecOutput::inherit}) {
    if (text == to_string(output)) return output;
  }
  return std::nullopt;
}

std::vector<std::string> validate(const ExecOptions& options) {
  std::vector<std::string> faults;
  check_command(options, faults);
  check_slots(options, faults);
  check_bounds(options, faults);
  return faults;
}

std::unique_ptr<JobRunner> make_exec_runner(ExecOptions options) {
  return std::make_unique<ExecRunner>(std::move(options));
}

}  // namespace postrider
