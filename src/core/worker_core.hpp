#pragma once
/// \file
/// Every decision of a worker. No thread, clock, I/O or log: one step takes an input and the time
/// and returns actions, as in the relay's core.
///
/// The life of an attempt in here:
///
///   taken ─▶ running ─▶ ended ─▶ its end is *decided* ─▶ recorded with others ─▶ answered
///               │                     ▲
///               └─▶ asked to stop ─▶ killed
///
/// An attempt is asked to stop at its deadline, when a person cancels it, when it is lost, and when
/// the worker stops or is cut off. At its deadline its end is decided at once, whatever it reports
/// later. What dies because we asked it to is no dead worker.
///
/// The life of a worker: running ─▶ quiet ─▶ stopping ─▶ killing ─▶ done. Whenever nothing runs any
/// more it is done as soon as all ends are recorded and it has signed off.
///
/// Where calls of the store may overlap, the next jobs are taken while the ends of the former are
/// recorded, each kind of call with a back-off of its own; elsewhere they take turns.
///
/// A worker may have a source of tasks beside its queues, or instead of them. Its tickets share the
/// slots with takes: while both want some each gets half, the odd one in turns. A ticket is
/// acknowledged once the end of its attempt is recorded; see ticket_desk.hpp.
///
/// Memory is bounded: at most `slots` attempts, and twice as many ends that are not recorded. While
/// ends cannot be recorded, nothing more is taken.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/notice.hpp>
#include <postrider/worker_values.hpp>

#include "core/backoff.hpp"
#include "core/take_plan.hpp"
#include "core/ticket_desk.hpp"
#include "core/worker_steps.hpp"

namespace postrider::core {

class WorkerCore {
 public:
  /// What the runner and the store can do.
  struct Abilities {
    std::size_t slots = 1;       ///< attempts that the runner can run at once, at least 1
    bool can_kill = true;        ///< the runner can end what does not stop
    bool calls_overlap = false;  ///< a take and a record may be open together
  };

  /// Requires: options pass `validate`.
  /// Ownership: `ids` and `random` are borrowed and must outlive the core.
  WorkerCore(WorkerInfo info, WorkerOptions options, Abilities abilities, IdGenerator& ids,
             Random& random);

  /// Takes one input and returns what to do, in order.
  [[nodiscard]] std::vector<WorkerAction> step(WorkerInput input, Instant now);
  /// The same for several that arrived together, so that their ends are recorded together.
  [[nodiscard]] std::vector<WorkerAction> step(std::vector<WorkerInput> inputs, Instant now);

  /// When a `Tick` is worth giving although nothing else happened; none when nothing is planned.
  [[nodiscard]] std::optional<Instant> wake_at() const;

  /// As the next heartbeat will say it; the id changes when the worker was declared dead.
  [[nodiscard]] const WorkerInfo& info() const noexcept { return info_; }
  /// Attempts whose end has not been reported, those whose end is decided included.
  [[nodiscard]] std::size_t running() const noexcept { return attempts_.size(); }
  /// Ends that are not recorded yet.
  [[nodiscard]] std::size_t unrecorded() const noexcept { return ends_.size() + recording_.size(); }
  /// `Done` was asked for: nothing more will be.
  [[nodiscard]] bool done() const noexcept { return phase_ == Phase::done; }
  /// Tickets that wait for a slot.
  [[nodiscard]] std::size_t waiting_tickets() const noexcept { return tickets_.waiting(); }

 private:
  enum class Phase : std::uint8_t {
    idle,  // before `Begin`
    running,
    quiet,
    stopping,
    killing,
    done,
  };

  // One kind of call of the store.
  struct Calls {
    Backoff backoff;
    Instant at{};             // not before
    Instant gathers_until{};  // while something runs that may soon belong to the next one
    bool open = false;
  };
  enum class Source : std::uint8_t {
    none,
    closed,
    opening,
    open,
    cancelled,  // it gives no more tickets
    ended,
  };

