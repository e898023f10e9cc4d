#pragma once
/// \file
/// What a relay does for jobs beside routing them: it ends attempts that nobody else will end, and
/// hands tasks to brokers.
///
///   lost:      found (worker dead, or overdue) ─▶ judged ─▶ recorded
///   hand-out:  dispatched by the store ─▶ sent ─▶ confirmed: a worker's turn
///                                              ├▶ refused: an attempt is used, at once
///                                              └▶ destination down, or nobody knows: taken back
///
/// A task that was taken back has a new dispatch id when it is sent again; should the first copy
/// have arrived after all, the worker finds it stale.
///
/// No lease is needed: several keepers may work at once, as every change names its dispatch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job.hpp>
#include <postrider/route.hpp>

#include "core/backoff.hpp"
#include "core/circuit.hpp"
#include "core/keeper_steps.hpp"

namespace postrider::core {

struct KeeperOptions {
  milliseconds period{1000};        ///< how often is looked for what is lost or due
  milliseconds dead_after{30'000};  ///< see `LostRequest`
  milliseconds probe_least{100};    ///< see `CircuitPolicy`
  milliseconds probe_most{30'000};
};

class JobKeeper {
 public:
  /// `routes` are the job routes with a broker; there may be none. Ownership: `random` is borrowed
  /// and must outlive the keeper.
  JobKeeper(KeeperOptions options, std::vector<Route> routes, Random& random);

  /// Takes one input and returns what to do, in order.
  [[nodiscard]] std::vector<KeeperAction> step(KeeperInput input, Instant now);

  /// When a `Tick` is worth giving although nothing else happened; none when nothing is planned.
  [[nodiscard]] std::optional<Instant> wake_at() const;

  /// Tasks that were sent and are not answered.
  [[nodiscard]] std::size_t in_flight() const noexcept { return attempts_.size(); }

 private:
  enum class StoreCall : std::uint8_t { none, find_lost, hand_out, record };

  // As many rows as one call should hold.
  static constexpr std::size_t most_per_call = 500;
  // How long a broker may take to answer for a task; the route's own timeout is that of the job.
  static constexpr milliseconds hand_over_timeout{30'000};
  static constexpr milliseconds least_backoff{100};
  static constexpr milliseconds most_backoff{10'000};

  struct BrokerRoute {
    Route route;
    Circuit circuit;
    std::size_t in_flight = 0;
    Instant look_at{};    // not before
    bool looked = false;  // in this pass
  };
  struct Attempt {
    std::size_t route = 0;
    Job job;
    DispatchId dispatch_id;
  };
  // One judged end, until the store has it.
  struct End {
    JobUpdate update;
    Notice about;
    bool died = false;
  };

  void on(keeper_input::Begin& begin);
  void on(keeper_input::Tick&) {}
  void on(keeper_input::Woken&);
  void on(keeper_input::Stop&);
  void on(keeper_input::Found& found);
  void on(keeper_input::HandedOut& handed_out);
  void on(keeper_input::Recorded& recorded);
  void on(keeper_input::StoreFailed& failed);
  void on(keeper_input::Outcomes& outcomes);
  void on(keeper_input::PublisherFailed& failed);
  void on(keeper_input::GiveUp&);

  void send(std::size_t route, std::vector<Task> tasks);
  void take_outcome(const MessageOutcome& answered);
  void decide(const Job& job, const DispatchId& dispatch, const AttemptEnd& end,
              const std::optional<WorkerId>& worker = std::nullopt);
  void take_back(const Attempt& attempt, std::string_view code);
  void take_answer(End& end, RecordAnswer answer);

  void plan();
  bool ask_record();
  bool ask_find_lost();
  bool ask_hand_out();
  void finish_if_over();
  [[nodiscard]] std::size_t allowance(const BrokerRoute& route) const;
  [[nodiscard]] std::optional<std::size_t> next_route() const;
  [[nodiscard]] Instant next_look(const BrokerRoute& route) const;
  void note_circuit(const BrokerRoute& route, Circuit::Change change);
  void notify(Notice notice) { actions_.emplace_back(keeper_action::Notify{std::move(notice)}); }

  const KeeperOptions options_;
  std::vector<BrokerRoute> routes_;
  std::unordered_map<AttemptId, Attempt> attempts_;  // in flight
  std::uint64_t last_attempt_ = 0;
  std::vector<End> ends_;       // to be recorded
  std::vector<End> recording_;  // what the store was given

  StoreCall call_ = StoreCall::none;
  std::size_t handing_out_ = 0;  // the route of the open hand-out
  std::size_t turn_ = 0;         // the route that is looked at next
  Instant lost_at_{};            // not before
  bool lost_looked_ = false;     // in this pass
  Instant store_at_{};           // not before
  Backoff store_backoff_;

  bool running_ = false;
  bool continuous_ = false;
  bool stopping_ = false;
  Instant now_{};  // of the step that is being taken
  std::vector<KeeperAction> actions_;
};

/// The message that stands for a task on a broker: the four ids and nothing else, as JSON; the name
/// of the job is its type. The event itself is read by the worker.
[[nodiscard]] Message task_message(const Task& task, AttemptId attempt, milliseconds timeout);

}  // namespace postrider::core
