// One of several workers that tests kill or freeze at random: it appends "delivery dispatch" to a
// file for each job that it runs, and ends in order at SIGTERM.
//
//     crowd-worker STORE-URL FILE DEAD-AFTER-MS
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include <postrider/handlers.hpp>
#include <postrider/runner/thread.hpp>
#include <postrider/worker.hpp>

#include "registry/registry.hpp"

namespace {

using postrider::DeliveryId;
using postrider::DispatchId;
using postrider::Handlers;
using postrider::JobOutcome;
using postrider::WorkerOptions;

class SilentObserver final : public postrider::Observer {
  void notice(const postrider::Notice&) override {}
};

/// A line is there as a whole or not at all, and stays when the process is killed.
JobOutcome append_line(int file, const std::string& line) {
  const auto written = ::write(file, line.data(), line.size());
  return written == static_cast<ssize_t>(line.size()) ? JobOutcome::done()
                                                      : JobOutcome::fail("not_written");
}

Handlers make_handlers(int file) {
  Handlers handlers;
  for (const char* job : {"once", "again"}) {
    handlers.bind(job, [file](DeliveryId delivery, DispatchId dispatch) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // There is always one amid it.
      return append_line(file,
                         delivery.value().to_string() + " " + dispatch.value().to_string() + "\n");
    });
  }
  return handlers;
}

WorkerOptions make_options(std::chrono::milliseconds dead_after) {
  WorkerOptions options;
  options.name = "crowd";
  options.queues = {{"work", 1}};
  options.concurrency = 8;
  options.poll = std::chrono::milliseconds(100);
  options.dead_after = dead_after;
  options.heartbeat = dead_after / 10;
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 64;
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  const auto backend = postrider::registry::open_backend(arguments[1], {});
  const int file = ::open(arguments[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (!backend || file < 0) return 66;
  const auto random = postrider::system_random();
  SilentObserver observer;
  postrider::Worker worker(
      backend->job_store,
      [&](postrider::AttemptDesk& desk) {
        return postrider::make_thread_runner(make_handlers(file), 8, desk);
      },
      make_options(std::chrono::milliseconds(std::stoi(arguments[3]))), postrider::system_clock(),
      *random, observer);
  std::thread([&] {
    int signal = 0;
    sigwait(&stop, &signal);
    worker.request_stop();
  }).detach();
  std::fputs("started\n", stderr);
  const auto report = worker.run();
  if (!report) std::fprintf(stderr, "%s\n", report.error().message.c_str());
  // The detached thread may still stand in sigwait, or in the last lines of request_stop.
  ::_exit(report && report->clean() ? 0 : 1);
}
