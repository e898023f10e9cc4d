#pragma once
/// \file
/// Every decision of a relay. No thread, clock, I/O or log: one step takes an input and the time
/// and returns actions, so that the daemon and the simulator run the same object code.
///
/// The life of an event in here:
///
///   claimed ─▶ an *entry*, with an *item* for each matching route
///     item: waiting (behind a head) ─▶ ready ─▶ in flight ─▶ its outcome ─▶ decided
///                                        ▲          │ unknown, and nobody can say yet whether the
///                                        │          ▼ message or the destination was at fault
///                                        └─────  doubtful
///   all items decided ─▶ the entry goes into the *draft* of the next settle ─▶ settled
///
/// A stored delivery that is due is an item without an entry: its row is updated instead. On a job
/// route there is no item: the row is part of the entry from the start, and a worker takes it up.
///
/// Memory is bounded: at most `batch` events and `batch` due deliveries are read ahead of the last
/// settle in a pass, twice that in continuous mode.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/relay_values.hpp>
#include <postrider/route.hpp>

#include "core/circuit.hpp"
#include "core/crash_watch.hpp"
#include "core/job_route.hpp"
#include "core/purge_plan.hpp"
#include "core/reading.hpp"
#include "core/relay_steps.hpp"
#include "core/route_queue.hpp"
#include "core/settle_draft.hpp"
#include "core/verdict.hpp"

namespace postrider::core {

class RelayCore {
 public:
  /// Requires: options and routes pass `validate`, route names are unique.
  /// Ownership: `ids` and `random` are borrowed and must outlive the core.
  RelayCore(std::string owner, RelayOptions options, std::vector<Route> routes, IdGenerator& ids,
            Random& random);

  /// Takes one input and returns what to do, in order.
  [[nodiscard]] std::vector<Action> step(Input input, Instant now);

  /// When a `Tick` is worth giving although nothing else happened; none when nothing is planned.
  [[nodiscard]] std::optional<Instant> wake_at() const;

  /// The leases held, for giving them back at the end.
  [[nodiscard]] std::vector<Lease> leases() const;

  /// True from a settle that failed for good until one succeeds: not all is well with the store,
  /// whatever else it answers.
  [[nodiscard]] bool settle_in_question() const noexcept { return settle_in_question_; }

  /// Messages of this pass that were given to publishers and have no outcome yet.
  [[nodiscard]] std::size_t in_flight() const noexcept { return attempts_.size(); }

 private:
  using EntryId = std::uint64_t;
  using OpenHeads = std::set<OpenHead>;

  static constexpr std::size_t all_partitions = 1U << 20U;
  /// A settle whose answer was lost or refused is given again so often, then the pass fails.
  static constexpr unsigned most_settle_failures = 3;
  /// How long a result waits for company before it is settled: so long that a broker which confirms
  /// some ten thousand a second fills a batch, as a settle costs more than the rows in it.
  static constexpr milliseconds settle_delay{25};
  /// How often the position is stored while events flow.
  static constexpr milliseconds mark_interval{1000};

  // One event that was claimed and is not settled.
  struct Entry {
    std::shared_ptr<const Event> event;
    Partition partition;
    Reading::BatchNumber batch = 0;
    std::optional<DeliveryId> held_row;  // it was held; then it is in no batch
    bool stays_unrouted = false;         // it becomes held
    std::vector<ItemId> undecided;
    std::vector<NewDelivery> rows;  // to be stored when all is decided
    bool has_jobs = false;          // among the rows: workers wait for them
    std::vector<ItemId>
        lane_heads;  // items of `rows` that block their lanes once these are drafted
  };

  // Why an item is not sent when its turn comes: a row of it is stored instead.
  struct RowInstead {
    std::optional<Outcome> outcome;  // it cannot be sent, or its result did not come in time
    milliseconds delay{0};           // it is not to be sent before this time has passed
    bool kills_relays = false;       // it is not to be sent any more
  };

