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

}  // namespace

KeeperEngine::KeeperEngine(std::unique_ptr<JobStore> store, std::vector<RouteBinding> brokers,
                           core::KeeperOptions options, milliseconds store_timeout,
                           const Clock& clock, Random& random, Observer& observer)
    : store_(std::move(store)),
      store_timeout_(store_timeout),
      clock_(clock),
      observer_(observer),
      core_(options, broker_routes(brokers), random),
      reports_(most_broker_reports(brokers)),
      store_lane_([this] { reports_.interrupt(); }) {
  for (auto& broker : brokers) {
    lanes_.push_back(std::make_unique<PublisherLane>(lanes_.size(), std::move(broker.publisher),
                                                     broker.route.window, store_timeout, reports_));
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

Result<void> KeeperEngine::run() {
  return drive(true);
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
  if (stop_requested_) return {};
  done_.reset();
  stop_told_ = false;
  take_step(core::keeper_input::Begin{continuous});
  while (!done_) {
    tell_stop();
    if (auto answer = store_lane_.take_answer()) {
      take_step(*std::move(answer));
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

void KeeperEngine::tell_stop() {
  if (stop_requested_ && !std::exchange(stop_told_, true)) {
    inputs_.emplace(core::keeper_input::Stop{});
  }
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
  return patience_until(core_.wake_at(), clock_.steady());
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
