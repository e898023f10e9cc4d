#include "engine/worker_engine.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/backoff.hpp"

namespace postrider::engine {
namespace {

constexpr milliseconds least_start_backoff{100};
constexpr milliseconds most_start_backoff{5000};
// Nothing has to happen before this; it bounds a wait that a fake clock would make endless.
constexpr milliseconds longest_worker_patience{1000};
// The most that `WorkerOptions::concurrency` may be; every attempt has one report.
constexpr std::size_t most_attempts = 1000;

Error unusable_worker(std::string message) {
  return {ErrorCode::config_invalid, Disposition::stop, std::move(message), "worker", ""};
}

std::vector<std::string> queues_of(const WorkerOptions& options) {
  std::vector<std::string> queues;
  for (const auto& share : options.queues)
    queues.push_back(share.queue);
  return queues;
}

}  // namespace

WorkerEngine::Lanes::Lanes(JobRunner& jobs, RunnerReports& reports)
    : takes([&reports] { reports.interrupt(); }),
      beats([&reports] { reports.interrupt(); }),
      runner(jobs, reports) {}

WorkerEngine::WorkerEngine(const JobStoreFactory& stores, const JobRunnerFactory& runner,
                           WorkerOptions options, const Clock& clock, Random& random,
                           Observer& observer, const TaskSourceFactory& source)
    : options_(std::move(options)),
      clock_(clock),
      random_(random),
      observer_(observer),
      host_(this_host()),
      ids_(clock, random),
      store_(stores()),
      record_store_(store_->traits().concurrent_writers ? stores() : nullptr),
      beat_store_(stores()),
      wait_store_(stores()),
      source_(source ? source() : nullptr),
      start_store_(source_ ? stores() : nullptr),
      reports_(most_attempts),
      desk_(stores(), options_.store_timeout, clock, [this] { reports_.interrupt(); }),
      runner_(runner(desk_)) {}

WorkerEngine::~WorkerEngine() {
  close();
}

Result<WorkerReport> WorkerEngine::run() {
  if (auto wrong = fault()) return *std::move(wrong);
  ran_ = true;
  if (auto prepared = prepare(); !prepared) return std::move(prepared).error();
  if (stops_asked_ > 0) return WorkerReport{};
  return work();
}

void WorkerEngine::request_stop() noexcept {
  ++stops_asked_;
  reports_.interrupt();
}

void WorkerEngine::close() {
  if (runner_) runner().close();
}

std::optional<Error> WorkerEngine::fault() const {
  if (ran_) return unusable_worker("a worker runs once. Make a new one.");
  if (!runner_) return runner_.error();
  const auto faults = validate(options_, source_ != nullptr);
  if (faults.empty()) return std::nullopt;
  std::string message = "the options of the worker cannot be used:";
  for (const auto& each : faults)
    message += " " + each;
  return unusable_worker(std::move(message));
}

// ---- before work

// Until the database has answered once, or nobody wants it any more.
Result<void> WorkerEngine::prepare() {
  core::Backoff backoff(least_start_backoff, most_start_backoff, random_);
  while (stops_asked_ == 0) {
    auto greeted = greet_database();
    if (greeted && backoff.failing()) note_store_recovered();
    if (greeted || greeted.error().disposition == Disposition::stop) return greeted;
    const bool is_first = !backoff.failing();
    const auto wait = backoff.next();
    if (is_first) note_store_failed(greeted.error(), wait);
    (void)reports_.pop_all(wait);
  }
  return {};
}

Result<void> WorkerEngine::greet_database() {
  if (auto checked = store_->check_schema(store_deadline()); !checked) return checked;
  return declare_dead_predecessors();
}

// The jobs of a process of this host that is gone are free at once, and need not wait until its
// heartbeats are missed.
Result<void> WorkerEngine::declare_dead_predecessors() {
  if (!host_.is_certain) return {};
  const auto others = store_->workers_on(host_.text, store_deadline());
  if (!others) return others.error();
  for (const auto& other : *others) {
    if (!is_gone(other)) continue;
    auto declared = store_->declare_dead(other.id, clock_.database_override(), store_deadline());
    if (!declared) return declared;
  }
  return {};
}

WorkerInfo WorkerEngine::info_of_start() {
  WorkerInfo info;
  info.id = WorkerId(ids_.next());
  info.name = options_.name;
  info.host = host_.text;
  info.pid = this_process();
  info.version = POSTRIDER_VERSION;
  info.queues = queues_of(options_);
  return info;
}

// ---- work

Result<WorkerReport> WorkerEngine::work() {
  const auto traits = runner().traits();
  const core::WorkerCore::Abilities abilities{traits.slots, traits.can_kill,
                                              record_store_ != nullptr};
  core_.emplace(info_of_start(), options_, abilities, ids_, random_);
  open_lanes();
  take_step({core::worker_input::Begin{source_ != nullptr}});
  while (!done_)
    await_inputs(patience());
  lanes_.reset();
  if (done_->error) return *std::move(done_->error);
  return done_->report;
}

void WorkerEngine::open_lanes() {
  const auto wake = [&reports = reports_] { reports.interrupt(); };
  lanes_.emplace(runner(), reports_);
  if (record_store_) lanes_->records.emplace(wake);
  if (!options_.queues.empty()) {
    lanes_->wait.emplace(*wait_store_, queues_of(options_), options_.poll, wake);
  }
  if (source_) {
    lanes_->tickets.emplace(*source_, *start_store_, options_.store_timeout, clock_, wake);
  }
}

// What arrived together is decided together, so that ends share a transaction.
void WorkerEngine::await_inputs(milliseconds patience) {
  auto reports = reports_.pop_all(patience);
  std::vector<core::WorkerInput> inputs;
  add_answers(inputs);
  for (auto& report : reports)
    inputs.emplace_back(core::worker_input::Ended{report.dispatch_id, std::move(report.end)});
  add_stops(inputs);
  if (inputs.empty()) inputs.emplace_back(core::worker_input::Tick{});
  take_step(std::move(inputs));
}

void WorkerEngine::add_answers(std::vector<core::WorkerInput>& inputs) {
  if (auto answer = lanes_->takes.take_answer()) inputs.push_back(*std::move(answer));
  if (lanes_->records) {
    if (auto answer = lanes_->records->take_answer()) inputs.push_back(*std::move(answer));
  }
  if (auto answer = lanes_->beats.take_answer()) inputs.push_back(*std::move(answer));
  for (auto& extension : desk_.take_extensions())
    inputs.emplace_back(extension);
  if (lanes_->tickets) lanes_->tickets->add_inputs(inputs);
  if (lanes_->wait && lanes_->wait->take_woken()) inputs.emplace_back(core::worker_input::Woken{});
}

void WorkerEngine::add_stops(std::vector<core::WorkerInput>& inputs) {
  constexpr int most_stops = 2;
  const int asked = std::min(stops_asked_.load(), most_stops);
  for (; stops_told_ < asked; ++stops_told_)
    inputs.emplace_back(core::worker_input::Stop{});
}

void WorkerEngine::take_step(std::vector<core::WorkerInput> inputs) {
  for (auto& action : core_->step(std::move(inputs), clock_.steady())) {
    std::visit([this](auto& asked) { execute(asked); }, action);
  }
}

void WorkerEngine::execute(core::worker_action::Take& take) {
  take.request.now = clock_.database_override();
  lanes_->takes.ask([&store = *store_, request = std::move(take.request),
                     deadline = store_deadline(),
                     asked_at = clock_.steady()]() -> core::WorkerInput {
    auto batch = store.take(request, deadline);
    if (!batch) return core::worker_input::TakeFailed{std::move(batch).error()};
    return core::worker_input::Taken{std::move(batch).value(), asked_at};
  });
}

void WorkerEngine::execute(core::worker_action::Record& record) {
  record.request.now = clock_.database_override();
  auto& lane = lanes_->records ? *lanes_->records : lanes_->takes;
  auto& records = record_store_ ? *record_store_ : *store_;
  lane.ask([&store = records, request = std::move(record.request),
            deadline = store_deadline()]() -> core::WorkerInput {
    auto answers = store.record(request, deadline);
    if (!answers) return core::worker_input::RecordFailed{std::move(answers).error()};
    return core::worker_input::Recorded{std::move(answers).value()};
  });
}

void WorkerEngine::execute(core::worker_action::Beat& beat) {
  own_start_.set(beat.request.worker.id);  // before anybody can read it in the table
  beat.request.now = clock_.database_override();
  lanes_->beats.ask([&store = *beat_store_, request = std::move(beat.request),
                     deadline = store_deadline(),
                     asked_at = clock_.steady()]() -> core::WorkerInput {
    auto answer = store.heartbeat(request, deadline);
    if (!answer) return core::worker_input::BeatFailed{std::move(answer).error()};
    return core::worker_input::Beaten{std::move(answer).value(), asked_at};
  });
}

void WorkerEngine::execute(core::worker_action::Start& start) {
  runner().start(std::move(start.task));
}

void WorkerEngine::execute(core::worker_action::RequestStop& stop) {
  runner().request_stop(stop.dispatch_id);
}

void WorkerEngine::execute(core::worker_action::Kill& kill) {
  runner().kill(kill.dispatch_id);
}

void WorkerEngine::execute(core::worker_action::Notify& notify) {
  observer_.notice(notify.notice);
}

void WorkerEngine::execute(core::worker_action::Done& done) {
  done_ = std::move(done);
}

milliseconds WorkerEngine::patience() const {
  const auto wake = core_->wake_at();
  if (!wake) return longest_worker_patience;
  const auto wait = std::chrono::ceil<milliseconds>(*wake - clock_.steady());
  return std::clamp(wait, milliseconds(0), longest_worker_patience);
}

Deadline WorkerEngine::store_deadline() const {
  return Deadline::after(options_.store_timeout);
}

void WorkerEngine::note_store_failed(const Error& error, milliseconds wait) {
  Notice notice;
  notice.kind = NoticeKind::store_failed;
  notice.code = to_string(error.code);
  notice.detail = error.message;
  notice.wait = wait;
  observer_.notice(notice);
}

void WorkerEngine::note_store_recovered() {
  Notice notice;
  notice.kind = NoticeKind::store_recovered;
  observer_.notice(notice);
}

}  // namespace postrider::engine