  // One delivery in memory.
  struct Item {
    std::shared_ptr<const Event> event;
    Partition partition;
    std::size_t route = 0;
    std::optional<std::string> key;
    std::optional<EntryId> entry;  // of a delivery that has no row yet
    std::optional<Delivery> row;   // of one that has
    std::optional<RowInstead> row_instead;
    bool queued = false;  // it stands in its route's queue
    int attempts = 0;
    bool ambiguous = false;
    std::optional<AttemptId> attempt;  // set while in flight
    std::optional<DispatchId> dispatch_id;
  };

  struct Doubtful {
    ItemId item = 0;
    AttemptId attempt;
    Outcome outcome;
  };

  struct RouteState {
    Route route;
    std::optional<JobRoute> job;  // then nothing of it is ever queued or sent
    Circuit circuit;
    RouteQueue queue;
    std::size_t in_flight = 0;
    std::vector<Doubtful> doubtful;  // unknown, and it is open who was at fault
    std::vector<ItemId> returned;    // heads to be put back into the queue
    AttemptId last_answered;         // the newest attempt that the destination itself answered
    bool lost_connection = false;
    std::optional<Instant> probed_for_rows;  // the probe time for which stored rows were looked up
  };

  struct Holding {
    FencingToken token;
    std::int64_t generation = 0;
  };

  // Another relay under our name, which may be a dead one until its lease is renewed.
  struct Namesake {
    std::string owner;
    Instant first_end{};  // of its lease, when it was seen first
    bool told = false;
  };

  // What the pass still wants from the store.
  struct Wants {
    bool lease = false;
    bool held = false;
    bool due = false;
    bool claim = false;
  };

  enum class StoreCall : std::uint8_t { none, lease, held, due, claim, settle };

  // --- relay_core.cpp: inputs
  void on(input::Begin& begin);
  void on(input::Tick&);
  void on(input::Stop&);
  void on(input::Leased& leased);
  void on(input::Claimed& claimed);
  void on(input::TookDue& took);
  void on(input::TookHeld& took);
  void on(input::Settled& settled);
  void on(input::StoreFailed& failed);
  void on(input::Outcomes& arrived);
  void on(input::Purged& purged);
  void on(input::PurgeFailed& failed);
  void on(input::Abandon&);
  void on(input::PublisherFailed& failed);
  void take_arrived();
  void take_leases(const LeaseGrant& grant);
  void gain_partition(const GrantedLease& granted);
  void tell_of_partitions(NoticeKind kind, const std::vector<Partition>& partitions,
                          int crashes = 0);
  void look_for_namesake(const input::Leased& leased);
  [[nodiscard]] bool is_namesake(const std::string& owner) const;
  void on_committed(const SettleDraft& draft, const SettleResult& result);
  [[nodiscard]] bool is_being_stopped(const std::string& route) const;
  void note_next_due(milliseconds wait);
  void notify(Notice notice) { actions_.emplace_back(action::Notify{std::move(notice)}); }

  // --- relay_core_intake.cpp: events and stored deliveries come into memory, and leave it
  // unsettled
  void take_event(ClaimedEvent& claimed, Reading::BatchNumber batch,
                  std::optional<DeliveryId> held_row, const OpenHeads& open_heads);
  [[nodiscard]] ItemId add_item(EntryId id, std::size_t route);
  void tell_of_dropped_hooks(const Entry& entry, const NewDelivery& row);
  void add_job(EntryId id, const RouteState& state, const ClaimedEvent& claimed);
  void take_unrouted(EntryId id);
  void enter_queue(ItemId id, const ClaimedEvent& claimed, const OpenHeads& open_heads);
  void take_delivery(DueDelivery& due);
  [[nodiscard]] bool any_route_matches(std::string_view type) const;
  [[nodiscard]] std::optional<std::size_t> route_by_name(const std::string& name) const;
  void drop_partition(Partition partition);
  void drop_from(SettleDraft& draft, Partition partition);
  std::optional<ItemId> drop_item(ItemId id);
  void forget_rows_not_in_flight(Partition partition);
  void forget_unsettled();
  [[nodiscard]] std::vector<ItemId> items_of(Partition partition) const;
  [[nodiscard]] bool is_in_doubt(ItemId id) const;

