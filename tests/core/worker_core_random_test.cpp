// The worker's core against a small model of the job table, under random failures of everything.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/worker_core.hpp"
#include "core/worker_script.hpp"

namespace postrider::core {
namespace {

using std::chrono::seconds;
using Status = DeliveryStatus;

constexpr std::size_t concurrency = 5;
constexpr std::uint64_t most_jobs = 400;
constexpr std::size_t most_tickets = 6;  // five slots and one spare
const std::string broker_queue = "broker";

// What anybody may draw from: one sequence for one seed.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seeded_random(seed)) {}
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_->next() % bound; }
  [[nodiscard]] bool percent(std::uint64_t chance) { return below(100) < chance; }
  [[nodiscard]] milliseconds up_to(milliseconds most) {
    return milliseconds(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.count()))));
  }

 private:
  std::unique_ptr<Random> random_;
};

/// The table of jobs: takes and records by compare-and-set on the dispatch, and a reaper.
class TableModel {
 public:
  explicit TableModel(Chance& chance) : chance_(&chance) {
    for (std::uint64_t number = 1; number <= most_jobs; ++number) {
      Row row;
      row.job = task_numbered(number).job;
      row.job.queue = number % 3 == 0 ? "mail" : "shipping";
      if (number % 4 == 0) row.job.queue = broker_queue;
      row.job.retry_delays.assign(number % 4, seconds(2));
      row.job.on_worker_death = number % 2 == 0 ? OnWorkerDeath::retry : OnWorkerDeath::fail;
      row.job.max_deaths = 2;
      rows_.emplace(row.job.delivery_id, row);
    }
  }

  TaskBatch take(const TakeRequest& request, Instant now) {
    TaskBatch batch;
    if (dead_.contains(request.worker)) return batch;
    for (const auto& queue : request.queues) {
      std::size_t taken = 0;
      for (auto& [id, row] : rows_) {
        const bool due = row.status == Status::pending && row.due_at <= now;
        if (!due || row.job.queue != queue.queue) continue;
        const bool full = batch.tasks.size() == request.limit || taken == queue.at_most;
        batch.more = batch.more || full;
        if (full) break;
        ++taken;
        batch.tasks.push_back(dispatch(row, request.worker, now));
      }
    }
    return batch;
  }

  std::vector<RecordAnswer> record(const RecordRequest& request, Instant now) {
    std::vector<RecordAnswer> answers;
    for (const auto& update : request.updates)
      answers.push_back(record(update, now));
    return answers;
  }

  HeartbeatAnswer beat(const HeartbeatRequest& request, Instant now) {
    HeartbeatAnswer answer;
    answer.known = !dead_.contains(request.worker.id);
    heard_[request.worker.id] = now;
    for (const auto& dispatch : request.running) {
      const auto row = row_of(dispatch);
      if (!row) {
        answer.lost.push_back(dispatch);
      } else if (rows_.at(*row).job.cancel_requested) {
        answer.cancelled.push_back(dispatch);
      }
    }
    return answer;
  }

  /// What the keeper sends to the broker.
  std::vector<Ticket> hand_out(Instant now) {
    std::vector<Ticket> sent;
    for (auto& [id, row] : rows_) {
      if (row.status != Status::pending || row.due_at > now) continue;
      if (row.job.queue != broker_queue) continue;
      (void)dispatch(row, WorkerId(), now);
      sent.push_back({id, row.dispatch, row.job.job, {}, false});
    }
    return sent;
  }

  StartAnswer start(const StartRequest& request, Instant now) {
    using Kind = StartAnswer::Kind;
    auto& row = rows_.at(request.delivery_id);
    if (dead_.contains(request.worker)) return {Kind::worker_gone, std::nullopt};
    if (row.status != Status::dispatched || row.dispatch != request.dispatch_id) {
      return {Kind::stale, std::nullopt};
    }
    if (request.job != row.job.job) return {Kind::wrong_job, std::nullopt};
    const bool is_ours = request.again && row.worker == request.worker;
    if (row.worker != WorkerId() && !is_ours) return {Kind::taken, std::nullopt};
    row.worker = request.worker;
    Task task;
    task.job = row.job;
    task.dispatch_id = row.dispatch;
    task.until_timeout = std::chrono::floor<milliseconds>(row.deadline - now);
    return {Kind::started, std::move(task)};
  }

