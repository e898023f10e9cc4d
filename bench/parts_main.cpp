// Parts of a relay, one at a time: what an event costs in the core, and what its identities cost.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/testing/manual_clock.hpp>

#include "core/relay_core.hpp"

namespace postrider::bench {
namespace {

constexpr std::size_t batch_size = 1000;

ClaimedBatch batch_of(std::int64_t first_seq) {
  ClaimedBatch batch;
  for (std::size_t i = 0; i < batch_size; ++i) {
    const auto seq = first_seq + static_cast<std::int64_t>(i);
    auto event = std::make_shared<Event>();
    event->seq = Seq(seq);
    event->aggregate = Aggregate{"account", std::to_string(seq % 50'000)};
    event->type = "account.changed";
    event->payload.assign(300, 'x');
    ClaimedEvent claimed;
    claimed.event = std::move(event);
    claimed.partition = Partition(static_cast<std::int32_t>(seq % 64));
    batch.events.push_back(std::move(claimed));
  }
  batch.mark = ReadMark(std::to_string(first_seq));
  batch.more = true;
  return batch;
}

/// A core in continuous mode whose store and destination answer at once.
class Carrier {
 public:
  Carrier() {
    Route route;
    route.name = "all";
    core_ = std::make_unique<core::RelayCore>("bench", RelayOptions{}, std::vector<Route>{route},
                                              ids_, *random_);
    give(core::input::Begin{true});
  }

  /// Answers whatever is asked until so many batches have been claimed.
  void carry(std::size_t batches) {
    for (const auto end = claimed_ + batches; claimed_ < end;)
      answer_next();
  }

 private:
  void give(core::Input input) {
    for (auto& action : core_->step(std::move(input), clock_.steady()))
      actions_.push_back(std::move(action));
  }

  void answer_next() {
    if (actions_.empty()) return give(core::input::Tick{});
    auto action = std::move(actions_.front());
    actions_.pop_front();
    std::visit([this](auto& asked) { answer(asked); }, action);
  }

  void answer(core::action::Lease&) {
    LeaseGrant grant;
    for (std::int32_t i = 0; i < 64; ++i)
      grant.leases.push_back({{Partition(i), FencingToken(1)}, true, {}, 0});
    give(core::input::Leased{std::move(grant), clock_.steady()});
  }
  void answer(core::action::Claim&) {
    const auto first = static_cast<std::int64_t>(claimed_++ * batch_size) + 1;
    give(core::input::Claimed{batch_of(first)});
  }
  void answer(core::action::TakeDue&) { give(core::input::TookDue{}); }
  void answer(core::action::TakeHeld&) { give(core::input::TookHeld{}); }
  void answer(core::action::Purge&) { give(core::input::Purged{}); }
  void answer(core::action::Settle&) { give(core::input::Settled{}); }
  void answer(core::action::Submit& submit) {
    core::input::Outcomes outcomes;
    for (const auto& message : submit.messages)
      outcomes.outcomes.push_back({message.attempt, Outcome::confirmed()});
    give(std::move(outcomes));
  }
  void answer(core::action::Notify&) {}
  void answer(core::action::Done&) {}

  testing::ManualClock clock_;
  std::unique_ptr<Random> random_ = seeded_random(1);
  IdGenerator ids_{clock_, *random_};
  std::unique_ptr<core::RelayCore> core_;
  std::deque<core::Action> actions_;
  std::size_t claimed_ = 0;
};

void events_through_the_core(benchmark::State& state) {
  Carrier carrier;
  for (auto _ : state)
    carrier.carry(1);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch_size));
}
BENCHMARK(events_through_the_core);

void making_a_batch(benchmark::State& state) {
  std::int64_t seq = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(batch_of(seq));
    seq += static_cast<std::int64_t>(batch_size);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch_size));
}
BENCHMARK(making_a_batch);

void dispatch_id(benchmark::State& state) {
  const auto random = system_random();
  IdGenerator ids(system_clock(), *random);
  for (auto _ : state)
    benchmark::DoNotOptimize(ids.next());
}
BENCHMARK(dispatch_id);

void slot_of_an_aggregate(benchmark::State& state) {
  const Aggregate aggregate{"account", "12345"};
  for (auto _ : state)
    benchmark::DoNotOptimize(slot_of(aggregate));
}
BENCHMARK(slot_of_an_aggregate);

}  // namespace
}  // namespace postrider::bench

BENCHMARK_MAIN();