  // So long after the last heartbeat that succeeded nothing more is taken.
  static constexpr int silent_periods = 3;
  // So long before others may declare this worker dead it ends what it runs.
  static constexpr int margin_periods = 2;
  // How long killed attempts may take to be gone before they are given up.
  static constexpr milliseconds kill_patience{5000};
  // As many rows as one transaction should hold.
  static constexpr std::size_t most_ends_per_record = 1000;
  // Where calls overlap: so long after a call the next one of its kind waits for company, as the
  // database pays for each. Where they take turns each gathers during the other.
  static constexpr milliseconds gather_time{1};
  static constexpr milliseconds least_backoff{100};
  static constexpr milliseconds most_store_backoff{10'000};
  static constexpr milliseconds most_source_backoff{10'000};
  // One transaction each: the first of them should not wait for too many others.
  static constexpr std::size_t most_starts_per_call = 8;
  // Beyond those that may run, so that a slot which becomes free need not wait for the broker. Each
  // of them is kept from other workers meanwhile, so they are few, and none with few slots.
  static constexpr std::size_t slots_per_spare_ticket = 4;
  static constexpr std::size_t most_spare_tickets = 16;

  // One attempt that the runner has.
  struct Attempt {
    Job job;
    Notice about;  // ids and words of the job
    Instant deadline{};
    std::optional<Instant> kill_at;  // once it was asked to stop, until it is killed
    std::optional<Instant> timer;    // as it stands in `timers_`
    bool stop_asked = false;
    bool killed = false;
    bool decided = false;  // its end is recorded, or about to be
    bool lost = false;     // others have it: only a reported result is worth recording
    bool told = false;     // that a result of it changed nothing
  };
  using Attempts = std::map<DispatchId, Attempt>;

  enum class EndKind : std::uint8_t { reported, snoozed, died, released_by_stop, released };

  // One decided end, until the store has it.
  struct End {
    JobUpdate update;
    EndKind kind = EndKind::reported;
    Notice about;
    bool told = false;  // that it changed nothing
  };

  // --- worker_core.cpp: inputs
  void on(worker_input::Begin&);
  void on(worker_input::Tick&);
  void on(worker_input::Woken&);
  void on(worker_input::Stop&);
  void on(worker_input::Taken& taken);
  void on(worker_input::Recorded& recorded);
  void on(worker_input::TakeFailed& failed);
  void on(worker_input::RecordFailed& failed);
  void on(worker_input::Beaten& beaten);
  void on(worker_input::BeatFailed& failed);
  void on(worker_input::Extended& extended);
  void on(worker_input::Ended& ended);
  void on_record_failed(const Error& error);
  void on_end_refused(const Error& error);
  void on_declared_dead();
  void call_succeeded(Calls& calls);
  void call_failed(Calls& calls, const Error& error);
  void give_up(const Error& error);

  // --- worker_core_attempts.cpp: attempts and their ends
  void take_up(Task task, Instant asked_at, bool start);
  [[nodiscard]] std::optional<AttemptEnd> end_before_start(const Task& task, Instant deadline,
                                                           bool start) const;
  void decide(const Job& job, const Notice& about, const AttemptEnd& end);
  void decide_running(Attempts::iterator attempt, const AttemptEnd& end);
  void on_late_end(const Attempt& attempt);
  [[nodiscard]] static AttemptEnd end_of(const Attempt& attempt, AttemptEnd reported);
  [[nodiscard]] static bool obeyed(const Attempt& attempt, const AttemptEnd& reported);
  [[nodiscard]] static bool died_by_us(const Attempt& attempt, const WorkerDeath& death);
  void ask_to_stop(Attempts::iterator attempt, milliseconds kill_after);
  void ask_all_to_stop(milliseconds kill_after);
  void kill(Attempts::iterator attempt);
  void lose(Attempts::iterator attempt);
  void enforce_times();
  void enforce(Attempts::iterator attempt);
  void set_timer(Attempts::iterator attempt);
  void take_answer(const End& end, RecordAnswer answer);
  void on_accepted(const End& end);
  [[nodiscard]] NoticeKind count_pending(EndKind kind);
  void tell_stale(const Notice& about);
  [[nodiscard]] std::vector<DispatchId> current_attempts() const;
  void tell(NoticeKind kind, std::string detail, std::string_view code = {});
  void notify(Notice notice) { actions_.emplace_back(worker_action::Notify{std::move(notice)}); }

  // --- worker_core_tickets.cpp: what comes by a source of tasks
  void on(worker_input::SourceOpened&);
  void on(worker_input::SourceFailed& failed);
  void on(worker_input::Offered& offered);
  void on(worker_input::TicketsStarted& started);
  void take_up_ticket(const Ticket& ticket, worker_input::TicketsStarted::Answer& answer);
  void refuse_ticket(const Ticket& ticket, NoticeKind kind, std::string detail);
  void tell_refused(const RefusedTasks& refused);
  void on_worker_gone(Ticket ticket);
  void starts_failed(const Error& error);
  void stop_intake();
  void open_source();
  void ask_starts();
  void acknowledge();
  void close_source();
  [[nodiscard]] std::size_t startable() const;
  [[nodiscard]] std::size_t slots_for_takes() const;
  [[nodiscard]] std::size_t prefetch() const;
  [[nodiscard]] bool source_is_wanted() const;
  [[nodiscard]] bool tickets_are_settled() const;
  [[nodiscard]] std::optional<Instant> tickets_wake_at() const;

  // --- worker_core_plan.cpp: what to do next
  void plan();
  void watch_isolation();
  void progress_stop();
  void become_quiet();
  void become_stopping();
  void become_killing();
  void release_undecided();
  void call_store();
  void ask_record();
  void ask_take();
  void ask_beat();
  void sign_off();
  void beat();
  void finish();
  [[nodiscard]] bool is_stopping() const noexcept { return phase_ > Phase::running; }
  [[nodiscard]] bool nothing_runs() const;
  [[nodiscard]] bool all_is_recorded() const;
  [[nodiscard]] bool kill_patience_is_over() const;
  [[nodiscard]] bool may_take() const;
  [[nodiscard]] std::size_t free_slots() const;
  [[nodiscard]] bool records_first() const;
  [[nodiscard]] bool may_call(const Calls& calls) const;
  [[nodiscard]] Instant call_at(const Calls& calls) const;
  [[nodiscard]] bool is_busy(const Calls& calls) const;
  [[nodiscard]] bool store_fails() const noexcept;
  [[nodiscard]] Instant isolated_at() const;
  [[nodiscard]] Instant takes_until() const;
  [[nodiscard]] std::optional<Instant> store_wake_at() const;

  WorkerInfo info_;
  const WorkerOptions options_;
  const std::size_t slots_;
  const bool can_kill_;
  const bool calls_overlap_;
  IdGenerator* ids_;

  Attempts attempts_;                                // with the runner
  std::set<std::pair<Instant, DispatchId>> timers_;  // one of each attempt that has one
  std::deque<End> ends_;                             // to be recorded
  std::vector<End> recording_;                       // what the store was given

  TakePlan take_plan_;
  Calls takes_;
  Calls records_;
  bool take_next_ = false;      // without overlap: taking's turn, when there is a record as well
  std::size_t one_by_one_ = 0;  // so many ends were refused together: which of them is at fault?
  WorkerId taking_as_;          // who the open take is for
  std::size_t taking_ = 0;      // slots that the open take may fill

  TicketDesk tickets_;
  Source source_ = Source::none;
  bool source_has_worked_ = false;
  bool source_fails_ = false;  // told, and not recovered
  Backoff source_backoff_;
  Instant source_at_{};             // not opened before
  Instant source_opened_at_{};      // with `open`
  Calls starts_;                    // on a connection of their own
  bool starts_await_beat_ = false;  // is this worker still known?
  bool starts_first_ = false;       // the turn of tickets, when both want the last slot
  WorkerId starting_as_;            // who the open starts are for

  bool beat_open_ = false;
  Instant beat_at_{};
  std::optional<Instant> last_beat_;  // when the last one that succeeded was asked for
  Backoff beat_backoff_;
  bool isolated_ = false;  // no heartbeat for so long that all were asked to stop
  bool signing_off_ = false;
  bool signed_off_ = false;

  Instant now_{};  // of the step that is being taken
  Phase phase_ = Phase::idle;
  bool stop_early_ = false;     // asked for before `Begin`
  Instant phase_until_{};       // quiet, stopping, killing: when the next one begins
  Instant record_until_{};      // while stopping: a failure to record after this is the last one
  std::optional<Error> error_;  // why it stops by itself
  WorkerReport report_;
  std::vector<WorkerAction> actions_;
};

}  // namespace postrider::core
