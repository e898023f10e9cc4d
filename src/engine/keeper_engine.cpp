#include "engine/keeper_engine.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "engine/patience.hpp"

namespace postrider::engine {
namespace {

std::vector<Route> broker_routes(const std::vector<RouteBinding>& brokers) {
  std::vector<Route> routes;
  routes.reserve(brokers.size());
  for (const auto& [route, publisher] : brokers) {
    routes.push_back(route);
    routes.back().window = std::min(route.window, publisher->traits().window);
  }
  return routes;
}

// Every task in flight has one outcome, and a report holds at least one; a lane may add its end.
std::size_t most_broker_reports(const std::vector<RouteBinding>& brokers) {
  std::size_t most = 1;
  for (const auto& broker : brokers)
    most += broker.route.window + 1;
  return most;
}

core::KeeperOptions keeper_options(const RelayOptions& options) {
  return {options.sleep, options.worker_dead_after, options.probe_least, options.probe_most};
}

}  // namespace

KeeperEngine::KeeperEngine(std::unique_ptr<JobStore> store, std::vector<RouteBinding> brokers,
                           const RelayOptions& options, const Clock& clock, Random& random,
                           Observer& observer)
    : store_(std::move(store)),
      store_timeout_(options.store_timeout),
      drain_timeout_(options.drain_timeout),
      clock_(clock),
      observer_(observer),
      core_(keeper_options(options), broker_routes(brokers), random),
      reports_(most_broker_reports(brokers)),
      store_lane_([this] { reports_.interrupt(); }) {
  for (auto& broker : brokers) {
    lanes_.push_back(std::make_unique<PublisherLane>(
        lanes_.size(), std::move(broker.publisher), broker.route.window, store_timeout_, reports_));
  }
}

KeeperEngine::~KeeperEngine() {
  for (auto& lane : lanes_)
    lane->stop();
  store_lane_.stop();
}

Result<void> KeeperEngine::run_once() {
  return drive(false);
}

Result<LoopReport> KeeperEngine::run() {
  given_up_ = 0;
  while (!stop_requested_) {
    auto driven = drive(true);
    if (driven) continue;
    if (is_fatal(driven.error())) return std::move(driven).error();
    note_store_failed(driven.error());
  }
  const auto left = given_up_ + core_.in_flight();
  return LoopReport{left == 0, left};
}

void KeeperEngine::request_stop() noexcept {
  stop_requested_ = true;
  reports_.interrupt();
}

void KeeperEngine::wake() noexcept {
  woken_ = true;
  reports_.interrupt();
}

Result<void> KeeperEngine::drive(bool continuous) {
  continuous_ = continuous;
  done_.reset();
  stop_told_ = false;
  take_step(core::keeper_input::Begin{continuous});
  while (!done_) {
    tell_stop();
    if (auto answer = store_lane_.take_answer()) {
      take_answer(*std::move(answer));
    } else if (!inputs_.empty()) {
      auto input = std::move(inputs_.front());
      inputs_.pop();
      take_step(std::move(input));
    } else if (!done_) {
      await_reports();
    }
  }
  if (done_->error) return *std::move(done_->error);
  return {};
}

// As for the relay: what has worked is expected to work again, after a failover or a mended right.
bool KeeperEngine::is_fatal(const Error& error) const {
  if (error.disposition != Disposition::stop) return false;
  return !worked_once_ || error.code == ErrorCode::internal;
}

// The relay tells of what the whole database cannot do; this may concern the tables of jobs alone.
void KeeperEngine::note_store_failed(const Error& error) {
  if (std::exchange(store_failed_, true)) return;
  Notice notice;
  notice.kind = NoticeKind::store_failed;
  notice.code = to_string(error.code);
  notice.detail = error.message;
  observer_.notice(notice);
}

void KeeperEngine::take_answer(core::KeeperInput answer) {
  if (!std::holds_alternative<core::keeper_input::StoreFailed>(answer)) {
    worked_once_ = true;
    if (std::exchange(store_failed_, false)) {
      Notice notice;
      notice.kind = NoticeKind::store_recovered;
      observer_.notice(notice);
    }
  }
  take_step(std::move(answer));
}

// A stop ends the continuous run; a single pass is short and ends by itself.
void KeeperEngine::tell_stop() {
  if (!continuous_ || !stop_requested_) return;
  if (!std::exchange(stop_told_, true)) {
    stop_at_most_ = clock_.steady() + drain_timeout_;
    inputs_.emplace(core::keeper_input::Stop{});
  } else if (inputs_.empty() && core_.in_flight() > 0 && clock_.steady() >= stop_at_most_) {
    give_up();
  }
}

// A broker may never answer. What it has not answered for would stay dispatched until its timeout.
void KeeperEngine::give_up() {
  given_up_ += core_.in_flight();
  inputs_.emplace(core::keeper_input::GiveUp{});
}

void KeeperEngine::take_step(core::KeeperInput input) {
  for (auto& action : core_.step(std::move(input), clock_.steady()))
    std::visit([this](auto& asked) { execute(asked); }, action);
}

void KeeperEngine::await_reports() {
  core::keeper_input::Outcomes outcomes;
  for (auto& report : reports_.pop_all(patience())) {
    if (report.failure) {
      inputs_.emplace(
          core::keeper_input::PublisherFailed{report.route, *std::move(report.failure)});
    }
    std::move(report.outcomes.begin(), report.outcomes.end(),
              std::back_inserter(outcomes.outcomes));
  }
  if (woken_.exchange(false)) inputs_.emplace(core::keeper_input::Woken{});
  take_step(std::move(outcomes));
}

milliseconds KeeperEngine::patience() const {
  auto wake = core_.wake_at();
  if (stop_told_ && core_.in_flight() > 0) wake = stop_at_most_;
  return patience_until(wake, clock_.steady());
}

// `call` makes an `Answer` of the store's result; a failure is the same for all.
template <class Answer, class Request, class Call>
void KeeperEngine::ask_store(Request request, Call call) {
  request.now = clock_.database_override();
  store_lane_.ask([&store = *store_, request = std::move(request), call,
                   deadline = Deadline::after(store_timeout_)]() -> core::KeeperInput {
    auto result = call(store, request, deadline);
    if (!result) return core::keeper_input::StoreFailed{std::move(result).error()};
    return Answer{std::move(result).value()};
  });
}

void KeeperEngine::execute(core::keeper_action::FindLost& find) {
  ask_store<core::keeper_input::Found>(std::move(find.request), std::mem_fn(&JobStore::lost));
}

void KeeperEngine::execute(core::keeper_action::HandOut& hand_out) {
  ask_store<core::keeper_input::HandedOut>(std::move(hand_out.request),
                                           std::mem_fn(&JobStore::hand_out));
}

void KeeperEngine::execute(core::keeper_action::Record& record) {
  ask_store<core::keeper_input::Recorded>(std::move(record.request),
                                          std::mem_fn(&JobStore::record));
}

void KeeperEngine::execute(core::keeper_action::Submit& submit) {
  lanes_[submit.route]->send(std::move(submit.messages));
}

void KeeperEngine::execute(core::keeper_action::Notify& notify) {
  observer_.notice(notify.notice);
}

void KeeperEngine::execute(core::keeper_action::Done& done) {
  done_ = std::move(done);
}

}  // namespace postrider::engine
