#pragma once
/// \file
/// Runs child processes, feeds them, listens to them, and tells how each ended.
///
/// One thread does it all: it starts the processes (the kernel kills a child together with the
/// thread that started it, and this one lives as long as the supervisor) and waits for their
/// pidfds and pipes. Whether a process has ended is told by its pidfd alone: a pipe may have been
/// inherited by something that goes on.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <postrider/ids.hpp>

#include "base/bell.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "runner/common/oom_watch.hpp"
#include "runner/common/orphan_guard.hpp"
#include "runner/common/process.hpp"
#include "runner/common/text_ring.hpp"

namespace postrider::runner {

struct ProcessRequest {
  DispatchId id;
  Command command;
  std::string input;  ///< its standard input, which ends there
  /// An entry of the command's environment that no other process has; see marked_processes.hpp.
  std::string mark;
  std::string label;  ///< for whoever reads the output
};

/// How a process ended, and what it said.
struct ProcessEnd {
  std::string label;
  std::string start_error;  ///< why it could not be started; empty when it was
  ExitStatus status;
  bool stop_requested = false;
  bool killed = false;  ///< by `kill` or `close`
  bool out_of_memory = false;
  std::string result;  ///< what it wrote into `result_descriptor`
  bool result_cut = false;
  std::string last_output;
  std::uint64_t output_bytes = 0;
};

struct SupervisorOptions {
  std::size_t most_processes = 1;
  std::size_t most_result_bytes = 16U << 10U;
  std::size_t last_output_bytes = 0;
  std::string cgroup_folder;  ///< see `OomWatch`
};

/// Thread safety: any thread.
class ProcessSupervisor {
 public:
  /// Called by the supervising thread, once for each process. Must not block or throw.
  using OnEnd = std::function<void(const DispatchId&, ProcessEnd)>;

  ProcessSupervisor(SupervisorOptions options, OnEnd on_end);
  ~ProcessSupervisor();
  ProcessSupervisor(const ProcessSupervisor&) = delete;
  ProcessSupervisor& operator=(const ProcessSupervisor&) = delete;

  /// Blocking: never. Requires: no more than `most_processes` at once.
  void start(ProcessRequest request);
  /// SIGTERM to the process group. Nothing when it has ended.
  void request_stop(const DispatchId& id);
  /// SIGKILL to the process group and to what has left it.
  void kill(const DispatchId& id);
  /// Kills what runs and waits for it, except for what the kernel does not let go of for seconds.
  /// Idempotent.
  void close();

 private:
  enum class Pipe { bell, exit, input, output, result };
  struct Running;
  /// What epoll gives back.
  struct Source {
    Pipe pipe = Pipe::bell;
    Running* process = nullptr;
  };
  struct Running {
    DispatchId id;
    Child child;
    std::string input;
    std::size_t written = 0;
    std::string mark;
    OomWatch::Mark oom;
    TextRing output{0};
    ProcessEnd end;
    std::vector<std::unique_ptr<Source>> sources;
  };
  struct Orders {
    std::vector<ProcessRequest> starts;
    std::set<DispatchId> stops;
    std::set<DispatchId> kills;
    bool close = false;
  };

  void run();
  [[nodiscard]] bool finished();
  void wait_and_serve();
  void serve(const Source& source);
  void take_orders();
  void begin_closing();

  void launch(ProcessRequest request);
  void listen(Running& process);
  void add_source(Running& process, Pipe pipe, const Descriptor& descriptor, std::uint32_t events);
  void forget(Descriptor& descriptor);
  void feed(Running& process);
  void read_output(Running& process);
  void read_result(Running& process);
  void stop_group(const DispatchId& id);
  void kill_group(Running& process);
  void finish_ended();
  void clear_up(Running& process);
  void read_rest(Running& process);
  [[nodiscard]] static bool may_have_left_something(const Running& process);
  void report(Running& process);
  void give_back(std::vector<ProcessRequest> starts);

  const SupervisorOptions options_;
  const OnEnd on_end_;
  Bell bell_;
  Descriptor epoll_;
  OomWatch oom_;
  OrphanGuard guard_;
  std::string buffer_;  // what is read goes through here
  std::map<DispatchId, std::unique_ptr<Running>> running_;
  std::vector<DispatchId> ended_;  // of `running_`, to be finished
  Source bell_source_;
  bool closing_ = false;
  std::chrono::steady_clock::time_point give_up_at_{};

  Mutex mutex_;
  Orders orders_ POSTRIDER_GUARDED_BY(mutex_);
  bool is_closed_ POSTRIDER_GUARDED_BY(mutex_) = false;  // nobody takes orders any more
  Mutex close_mutex_;
  std::thread thread_ POSTRIDER_GUARDED_BY(close_mutex_);
};

}  // namespace postrider::runner