  // --- relay_core_outcomes.cpp: from an outcome to what is written
  void on_outcome(MessageOutcome& arrived);
  void on_orphan(const MessageOutcome& arrived);
  void on_answer(ItemId id, AttemptId attempt, const Outcome& outcome);
  void tell_circuit(RouteState& state, const Outcome& outcome);
  void resolve_doubts(RouteState& state);
  void give_back_returned(RouteState& state);
  void decide(ItemId id, const Outcome& outcome, bool outage);
  void complete_item(ItemId id);
  void retry_item(ItemId id, const Verdict& verdict);
  void keep_item(ItemId id);
  void stop_route(const Item& item, const std::string& code, const std::string& detail);
  void fail_item(ItemId id, const Verdict& verdict);
  void become_behind(ItemId id);
  void leave_row(ItemId id);
  void write_row(ItemId id, NewDelivery row, bool blocks);
  void update_row(ItemId id, DeliveryUpdate update, bool blocks);
  void advance_blocked_lane(std::size_t route, const std::string& key, ItemId head);
  void finish_in_lane(ItemId id);
  void move_up_in_blocked_lane(std::size_t route, std::optional<ItemId> head);
  [[nodiscard]] bool is_undecided(const Item& item, ItemId id) const;
  void leave_entry(EntryId id, ItemId item);
  void complete_entries();
  void complete_entry(Entry entry);
  void erase_item(ItemId id);
  void record_sent(const Item& item);
  void record_error(const Item& item, const Outcome& outcome);
  void record_error(PassError error);
  void note_circuit(RouteState& state, Circuit::Change change);
  [[nodiscard]] Notice notice_about(NoticeKind kind, const Item& item) const;
  [[nodiscard]] static Notice notice_about(NoticeKind kind, const Entry& entry);
  [[nodiscard]] NewDelivery new_row(const Item& item, DeliveryStatus status) const;
  [[nodiscard]] DeliveryUpdate new_update(const Item& item, DeliveryStatus status) const;
  [[nodiscard]] const std::vector<milliseconds>& retry_delays(const Item& item) const;
  [[nodiscard]] OnFailed on_failed(const Item& item) const;

  // --- relay_core_crashes.cpp: after owners that died
  void take_suspicion(const GrantedLease& granted, bool gained);
  void tell_of_suspicion();
  void submit_alone();
  void store_all_instead();
  [[nodiscard]] std::optional<ItemId> next_alone();
  [[nodiscard]] std::optional<ItemId> ready_suspect() const;
  [[nodiscard]] bool may_go_alone(ItemId id) const;
  [[nodiscard]] bool may_probe_alone(const RouteState& state) const;
  [[nodiscard]] bool anything_in_flight() const;
  [[nodiscard]] bool is_reading() const;
  [[nodiscard]] bool is_looking() const;
  void follow_round();
  void quarantine(ItemId id);
  [[nodiscard]] static bool kills_relays(const Item& item);

