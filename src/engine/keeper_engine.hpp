#pragma once
/// \file
/// Drives the keeper of jobs: a coordinator of its own beside the relay's, so that neither waits
/// for the other's database calls or destinations.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store.hpp>
#include <postrider/observer.hpp>
#include <postrider/relay.hpp>
#include <postrider/result.hpp>

#include "core/job_keeper.hpp"
#include "engine/call_lane.hpp"
#include "engine/publisher_lane.hpp"

namespace postrider::engine {

/// Thread safety: `request_stop` and `wake` from any thread; everything else from one at a time.
class KeeperEngine {
 public:
  /// `brokers` are the job routes with a publisher. Clock, random and observer are borrowed.
  KeeperEngine(std::unique_ptr<JobStore> store, std::vector<RouteBinding> brokers,
               const RelayOptions& options, const Clock& clock, Random& random, Observer& observer);
  ~KeeperEngine();
  KeeperEngine(const KeeperEngine&) = delete;
  KeeperEngine& operator=(const KeeperEngine&) = delete;

  /// Ends what is lost and hands out what is due, once. Errors: of the store only.
  Result<void> run_once();
  /// Until `request_stop`, and then for `drain_timeout` while tasks are unanswered; these are taken
  /// back. Outages are survived; errors: only what a person has to mend.
  Result<LoopReport> run();
  void request_stop() noexcept;
  /// Jobs may have become due.
  void wake() noexcept;

 private:
  Result<void> drive(bool continuous);
  void take_answer(core::KeeperInput answer);
  void take_step(core::KeeperInput input);
  void execute(core::keeper_action::FindLost& find);
  void execute(core::keeper_action::HandOut& hand_out);
  void execute(core::keeper_action::Record& record);
  void execute(core::keeper_action::Submit& submit);
  void execute(core::keeper_action::Notify& notify);
  void execute(core::keeper_action::Done& done);
  template <class Answer, class Request, class Call>
  void ask_store(Request request, Call call);
  void await_reports();
  void tell_stop();
  void give_up();
  [[nodiscard]] bool is_fatal(const Error& error) const;
  void note_store_failed(const Error& error);
  [[nodiscard]] milliseconds patience() const;

  const std::unique_ptr<JobStore> store_;
  const milliseconds store_timeout_;
  const milliseconds drain_timeout_;
  const Clock& clock_;
  Observer& observer_;
  core::JobKeeper core_;
  LaneReports reports_;
  std::vector<std::unique_ptr<PublisherLane>> lanes_;
  CallLane<core::KeeperInput> store_lane_;
  std::queue<core::KeeperInput> inputs_;
  std::optional<core::keeper_action::Done> done_;
  std::atomic<bool> stop_requested_ = false;
  std::atomic<bool> woken_ = false;
  bool continuous_ = false;
  bool stop_told_ = false;
  Instant stop_at_most_{};  // once the stop is told
  std::size_t given_up_ = 0;
  bool worked_once_ = false;   // the store answered since the start
  bool store_failed_ = false;  // and it was told
};

}  // namespace postrider::engine
