#pragma once
/// \file
/// The coordinator: the only caller of a relay's core and of its observer.
///
/// Publishing, deciding and the database overlap, because publishers and the store have threads of
/// their own; the store has one connection and one call at a time, so that what a claim sees
/// follows what a settle wrote. Only what deletes old rows has a connection beside it.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include <postrider/relay.hpp>

#include "core/relay_core.hpp"
#include "engine/call_lane.hpp"
#include "engine/publisher_lane.hpp"

namespace postrider::engine {

class RelayEngine {
 public:
  RelayEngine(std::unique_ptr<Store> store, std::vector<RouteBinding> routes, RelayOptions options,
              const Clock& clock, Random& random, Observer& observer,
              std::unique_ptr<Purger> purger);
  ~RelayEngine();
  RelayEngine(const RelayEngine&) = delete;
  RelayEngine& operator=(const RelayEngine&) = delete;

  Result<PassReport> run_once();
  Result<DrainReport> drain(std::optional<std::size_t> max_passes);
  Result<LoopReport> run();
  void request_stop() noexcept;
  Result<void> close();

 private:
  // How a pass, or a continuous run, came to its end.
  struct End {
    PassReport report;
    std::optional<Error> error;
    bool forced = false;
    std::size_t left_in_flight = 0;
  };

  End drive(core::input::Begin begin);
  void take_step(core::Input input);
  void execute(core::action::Lease& lease);
  void execute(core::action::Claim& claim);
  void execute(core::action::TakeDue& due);
  void execute(core::action::TakeHeld& held);
  void execute(core::action::Settle& settle);
  void execute(core::action::Purge& purge);
  void execute(core::action::Submit& submit);
  void execute(core::action::Notify& notify);
  void execute(core::action::Done& done);
  template <class Answer, class Request, class Call>
  void ask_store(Request request, Call call);
  void take_answer(core::Input answer);
  void await_reports(milliseconds patience);
  void take_purge_answer();
  void stop_if_asked();
  void abandon();
  [[nodiscard]] milliseconds patience() const;
  [[nodiscard]] Deadline store_deadline() const;
  void pause(milliseconds wait);
  void note_store_failed(const Error& error, milliseconds wait);
  void note_store_recovered();
  [[nodiscard]] milliseconds next_backoff();

  const std::unique_ptr<Store> store_;
  const std::unique_ptr<Purger> purger_;  // null: nothing is ever deleted
  const RelayOptions options_;
  const Clock& clock_;
  Random& random_;
  Observer& observer_;
  IdGenerator ids_;
  core::RelayCore core_;
  LaneReports reports_;
  std::vector<std::unique_ptr<PublisherLane>> lanes_;  // by route; null: it makes jobs
  CallLane<core::Input> store_lane_;
  std::optional<CallLane<core::Input>> purge_lane_;  // with a purger

  std::queue<core::Input> inputs_;
  std::optional<End> end_;
  std::atomic<bool> stop_requested_ = false;
  bool stop_told_ = false;
  Instant stop_at_most_{};
  bool continuous_ = false;
  bool worked_once_ = false;     // the store answered since the start
  unsigned store_failures_ = 0;  // in a row
  bool closed_ = false;
};

}  // namespace postrider::engine