  // --- relay_core_plan.cpp: what to do next
  void plan();
  void store_the_late();
  [[nodiscard]] bool may_be_stored_late(const Entry& entry, bool in_doubt_too) const;
  void store_late(EntryId id);
  bool store_late_alone(EntryId id, bool in_doubt_too);
  bool store_late_with_heads(EntryId id);
  void store_head(ItemId id);
  void store_in_flight(ItemId id);
  void submit_ready();
  void submit_on(std::size_t route);
  void turn_to_another_probe(RouteState& state);
  void send(std::size_t route, std::vector<Message> messages);
  void store_instead(ItemId id);
  [[nodiscard]] Message new_message(ItemId id);
  void park_paused_routes();
  void park(ItemId id);
  void call_store();
  bool ask_lease();
  bool ask_settle();
  bool ask_held();
  bool ask_due();
  bool ask_claim();
  bool ask_claim_in_turn();
  bool ask_mark();
  void give_settle();
  void ask_purge();
  void finish_if_done();
  void end_pass();
  [[nodiscard]] bool settle_is_due() const;
  [[nodiscard]] bool may_submit() const;
  /// Of a job route: makes jobs.
  [[nodiscard]] bool may_send(const RouteState& state) const;
  [[nodiscard]] bool any_route_may_send() const;
  [[nodiscard]] bool another_route_is_healthy(const RouteState& state) const;
  [[nodiscard]] bool nothing_moves() const;
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] std::size_t read_limit() const { return settle_in_question_ ? 1 : options_.batch; }
  [[nodiscard]] bool held_is_wanted() const;
  [[nodiscard]] bool due_is_wanted() const;
  [[nodiscard]] bool claim_is_wanted() const;
  [[nodiscard]] bool may_purge() const;
  [[nodiscard]] std::vector<Partition> partitions() const;

  const std::string owner_;
  const RelayOptions options_;
  IdGenerator* ids_;

  std::vector<RouteState> routes_;
  std::unordered_map<ItemId, Item> items_;  // never iterated in its own order
  std::map<EntryId, Entry> entries_;
  std::unordered_map<AttemptId, ItemId> attempts_;      // in flight
  std::unordered_map<AttemptId, std::size_t> orphans_;  // in flight, their items forgotten: routes
  std::unordered_map<DeliveryId, ItemId> rows_in_memory_;
  std::deque<EntryId> complete_;                            // everything of them is decided
  std::deque<std::pair<Instant, EntryId>> partly_decided_;  // when to lose patience with the rest
  std::uint64_t last_item_ = 0;
  std::uint64_t last_entry_ = 0;
  std::uint64_t last_attempt_ = 0;

  std::map<Partition, Holding> holdings_;
  bool foreign_partitions_ = false;
  Namesake namesake_;
  Instant lease_until_{};
  Instant renew_at_{};

  CrashWatch crash_watch_;
  bool told_of_suspicion_ = false;
  std::optional<ItemId> alone_;        // the next to be sent while crashes are suspected
  std::optional<ItemId> round_until_;  // the last item of the round, once all of it is in memory
  std::size_t round_open_ = 0;         // items of it that are not decided

  Reading reading_;
  SettleDraft draft_;                    // what the next settle will hold
  std::optional<SettleDraft> settling_;  // what the store was given
  std::optional<Instant> drafted_at_;    // when the draft began
  unsigned settle_failures_ = 0;
  // The last settle failed for good, so what it held will be sent again; until one succeeds, one
  // event at a time is, and not a batch for each try.
  bool settle_in_question_ = false;
  std::optional<Instant> mark_stored_at_;

  PurgePlan purge_;
  // Whether the last look at each was cut by a limit; what has not been looked at yet may be long.
  bool more_events_ = true;
  bool more_due_ = true;

  Instant now_{};  // of the step that is being taken
  bool active_ = false;
  bool continuous_ = false;
  bool stopping_ = false;
  Wants wants_;
  StoreCall call_ = StoreCall::none;
  std::optional<ClaimedBatch> arrived_;  // claimed, and to be taken up by the next step
  bool claim_before_settle_ = false;     // reading's turn, in continuous mode
  Seq held_after_;
  Instant claim_at_{};  // continuous mode: when to look again
  Instant due_at_{};
  std::optional<Error> error_;
  PassReport report_;
  std::vector<Action> actions_;
};

}  // namespace postrider::core