  /// Is to be run, and nobody has begun.
  [[nodiscard]] bool awaits_start(const Ticket& ticket) const {
    const auto& row = rows_.at(ticket.delivery_id);
    return row.status == Status::dispatched && row.dispatch == ticket.dispatch_id &&
           row.job.job == ticket.job && row.worker == WorkerId();
  }

  /// What other processes and people do meanwhile.
  void live(Instant now, milliseconds dead_after) {
    for (const auto& [worker, heard_at] : heard_)
      if (heard_at + dead_after < now) dead_.insert(worker);
    for (auto& [id, row] : rows_) {
      if (row.status != Status::dispatched) continue;
      const bool lost = dead_.contains(row.worker) || row.deadline + seconds(3) < now;
      if (lost && chance_->percent(20)) give_to_another(row, now);
      if (chance_->percent(1)) row.cancel_requested_by_person = true;
      if (row.cancel_requested_by_person) row.job.cancel_requested = true;
    }
  }
  void declare_dead(WorkerId worker) { dead_.insert(worker); }

  [[nodiscard]] bool all_final() const {
    return std::all_of(rows_.begin(), rows_.end(), [](const auto& row) {
      return row.second.status != Status::pending && row.second.status != Status::dispatched;
    });
  }
  /// Dispatches that only their deadline would end: their worker is not dead.
  [[nodiscard]] std::set<DispatchId> left_behind() const {
    std::set<DispatchId> open;
    for (const auto& [id, row] : rows_) {
      if (row.status == Status::dispatched && !dead_.contains(row.worker))
        open.insert(row.dispatch);
    }
    return open;
  }
  [[nodiscard]] std::size_t count(Status status) const {
    return static_cast<std::size_t>(std::count_if(
        rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.status == status; }));
  }

  std::map<DispatchId, int> accepted_;  // results of each dispatch that changed a row

 private:
  struct Row {
    Job job;
    Status status = Status::pending;
    Instant due_at{};
    Instant deadline{};
    DispatchId dispatch;
    std::string result;
    WorkerId worker;
    bool cancel_requested_by_person = false;
  };

  Task dispatch(Row& row, WorkerId worker, Instant now) {
    EXPECT_LE(row.job.attempts, static_cast<int>(row.job.retry_delays.size()))
        << "an attempt was handed out that is used up";
    row.status = Status::dispatched;
    row.dispatch = dispatch_numbered(++last_dispatch_);
    row.worker = worker;
    row.result.clear();
    row.job.cancel_requested = false;
    const auto timeout = seconds(1) + chance_->up_to(seconds(30));
    row.deadline = now + timeout;
    Task task;
    task.job = row.job;
    task.dispatch_id = row.dispatch;
    task.until_timeout = timeout;
    return task;
  }

  RecordAnswer record(const JobUpdate& update, Instant now) {
    auto& row = rows_.at(update.delivery_id);
    if (row.dispatch != update.dispatch_id) return RecordAnswer::stale;
    if (row.status != Status::dispatched) {
      return row.result == update.result ? RecordAnswer::repeated : RecordAnswer::conflict;
    }
    ++accepted_[update.dispatch_id];
    row.status = update.status;
    row.result = update.result;
    row.job.attempts = update.attempts;
    row.job.deaths = update.deaths;
    row.job.snoozes = update.snoozes;
    row.job.interruptions = update.interruptions;
    row.due_at = now + update.available_in;
    return RecordAnswer::recorded;
  }

  // A relay has ended the attempt, and the job is due again under no dispatch that is known here.
  void give_to_another(Row& row, Instant now) {
    ++accepted_[row.dispatch];
    row.status = Status::pending;
    row.dispatch = dispatch_numbered(++last_dispatch_);
    row.due_at = now + seconds(1);
  }

  [[nodiscard]] std::optional<DeliveryId> row_of(const DispatchId& dispatch) const {
    for (const auto& [id, row] : rows_)
      if (row.dispatch == dispatch && row.status == Status::dispatched) return id;
    return std::nullopt;
  }

  Chance* chance_;
  std::map<DeliveryId, Row> rows_;
  std::map<WorkerId, Instant> heard_;
  std::set<WorkerId> dead_;
  std::uint64_t last_dispatch_ = 0;
};

