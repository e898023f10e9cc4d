#include <iostream>
#include <stdexcept>
#include <utility>

#include <postrider/runner/thread.hpp>
#include <postrider/store/postgres.hpp>

#include "bench/job_rows.hpp"
#include "bench/jobs.hpp"

namespace postrider::bench {
namespace {

WorkerOptions worker_options(std::size_t concurrency) {
  WorkerOptions options;
  options.name = "bench";
  options.queues = {{job_queue, 1}};
  options.concurrency = concurrency;
  return options;
}

}  // namespace

void CompletionCount::notice(const Notice& notice) {
  if (severity_of(notice.kind) >= Severity::warning) {
    std::cerr << to_string(notice.kind) << ": " << notice.code << " " << notice.detail << "\n";
  }
  if (notice.kind == NoticeKind::delivery_failed) on_done_();
  if (notice.kind == NoticeKind::job_completed && ++completed_ == jobs_) on_done_();
}

WorkerGroup::WorkerGroup(const std::string& conninfo, const Handlers& handlers, std::size_t workers,
                         std::size_t concurrency, Observer& observer) {
  for (std::size_t i = 0; i < workers; ++i) {
    auto member = std::make_unique<Member>();
    member->worker = std::make_unique<Worker>(
        [&conninfo] {
          return make_postgres_job_store({conninfo, {}, 64});
        },
        [&](AttemptDesk& desk) { return make_thread_runner(handlers, concurrency, desk); },
        worker_options(concurrency), system_clock(), *member->random, observer);
    members_.push_back(std::move(member));
  }
}

WorkerGroup::~WorkerGroup() {
  request_stop();
  for (auto& member : members_)
    if (member->thread.joinable()) member->thread.join();
}

/// One that cannot work ends the others, too.
void WorkerGroup::start() {
  for (auto& member : members_) {
    member->thread = std::thread([this, &member = *member] {
      member.report = member.worker->run();
      if (!member.report) request_stop();
    });
  }
}

void WorkerGroup::request_stop() noexcept {
  for (auto& member : members_)
    member->worker->request_stop();
}

void WorkerGroup::join() {
  for (auto& member : members_)
    member->thread.join();
  for (const auto& member : members_)
    if (!member->report) throw std::runtime_error(describe(member->report.error()));
}

}  // namespace postrider::bench
