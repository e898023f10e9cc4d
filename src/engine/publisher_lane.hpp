#pragma once
/// \file
/// One thread that drives one publisher, so that a slow destination delays nobody else.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <postrider/message.hpp>
#include <postrider/publisher.hpp>
#include <postrider/result.hpp>

#include "base/bounded_queue.hpp"

namespace postrider::engine {

/// What a lane tells its coordinator.
struct LaneReport {
  std::size_t route = 0;
  std::vector<MessageOutcome> outcomes;
  std::optional<Error> failure;  ///< the publisher threw; the lane sends nothing any more
};

using LaneReports = BoundedQueue<LaneReport>;

/// Thread safety: `send` and `stop` by the coordinator only.
class PublisherLane {
 public:
  /// `reports` is borrowed and must outlive the lane. `window` is the most that the coordinator has
  /// in flight; `patience` bounds a submit that has to connect.
  PublisherLane(std::size_t route, std::unique_ptr<Publisher> publisher, std::size_t window,
                milliseconds patience, LaneReports& reports);
  ~PublisherLane();
  PublisherLane(const PublisherLane&) = delete;
  PublisherLane& operator=(const PublisherLane&) = delete;

  void send(std::vector<Message> messages);
  /// Closes the publisher and ends the thread. Idempotent.
  void stop();

 private:
  void run();
  void turn();
  void submit(const std::vector<Message>& messages);
  void report(std::vector<MessageOutcome> outcomes);
  void fail(Error error);

  const std::size_t route_;
  const std::unique_ptr<Publisher> publisher_;
  const milliseconds patience_;
  LaneReports& reports_;
  BoundedQueue<Message> inbox_;
  std::size_t in_flight_ = 0;  // the lane's thread only
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::engine