/// A queue of a broker: what is unacknowledged when the connection ends is given out again.
class BrokerModel {
 public:
  explicit BrokerModel(Chance& chance) : chance_(&chance) {}

  void send(const std::vector<Ticket>& tickets) {
    queue_.insert(queue_.end(), tickets.begin(), tickets.end());
  }
  void open(std::size_t prefetch) {
    ASSERT_FALSE(is_open_);
    is_open_ = true;
    cancelled_ = false;
    prefetch_ = prefetch;
    ++connection_;
  }
  void cancel() { cancelled_ = true; }
  void end_connection() {
    is_open_ = false;
    for (auto& [number, ticket] : unacknowledged_)
      queue_.push_front(ticket);
    unacknowledged_.clear();
  }
  /// Some of what waits, now and then twice.
  TicketBatch give() {
    TicketBatch batch;
    while (!queue_.empty() && !cancelled_ && unacknowledged_.size() < prefetch_) {
      auto ticket = queue_.front();
      if (!chance_->percent(5)) queue_.pop_front();
      ticket.tag = {connection_, ++last_number_};
      if (chance_->percent(2)) queue_.push_back(of_another_job(ticket));
      unacknowledged_.emplace(last_number_, ticket);
      batch.tickets.push_back(ticket);
    }
    return batch;
  }
  static Ticket of_another_job(Ticket ticket) {
    ticket.job = "another";
    return ticket;
  }
  /// The ticket that is off the queue now.
  Ticket acknowledge(const TicketTag& tag) {
    EXPECT_EQ(tag.connection, connection_) << "the tag of another connection";
    const auto found = unacknowledged_.find(tag.number);
    EXPECT_NE(found, unacknowledged_.end()) << "acknowledged twice";
    if (found == unacknowledged_.end()) return {};
    auto ticket = found->second;
    unacknowledged_.erase(found);
    return ticket;
  }
  /// Whether another message for this dispatch is there.
  [[nodiscard]] bool has(const DispatchId& dispatch) const {
    const auto is_it = [&](const Ticket& ticket) {
      return ticket.dispatch_id == dispatch && ticket.job != "another";
    };
    return std::any_of(queue_.begin(), queue_.end(), is_it) ||
           std::any_of(unacknowledged_.begin(), unacknowledged_.end(),
                       [&](const auto& each) { return is_it(each.second); });
  }
  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] std::size_t unacknowledged() const { return unacknowledged_.size(); }

 private:
  Chance* chance_;
  std::deque<Ticket> queue_;
  std::map<std::uint64_t, Ticket> unacknowledged_;
  std::uint64_t connection_ = 0;
  std::uint64_t last_number_ = 0;
  std::size_t prefetch_ = 0;
  bool is_open_ = false;
  bool cancelled_ = false;
};

/// Engine, runner, source and store of one worker, all of them unreliable.
class World {
 public:
  explicit World(std::uint64_t seed)
      : chance_(seed),
        random_(seeded_random(seed + 1)),
        table_(chance_),
        broker_(chance_),
        can_kill_(seed % 3 != 0),
        calls_overlap_(seed % 4 < 2),
        core_({WorkerId(numbered_uuid(0xF0, 1)), "worker", "", 0, "", {}, WorkerState::running},
              options(), {100, can_kill_, calls_overlap_}, ids_, *random_) {
    give(worker_input::Begin{true});
  }

