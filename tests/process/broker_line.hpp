#pragma once
/// \file
/// Jobs whose tasks go by a queue of a real RabbitMQ: relay, worker and handlers as processes.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "process/job_line.hpp"
#include "process/patience.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_server.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {

class BrokerJobs : public JobProcesses {
 protected:
  void SetUp() override {
    JobProcesses::SetUp();
    if (IsSkipped() || HasFailure()) return;
    need_rabbitmq();
    if (IsSkipped() || HasFailure()) return;
    server_ = &shared_rabbitmq();
    session().declare_queue(dead_);
    session().declare_queue(queue_,
                            {{"x-dead-letter-exchange", ""}, {"x-dead-letter-routing-key", dead_}});
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->start();
    session().delete_queue(queue_);
    session().delete_queue(dead_);
  }

  /// A route from every event to a job of this name, by the broker.
  [[nodiscard]] std::string broker_route(const std::string& job,
                                         const std::string& more = "") const {
    return route(job, "to = \"" + server_->url() + "\"\n" + more);
  }
  [[nodiscard]] std::unique_ptr<Running> start_broker_worker(
      const std::string& script, const std::vector<std::string>& more = {}) {
    return start_worker_of({"--from", server_->url(), "--from-queue", queue_}, script, more);
  }
  [[nodiscard]] RabbitmqSession session() const { return RabbitmqSession(server_->ports().amqp); }
  [[nodiscard]] std::size_t waiting() const { return session().ready(queue_); }
  bool waiting_comes_to(std::size_t number) const {
    return comes_true([&] { return waiting() == number; });
  }
  /// Waits until a worker reads the queue.
  void await_consumers(std::size_t number) const {
    EXPECT_TRUE(comes_true([&] {
      return server_->control({"list_consumers"}).find(queue_) != std::string::npos &&
             consumers() >= number;
    }));
  }
  /// Nothing is left at the broker, and nothing was thrown away by it. Requires: workers ended.
  void expect_broker_is_empty() const {
    EXPECT_EQ(waiting(), 0U) << "a task was not acknowledged";
    EXPECT_EQ(session().ready(dead_), 0U) << "a task was rejected";
  }
  /// No dispatch has run twice.
  void expect_each_dispatch_ran_once() const {
    std::set<std::string> dispatches;
    const auto all = runs();
    for (const auto& run : all)
      dispatches.insert(run.dispatch);
    EXPECT_EQ(dispatches.size(), all.size());
  }

  const std::string queue_ = "work";  // that of the routes
  const std::string dead_ = "work.dead";
  Rabbitmq* server_ = nullptr;

 private:
  [[nodiscard]] std::size_t consumers() const {
    const auto list = server_->control({"list_consumers"});
    std::size_t found = 0;
    for (auto at = list.find(queue_); at != std::string::npos; at = list.find(queue_, at + 1))
      ++found;
    return found;
  }
};

}  // namespace postrider::testing
