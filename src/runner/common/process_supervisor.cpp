#include "runner/common/process_supervisor.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "runner/common/marked_processes.hpp"

namespace postrider::runner {
namespace {

// A process may flood its pipe; others have their turn after so much of it.
constexpr std::size_t bytes_at_once = 64U << 10U;
// What may still stand in a pipe at the end, and what dying grandchildren add to it.
constexpr int most_last_reads = 16;
constexpr int events_at_once = 64;
// A process that waits for a broken disk cannot even be killed.
constexpr std::chrono::seconds close_patience{5};
constexpr int close_poll_ms = 100;

void block_all_signals() {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, nullptr);
}

Descriptor make_epoll() {
  Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  // Out of descriptors, like out of memory: there is no runner then.
  if (!epoll) throw std::system_error(errno, std::generic_category(), "epoll");
  return epoll;
}

bool must_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

std::string reason_of(int native) {
  return fmt::format("{} (errno {})", std::generic_category().message(native), native);
}

}  // namespace

ProcessSupervisor::ProcessSupervisor(SupervisorOptions options, OnEnd on_end)
    : options_(std::move(options)),
      on_end_(std::move(on_end)),
      epoll_(make_epoll()),
      oom_(options_.cgroup_folder),
      guard_(options_.most_processes),
      buffer_(bytes_at_once, '\0') {
  epoll_event event{EPOLLIN, {&bell_source_}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.descriptor(), &event);
  thread_ = std::thread([this] { run(); });
}

ProcessSupervisor::~ProcessSupervisor() {
  close();
}

void ProcessSupervisor::start(ProcessRequest request) {
  std::vector<ProcessRequest> late;
  {
    const MutexLock lock(mutex_);
    auto& starts = is_closed_ ? late : orders_.starts;
    starts.push_back(std::move(request));
  }
  give_back(std::move(late));
  bell_.ring();
}

void ProcessSupervisor::request_stop(const DispatchId& id) {
  {
    const MutexLock lock(mutex_);
    orders_.stops.insert(id);
  }
  bell_.ring();
}

void ProcessSupervisor::kill(const DispatchId& id) {
  {
    const MutexLock lock(mutex_);
    orders_.kills.insert(id);
  }
  bell_.ring();
}