  static WorkerOptions options() {
    WorkerOptions options;
    options.queues = {{"shipping", 3}, {"mail", 1}};
    options.concurrency = concurrency;
    options.heartbeat = milliseconds(1000);
    options.dead_after = milliseconds(6000);
    options.kill_grace = milliseconds(2000);
    options.grace = milliseconds(5000);
    options.hard_grace = milliseconds(2000);
    return options;
  }

  void step() {
    faults_ = faults_ ? !chance_.percent(5) : chance_.percent(1);
    switch (chance_.below(8)) {
      case 0:
        return answer_store();
      case 1:
        return answer_beat();
      case 2:
      case 3:
        return end_something();
      case 4:
        return advance();
      case 5:
        return answer_source();
      case 6:
        return answer_starts();
      default:
        return disturb();
    }
  }

  /// Everything works again until nothing is left to do, or is told to be left.
  void finish() {
    give(worker_input::Stop{});
    for (int i = 0; i < 20'000 && !done_; ++i)
      step();
  }
  /// All runs well: what can be finished is.
  void calm() {
    stormy_ = false;
    faults_ = false;
    for (int i = 0; i < 60'000 && !table_.all_final(); ++i)
      step();
  }

  void check() {
    for (const auto& [dispatch, results] : table_.accepted_)
      ASSERT_LE(results, 1) << "a dispatch with two results";
    ASSERT_LE(core_.running(), concurrency);
    ASSERT_LE(core_.unrecorded(), 2 * concurrency);
    ASSERT_LE(core_.waiting_tickets(), most_tickets);
    ASSERT_EQ(core_.running(), running_.size());
    const auto wake = core_.wake_at();
    ASSERT_TRUE(!wake || *wake > clock_.steady()) << "a timer that is due and changes nothing";
  }

  Chance chance_;
  testing::ManualClock clock_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{clock_, *random_};
  TableModel table_;
  BrokerModel broker_;
  bool can_kill_;
  bool calls_overlap_;
  WorkerCore core_;
  std::optional<worker_action::Done> done_;
  std::map<DispatchId, bool> running_;  // with whether it is killed
  std::set<DispatchId> started_;
  bool stormy_ = true;

 private:
  void give(WorkerInput input) {
    for (auto& action : core_.step(std::move(input), clock_.steady()))
      std::visit([&](auto& asked) { on(asked); }, action);
  }

  void on(worker_action::Take& take) {
    ASSERT_FALSE(take_ || (record_ && !calls_overlap_)) << "two calls at once";
    take_ = take.request;
    asked_at_ = clock_.steady();
  }
  void on(worker_action::Record& record) {
    ASSERT_FALSE(record_ || (take_ && !calls_overlap_)) << "two calls at once";
    ASSERT_FALSE(record.request.updates.empty());
    record_ = record.request;
  }
  void on(worker_action::Beat& beat) {
    ASSERT_FALSE(beat_) << "two heartbeats at once";
    beat_ = beat.request;
    beat_asked_at_ = clock_.steady();
  }
  void on(worker_action::Start& start) {
    ASSERT_TRUE(started_.insert(start.task.dispatch_id).second) << "a dispatch was run twice";
    running_.emplace(start.task.dispatch_id, false);
    ASSERT_LE(running_.size(), concurrency);
  }
  void on(worker_action::RequestStop&) {}
  void on(worker_action::Kill& kill) {
    ASSERT_TRUE(can_kill_);
    const auto found = running_.find(kill.dispatch_id);
    ASSERT_NE(found, running_.end());
    found->second = true;
  }
  void on(worker_action::Notify&) {}
  void on(worker_action::OpenSource& open) {
    ASSERT_FALSE(opening_);
    ASSERT_LE(open.prefetch, most_tickets);
    opening_ = open.prefetch;
  }
  void on(worker_action::StartTickets& start) {
    ASSERT_FALSE(starts_) << "two calls at once";
    ASSERT_FALSE(start.requests.empty());
    starts_ = start.requests;
    starts_asked_at_ = clock_.steady();
  }
  void on(worker_action::Acknowledge& acknowledge) {
    ASSERT_TRUE(broker_.is_open());
    for (const auto& tag : acknowledge.tags) {
      const auto ticket = broker_.acknowledge(tag);
      ASSERT_TRUE(!table_.awaits_start(ticket) || broker_.has(ticket.dispatch_id))
          << "only its deadline would end it";
    }
  }
  void on(worker_action::CancelSource&) { broker_.cancel(); }
  void on(worker_action::CloseSource&) { broker_.end_connection(); }
  void on(worker_action::Done& done) {
    ASSERT_FALSE(done_);
    done_ = std::move(done);
  }

  [[nodiscard]] static Error failure(Disposition disposition) {
    return {ErrorCode::unavailable, disposition, "planted", "test", ""};
  }
  [[nodiscard]] bool fails() { return stormy_ && (faults_ || chance_.percent(5)); }

  void answer_store() {
    if (take_ && (!record_ || chance_.percent(50))) return answer_take();
    if (record_) answer_record();
  }
  void answer_take() {
    const auto request = *std::exchange(take_, std::nullopt);
    if (fails()) {
      const bool applied = chance_.percent(50);
      if (applied) (void)table_.take(request, clock_.steady());
      return give(
          worker_input::TakeFailed{failure(applied ? Disposition::in_doubt : Disposition::retry)});
    }
    give(worker_input::Taken{table_.take(request, clock_.steady()), asked_at_});
  }
  void answer_record() {
    const auto request = *std::exchange(record_, std::nullopt);
    if (!fails()) {
      return give(worker_input::Recorded{table_.record(request, clock_.steady())});
    }
    if (chance_.percent(50)) {  // applied, and the answer is lost
      (void)table_.record(request, clock_.steady());
      return give(worker_input::RecordFailed{failure(Disposition::in_doubt)});
    }
    give(worker_input::RecordFailed{failure(Disposition::retry)});
  }
  void answer_source() {
    broker_.send(table_.hand_out(clock_.steady()));
    if (opening_) {
      const auto prefetch = *std::exchange(opening_, std::nullopt);
      if (fails()) return give(worker_input::SourceFailed{failure(Disposition::retry)});
      broker_.open(prefetch);
      return give(worker_input::SourceOpened{});
    }
    if (!broker_.is_open()) return;
    if (stormy_ && chance_.percent(3)) {
      broker_.end_connection();
      return give(worker_input::SourceFailed{failure(Disposition::retry)});
    }
    auto batch = broker_.give();
    if (!batch.tickets.empty()) give(worker_input::Offered{std::move(batch)});
  }
  void answer_starts() {
    if (!starts_) return;
    const auto requests = *std::exchange(starts_, std::nullopt);
    worker_input::TicketsStarted started;
    for (const auto& request : requests) {
      const bool fail = fails();
      if (fail && chance_.percent(50)) started.failure = failure(Disposition::retry);
      if (started.failure) break;
      auto answer = table_.start(request, starts_asked_at_);
      if (fail) started.failure = failure(Disposition::in_doubt);  // applied, the answer is lost
      if (started.failure) break;
      started.answers.push_back({std::move(answer), starts_asked_at_});
    }
    give(std::move(started));
  }
  void answer_beat() {
    if (!beat_) return;
    const auto request = *std::exchange(beat_, std::nullopt);
    if (fails()) return give(worker_input::BeatFailed{failure(Disposition::retry)});
    give(worker_input::Beaten{table_.beat(request, clock_.steady()), beat_asked_at_});
  }

  void end_something() {
    if (running_.empty()) return;
    auto attempt = running_.begin();
    std::advance(attempt, static_cast<std::ptrdiff_t>(chance_.below(running_.size())));
    const bool kill = attempt->second;
    if (!kill && stormy_ && !chance_.percent(10)) return;  // it goes on
    const auto dispatch = attempt->first;
    running_.erase(attempt);
    give(worker_input::Ended{dispatch, kill ? AttemptEnd(killed) : any_end()});
  }
  [[nodiscard]] AttemptEnd any_end() {
    switch (chance_.below(8)) {
      case 0:
        return JobOutcome::retry("again");
      case 1:
        return JobOutcome::fail("never");
      case 2:
        return JobOutcome::snooze(seconds(1));
      case 3:
        return WorkerDeath{11, std::nullopt, false};
      case 4:
        return JobOutcome::cancelled();
      default:
        return JobOutcome::done();
    }
  }

  void advance() {
    const auto wake = core_.wake_at();
    const auto most = stormy_ && chance_.percent(2) ? milliseconds(20'000) : milliseconds(200);
    auto step = chance_.up_to(most);
    if (wake && chance_.percent(50)) {
      step = std::min(step, std::chrono::ceil<milliseconds>(*wake - clock_.steady()));
    }
    clock_.advance(step);
    table_.live(clock_.steady(), options().dead_after);
    give(worker_input::Tick{});
  }

  void disturb() {
    if (!stormy_) return;
    if (chance_.percent(20)) give(worker_input::Woken{});
    if (chance_.percent(1)) table_.declare_dead(core_.info().id);
    if (!running_.empty() && chance_.percent(5)) {
      give(worker_input::Extended{running_.begin()->first, seconds(5), clock_.steady()});
    }
  }

  std::optional<TakeRequest> take_;
  std::optional<RecordRequest> record_;
  std::optional<HeartbeatRequest> beat_;
  std::optional<std::vector<StartRequest>> starts_;
  std::optional<std::size_t> opening_;
  Instant starts_asked_at_{};
  Instant asked_at_{};
  Instant beat_asked_at_{};
  bool faults_ = false;
};

// Without a stop every job ends; with one nothing is left behind but what the net finds.
TEST(WorkerCoreRandom, No_job_is_lost_and_no_dispatch_has_two_results) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int i = 0; i < 10'000; ++i) {
      world.step();
      world.check();
      if (HasFatalFailure()) return;
    }
    world.calm();
    ASSERT_TRUE(world.table_.all_final())
        << world.table_.count(Status::pending) << " pending, "
        << world.table_.count(Status::dispatched) << " dispatched";
    world.finish();
    ASSERT_TRUE(world.done_);
    EXPECT_EQ(world.done_->report.unrecorded, 0U);
    EXPECT_EQ(world.core_.running(), world.can_kill_ ? 0U : world.running_.size());
  }
}

