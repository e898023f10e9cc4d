#include "engine/relay_engine.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "engine/patience.hpp"

namespace postrider::engine {
namespace {

constexpr milliseconds release_patience{1000};
constexpr milliseconds least_backoff{100};
constexpr milliseconds most_backoff{5000};

std::vector<Route> routes_of(const std::vector<RouteBinding>& bindings) {
  std::vector<Route> routes;
  routes.reserve(bindings.size());
  for (const auto& binding : bindings) {
    auto route = binding.route;
    if (!route.job) {
      const auto traits = binding.publisher->traits();
      route.window = std::min(route.window, traits.window);
      route.one_address = traits.one_address;
    }
    routes.push_back(std::move(route));
  }
  return routes;
}

// Every message in flight has one outcome, and a report holds at least one; a lane may add its end.
std::size_t most_reports(const std::vector<RouteBinding>& bindings) {
  std::size_t most = 0;
  for (const auto& binding : bindings)
    most += binding.route.job ? 0 : binding.route.window + 1;
  return std::max<std::size_t>(most, 1);
}

// Without a purger the core must not ask for one.
RelayOptions without_retention(RelayOptions options) {
  options.retention = {milliseconds(0), milliseconds(0), milliseconds(0), milliseconds(0)};
  return options;
}

}  // namespace

RelayEngine::RelayEngine(std::unique_ptr<Store> store, std::vector<RouteBinding> routes,
                         RelayOptions options, const Clock& clock, Random& random,
                         Observer& observer, std::unique_ptr<Purger> purger)
    : store_(std::move(store)),
      purger_(std::move(purger)),
      options_(purger_ ? std::move(options) : without_retention(std::move(options))),
      clock_(clock),
      random_(random),
      observer_(observer),
      ids_(clock, random),
      core_(options_.name + "-" + ids_.next().to_string(), options_, routes_of(routes), ids_,
            random),
      reports_(most_reports(routes)),
      store_lane_([this] { reports_.interrupt(); }) {
  for (auto& binding : routes) {
    if (binding.route.job) {  // nothing is ever submitted on it
      lanes_.emplace_back();
      continue;
    }
    lanes_.push_back(std::make_unique<PublisherLane>(lanes_.size(), std::move(binding.publisher),
                                                     binding.route.window, binding.route.timeout,
                                                     reports_));
  }
  if (purger_) purge_lane_.emplace([this] { reports_.interrupt(); });
}

RelayEngine::~RelayEngine() {
  (void)close();
}

Result<PassReport> RelayEngine::run_once() {
  auto end = drive({false});
  if (end.error) return *std::move(end.error);
  return std::move(end.report);
}

Result<DrainReport> RelayEngine::drain(std::optional<std::size_t> max_passes) {
  DrainReport drain;
  while (!stop_requested_ && (!max_passes || drain.passes < *max_passes)) {
    auto pass = run_once();
    if (!pass) return std::move(pass).error();
    ++drain.passes;
    const auto& report = *pass;
    const bool sent_nothing = report.confirmed.empty() && report.jobs == 0;
    drain.drained = !report.more && report.waiting == 0 && !report.next_due_in &&
                    report.paused_routes.empty() && report.foreign.empty();
    drain.total.add(std::move(*pass));
    if (drain.drained) break;
    if (sent_nothing) pause(options_.sleep);
  }
  return drain;
}

Result<LoopReport> RelayEngine::run() {
  LoopReport loop;
  while (!stop_requested_) {
    auto end = drive({true});
    if (end.forced) return LoopReport{false, end.left_in_flight};
    if (!end.error) continue;
    const bool fatal = end.error->disposition == Disposition::stop;
    if (fatal && (!worked_once_ || end.error->code == ErrorCode::internal)) {
      return *std::move(end.error);
    }
    const auto wait = next_backoff();
    note_store_failed(*end.error, wait);
    pause(wait);
  }
  return loop;
}

void RelayEngine::request_stop() noexcept {
  stop_requested_ = true;
  reports_.interrupt();
}

Result<void> RelayEngine::close() {
  if (std::exchange(closed_, true)) return {};
  for (auto& lane : lanes_) {
    if (lane) lane->stop();
  }
  store_lane_.stop();
  if (purge_lane_) purge_lane_->stop();
  const auto leases = core_.leases();
  if (leases.empty()) return {};
  return store_->release(leases, Deadline::after(release_patience));
}

// One pass, or a continuous run until it is stopped or fails: actions lead to inputs, and when none
// is left, to waiting for what the lanes report.
RelayEngine::End RelayEngine::drive(core::input::Begin begin) {
  POSTRIDER_ASSERT(!closed_);
  end_.reset();
  stop_told_ = false;
  continuous_ = begin.continuous;
  take_step(begin);
  while (!end_) {
    stop_if_asked();
    if (auto answer = store_lane_.take_answer()) {
      take_answer(*std::move(answer));
    } else if (!inputs_.empty()) {
      auto input = std::move(inputs_.front());
      inputs_.pop();
      take_step(std::move(input));
    } else if (!end_) {
      await_reports(patience());
    }
  }
  return *std::exchange(end_, std::nullopt);
}

void RelayEngine::take_step(core::Input input) {
  for (auto& action : core_.step(std::move(input), clock_.steady())) {
    std::visit([this](auto& asked) { execute(asked); }, action);
  }
}

// A stop ends the continuous run; a single pass is short and ends by itself.
void RelayEngine::stop_if_asked() {
  if (!continuous_ || !stop_requested_) return;
  if (!std::exchange(stop_told_, true)) {
    stop_at_most_ = clock_.steady() + options_.drain_timeout;
    inputs_.emplace(core::input::Stop{});
  } else if (inputs_.empty() && !store_lane_.open() && core_.in_flight() > 0 &&
             clock_.steady() >= stop_at_most_) {
    abandon();
  }
}

// The core has to hear of it, or it would go on believing in a pass that nobody drives.
void RelayEngine::abandon() {
  const auto left = core_.in_flight();
  take_step(core::input::Abandon{});
  end_->forced = true;
  end_->left_in_flight = left;
}

void RelayEngine::await_reports(milliseconds patience) {
  core::input::Outcomes outcomes;
  for (auto& report : reports_.pop_all(patience)) {
    if (report.failure) {
      inputs_.emplace(core::input::PublisherFailed{report.route, *std::move(report.failure)});
    }
    std::move(report.outcomes.begin(), report.outcomes.end(),
              std::back_inserter(outcomes.outcomes));
  }
  take_purge_answer();
  take_step(std::move(outcomes));
}

void RelayEngine::take_purge_answer() {
  if (!purge_lane_) return;
  if (auto answer = purge_lane_->take_answer()) inputs_.push(*std::move(answer));
}

milliseconds RelayEngine::patience() const {
  return patience_until(core_.wake_at(), clock_.steady());
}

Deadline RelayEngine::store_deadline() const {
  return Deadline::after(options_.store_timeout);
}

void RelayEngine::take_answer(core::Input answer) {
  if (!std::holds_alternative<core::input::StoreFailed>(answer)) note_store_recovered();
  take_step(std::move(answer));
}

// `call` makes an `Answer` of the store's result; a failure is the same for all.
template <class Answer, class Request, class Call>
void RelayEngine::ask_store(Request request, Call call) {
  request.now = clock_.database_override();
  store_lane_.ask([&store = *store_, request = std::move(request), call,
                   deadline = store_deadline()]() -> core::Input {
    auto result = call(store, request, deadline);
    if (!result) return core::input::StoreFailed{std::move(result).error()};
    return Answer{std::move(result).value()};
  });
}

void RelayEngine::execute(core::action::Lease& lease) {
  const auto call = [asked_at = clock_.steady()](Store& store, const LeaseRequest& request,
                                                 Deadline deadline) -> Result<core::input::Leased> {
    auto grant = store.lease(request, deadline);
    if (!grant) return std::move(grant).error();
    return core::input::Leased{std::move(grant).value(), asked_at};
  };
  ask_store<core::input::Leased>(std::move(lease.request), call);
}

void RelayEngine::execute(core::action::Claim& claim) {
  ask_store<core::input::Claimed>(std::move(claim.request), std::mem_fn(&Store::claim));
}

void RelayEngine::execute(core::action::TakeDue& due) {
  ask_store<core::input::TookDue>(std::move(due.request), std::mem_fn(&Store::due));
}

void RelayEngine::execute(core::action::TakeHeld& held) {
  ask_store<core::input::TookHeld>(std::move(held.request), std::mem_fn(&Store::held));
}

void RelayEngine::execute(core::action::Settle& settle) {
  ask_store<core::input::Settled>(std::move(settle.request), std::mem_fn(&Store::settle));
}

void RelayEngine::execute(core::action::Purge& purge) {
  purge.request.now = clock_.database_override();
  purge_lane_->ask([&purger = *purger_, request = std::move(purge.request),
                    deadline = store_deadline()]() -> core::Input {
    auto slice = purger.purge(request, std::nullopt, deadline);
    if (!slice) return core::input::PurgeFailed{std::move(slice).error()};
    return core::input::Purged{std::move(slice).value()};
  });
}

void RelayEngine::execute(core::action::Submit& submit) {
  lanes_[submit.route]->send(std::move(submit.messages));
}

void RelayEngine::execute(core::action::Notify& notify) {
  observer_.notice(notify.notice);
}

void RelayEngine::execute(core::action::Done& done) {
  end_ = End{std::move(done.report), std::move(done.error), false};
}

void RelayEngine::pause(milliseconds wait) {
  if (!stop_requested_) await_reports(wait);  // outcomes of a failed pass come late
}

// ---- one notice per change of the store's state

void RelayEngine::note_store_failed(const Error& error, milliseconds wait) {
  if (store_failures_ > 1) return;
  Notice notice;
  notice.kind = NoticeKind::store_failed;
  notice.code = to_string(error.code);
  notice.detail = error.message;
  notice.wait = wait;
  observer_.notice(notice);
}

void RelayEngine::note_store_recovered() {
  worked_once_ = true;
  if (core_.settle_in_question()) return;  // a full disk still gives leases and events
  if (std::exchange(store_failures_, 0) == 0) return;
  Notice notice;
  notice.kind = NoticeKind::store_recovered;
  observer_.notice(notice);
}

milliseconds RelayEngine::next_backoff() {
  constexpr unsigned most_doublings = 10;
  const auto doubled =
      least_backoff * (std::int64_t{1} << std::min(store_failures_++, most_doublings));
  const auto whole = std::min(doubled, most_backoff);
  const auto chance = random_.next() % static_cast<std::uint64_t>(whole.count() / 2 + 1);
  return whole / 2 + milliseconds(static_cast<std::int64_t>(chance));
}

}  // namespace postrider::engine