void ProcessSupervisor::close() {
  {
    const MutexLock lock(mutex_);
    orders_.close = true;
  }
  bell_.ring();
  {
    const MutexLock lock(close_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  // What was ordered while the thread was on its way out.
  std::vector<ProcessRequest> late;
  {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    late = std::exchange(orders_.starts, {});
  }
  give_back(std::move(late));
}

void ProcessSupervisor::run() {
  block_all_signals();
  while (!finished()) {
    wait_and_serve();
    finish_ended();
    take_orders();
  }
  for (auto& [id, process] : running_)
    on_end_(id, std::move(process->end));
  running_.clear();
}

bool ProcessSupervisor::finished() {
  return closing_ && (running_.empty() || std::chrono::steady_clock::now() > give_up_at_);
}

void ProcessSupervisor::wait_and_serve() {
  std::array<epoll_event, events_at_once> events{};
  const int count =
      epoll_wait(epoll_.get(), events.data(), events_at_once, closing_ ? close_poll_ms : -1);
  // A process is finished after all events of the round: until then their sources are there.
  for (int i = 0; i < count; ++i)
    serve(*static_cast<const Source*>(events[static_cast<std::size_t>(i)].data.ptr));
}

void ProcessSupervisor::serve(const Source& source) {
  switch (source.pipe) {
    case Pipe::bell:
      return bell_.silence();
    case Pipe::input:
      return feed(*source.process);
    case Pipe::output:
      return read_output(*source.process);
    case Pipe::result:
      return read_result(*source.process);
    case Pipe::exit:
      ended_.push_back(source.process->id);
  }
}

void ProcessSupervisor::take_orders() {
  Orders orders;
  {
    const MutexLock lock(mutex_);
    orders = std::exchange(orders_, {});
  }
  if (orders.close && !closing_) begin_closing();
  if (closing_) {
    give_back(std::move(orders.starts));
  } else {
    for (auto& request : orders.starts)
      launch(std::move(request));
  }
  for (const auto& id : orders.stops)
    stop_group(id);
  for (const auto& id : orders.kills) {
    const auto found = running_.find(id);
    if (found != running_.end()) kill_group(*found->second);
  }
}

void ProcessSupervisor::begin_closing() {
  closing_ = true;
  give_up_at_ = std::chrono::steady_clock::now() + close_patience;
  for (auto& [id, process] : running_)
    kill_group(*process);
}

void ProcessSupervisor::launch(ProcessRequest request) {
  auto process = std::make_unique<Running>();
  process->id = request.id;
  process->end.label = std::move(request.label);
  process->oom = oom_.mark();
  auto child = spawn(request.command);
  if (!child) {
    process->end.start_error = child.error().message;
    return on_end_(request.id, std::move(process->end));
  }
  process->child = std::move(child).value();
  process->input = std::move(request.input);
  process->mark = std::move(request.mark);
  process->output = TextRing(options_.last_output_bytes);
  guard_.watch(process->child.pid);
  listen(*process);
  const bool added = running_.emplace(request.id, std::move(process)).second;
  POSTRIDER_ASSERT(added && running_.size() <= options_.most_processes);
}

void ProcessSupervisor::listen(Running& process) {
  auto& child = process.child;
  add_source(process, Pipe::exit, child.exit, EPOLLIN);
  add_source(process, Pipe::input, child.input, EPOLLOUT);
  add_source(process, Pipe::output, child.output, EPOLLIN);
  add_source(process, Pipe::result, child.result, EPOLLIN);
}

void ProcessSupervisor::add_source(Running& process, Pipe pipe, const Descriptor& descriptor,
                                   std::uint32_t events) {
  if (!descriptor) return;
  auto& source = process.sources.emplace_back(std::make_unique<Source>(Source{pipe, &process}));
  epoll_event event{events, {source.get()}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event);
}

// A child between fork and exec holds a copy of each of our descriptors, and as long as it does,
// closing one alone would leave it in the epoll set.
void ProcessSupervisor::forget(Descriptor& descriptor) {
  if (!descriptor) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor.get(), nullptr);
  descriptor.reset();
}

// SIGPIPE is blocked in this thread: a child that does not read its input is its own affair.
void ProcessSupervisor::feed(Running& process) {
  const auto rest = std::string_view(process.input).substr(process.written);
  const auto size = write(process.child.input.get(), rest.data(), rest.size());
  if (size < 0 && must_wait()) return;
  if (size > 0) process.written += static_cast<std::size_t>(size);
  if (size < 0 || process.written == process.input.size()) {
    forget(process.child.input);
    process.input = {};
  }
}

void ProcessSupervisor::read_output(Running& process) {
  const auto size = read(process.child.output.get(), buffer_.data(), buffer_.size());
  if (size > 0) return process.output.add({buffer_.data(), static_cast<std::size_t>(size)});
  if (size == 0 || !must_wait()) forget(process.child.output);
}

void ProcessSupervisor::read_result(Running& process) {
  const auto size = read(process.child.result.get(), buffer_.data(), buffer_.size());
  if (size > 0) {
    auto& result = process.end.result;
    const auto room = options_.most_result_bytes - result.size();
    result.append(buffer_, 0, std::min(room, static_cast<std::size_t>(size)));
    process.end.result_cut = process.end.result_cut || static_cast<std::size_t>(size) > room;
  } else if (size == 0 || !must_wait()) {
    forget(process.child.result);
  }
}

void ProcessSupervisor::stop_group(const DispatchId& id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  found->second->end.stop_requested = true;
  signal_group(found->second->child, SIGTERM);
  signal_group(found->second->child, SIGCONT);  // One that was stopped hears nothing.
}

void ProcessSupervisor::kill_group(Running& process) {
  process.end.killed = true;
  signal_group(process.child, SIGKILL);
}

void ProcessSupervisor::finish_ended() {
  const auto ended = std::exchange(ended_, {});
  EnvironmentMarks marks;
  for (const auto& id : ended) {
    auto& process = *running_.at(id);
    clear_up(process);
    if (may_have_left_something(process)) marks.insert(process.mark);
  }
  kill_marked_processes(marks);
  for (const auto& id : ended) {
    report(*running_.at(id));
    running_.erase(id);
  }
  if (!ended.empty()) give_up_at_ = std::chrono::steady_clock::now() + close_patience;
}

void ProcessSupervisor::clear_up(Running& process) {
  auto& end = process.end;
  // Before it is waited for: until then the number of its group cannot become another's.
  signal_group(process.child, SIGKILL);
  end.status = reap(process.child);
  guard_.release(process.child.pid);
  read_rest(process);
  int native = 0;
  if (read(process.child.start_error.get(), &native, sizeof native) == sizeof native) {
    end.start_error = reason_of(native);
  }
  if (end.status.signal == SIGKILL && !end.killed) {
    end.out_of_memory = oom_.explains_death(process.oom);
  }
}

// Looking for what has left the group costs milliseconds. It is done when a pipe is still held by
// somebody, and where the job did not end by itself.
bool ProcessSupervisor::may_have_left_something(const Running& process) {
  const auto& end = process.end;
  const bool by_itself = end.status.signal == 0 && !end.stop_requested && !end.killed;
  const bool is_held = process.child.output || process.child.result;
  return !process.mark.empty() && (is_held || !by_itself);
}

void ProcessSupervisor::report(Running& process) {
  auto& child = process.child;
  for (auto* descriptor : {&child.exit, &child.input, &child.output, &child.result})
    forget(*descriptor);
  child.start_error.reset();  // All are closed before anybody hears that the slot is free.
  process.end.last_output = process.output.last();
  process.end.output_bytes = process.output.bytes();
  on_end_(process.id, std::move(process.end));
}

void ProcessSupervisor::read_rest(Running& process) {
  const auto read_before_end = [&](const Descriptor& descriptor, auto read_some) {
    for (int reads = 0; descriptor && reads < most_last_reads; ++reads) {
      errno = 0;
      read_some();
      if (errno != 0) return;
    }
  };
  read_before_end(process.child.output, [&] { read_output(process); });
  read_before_end(process.child.result, [&] { read_result(process); });
}

void ProcessSupervisor::give_back(std::vector<ProcessRequest> starts) {
  for (auto& request : starts) {
    ProcessEnd end;
    end.label = std::move(request.label);
    end.killed = true;
    on_end_(request.id, std::move(end));
  }
}

}  // namespace postrider::runner