void add(WorkerReport& sum, const WorkerReport& report) {
  sum.completed += report.completed;
  sum.retried += report.retried;
  sum.failed += report.failed;
  sum.deaths += report.deaths;
  sum.snoozed += report.snoozed;
  sum.cancelled += report.cancelled;
  sum.stale += report.stale;
  sum.released += report.released;
  sum.unrecorded += report.unrecorded;
}

TEST(WorkerCoreRandom, A_stop_at_any_moment_leaves_nothing_running_and_nothing_dispatched) {
  WorkerReport sum;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (std::uint64_t i = 0; i < 30 + seed * 5; ++i) {
      world.step();
      world.check();
      if (HasFatalFailure()) return;
    }
    const bool calm = seed % 2 == 0;
    if (calm) world.stormy_ = false;
    world.finish();
    ASSERT_TRUE(world.done_);
    if (world.can_kill_) {
      EXPECT_TRUE(world.running_.empty()) << "something runs after the end";
    }
    std::size_t given_up = 0;
    for (const auto& dispatch : world.table_.left_behind())
      if (world.started_.contains(dispatch)) ++given_up;
    EXPECT_LE(given_up, world.done_->report.unrecorded) << "given up without being counted";
    if (calm) {
      EXPECT_EQ(world.done_->report.unrecorded, 0U);
    }
    add(sum, world.done_->report);
  }
  // Ends that a stop cannot record are too rare here; worker_core_test has them.
  const std::size_t counts[] = {sum.completed, sum.retried,   sum.failed, sum.deaths,
                                sum.snoozed,   sum.cancelled, sum.stale,  sum.released};
  EXPECT_THAT(counts, ::testing::Each(::testing::Gt(0U))) << "this run shows less than it should";
}

}  // namespace
}  // namespace postrider::core
