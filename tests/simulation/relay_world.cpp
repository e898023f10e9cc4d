#include "simulation/relay_world.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace postrider::simulation {
namespace {

constexpr milliseconds patience{1000};
constexpr std::size_t most_healed_steps = 20'000;
constexpr std::int64_t poisonous_seq = 10;
constexpr int most_deaths_alone = 2;
// Whatever takes the event's name back, such as an outage, makes the count begin again.
constexpr int most_deaths_alone_amid_faults = 8;

RelayOptions relay_options() {
  RelayOptions options;
  options.batch = 7;
  options.sleep = milliseconds(200);
  options.settle_patience = milliseconds(50);
  options.probe_most = milliseconds(2000);
  options.retention.events = milliseconds(1000);
  return options;
}

Error store_error(ErrorCode code, Disposition disposition) {
  return {code, disposition, "planted by the simulation", "simulation", ""};
}

std::string described(const SettleRequest& request) {
  std::string text;
  for (const auto& event : request.routed)
    text += " routed " + std::to_string(event.seq.value());
  for (const auto& row : request.deliveries) {
    text += " row " + std::to_string(row.event_seq.value()) + "@" + row.route + " " +
            std::string(to_string(row.status));
  }
  for (const auto& update : request.updates) {
    text += " update " + update.id.value().to_string().substr(30) + " " +
            std::string(to_string(update.status));
  }
  if (request.mark) text += " mark " + request.mark->text();
  return text;
}

std::string described(const ClaimedBatch& batch) {
  std::string text;
  for (const auto& event : batch.events)
    text += " " + std::to_string(event.event->seq.value());
  for (const auto& head : batch.open_heads)
    text += " open " + head.ordering_key + "@" + head.route;
  return text + " mark " + batch.mark.text();
}

std::string described(const DueBatch& batch) {
  std::string text;
  for (const auto& due : batch.deliveries) {
    text += " " + std::to_string(due.delivery.event_seq.value()) + "@" + due.delivery.route + " " +
            due.delivery.id.value().to_string().substr(30);
  }
  return text;
}

}  // namespace

RelayWorld::RelayWorld(WorldOptions options)
    : options_(options),
      random_(seeded_random(options.seed)),
      database_(testing::make_memory_database(options.partitions)),
      writer_(testing::make_memory_store(database_)),
      operations_(testing::make_memory_operations(database_)),
      purger_(testing::make_memory_purger(database_)),
      down_(options.routes),
      accepted_(options.routes) {
  for (std::size_t i = 0; i < options.routes; ++i) {
    Route route;
    route.name = "route-" + std::to_string(i);
    route.destination = "simulated:";
    route.retry_delays = {milliseconds(500), milliseconds(1000), milliseconds(2000)};
    route.timeout = milliseconds(1000);
    route.window = 4;
    route.on_failed = options.on_failed;
    routes_.push_back(std::move(route));
  }
  relays_.resize(options.relays);
  for (std::size_t i = 0; i < options.relays; ++i) {
    relays_[i].name = "relay-" + std::to_string(i);
    start(relays_[i]);
  }
}

RelayWorld::~RelayWorld() = default;

std::uint64_t RelayWorld::below(std::uint64_t bound) {
  return random_->next() % bound;
}

void RelayWorld::record(std::string line) {
  history_.push_back(std::move(line));
}

std::vector<std::string> RelayWorld::play() {
  hostile_ = options_.faults;
  for (std::size_t step = 0; step < options_.steps; ++step)
    options_.faults ? hostile_step() : peaceful_step();
  hostile_ = false;
  std::fill(down_.begin(), down_.end(), false);
  record("healed");
  std::size_t step = 0;
  while (!settled_down() && ++step < most_healed_steps)
    healed_step();
  check_order();
  check_all_arrived();
  check_quarantine();
  if (options_.jobs) check_jobs();
  return violations_;
}

void RelayWorld::start(RelayProcess& relay) {
  relay.random = seeded_random(random_->next());
  relay.ids = std::make_unique<IdGenerator>(clock_, *relay.random);
  relay.store = testing::make_memory_store(database_);
  relay.core =
      std::make_unique<core::RelayCore>(relay.name + "-" + std::to_string(random_->next()),
                                        relay_options(), all_routes(), *relay.ids, *relay.random);
  relay.inputs.clear();
  relay.in_flight.clear();
  relay.idle = true;
}

std::vector<Route> RelayWorld::all_routes() const {
  auto routes = routes_;
  if (options_.jobs) {
    JobPolicy policy;
    policy.job = "Work";
    policy.queue = "work";
    routes.push_back(job_route("jobs", {"*"}, policy));
  }
  return routes;
}

void RelayWorld::hostile_step() {
  auto& relay = relays_[below(relays_.size())];
  const auto dice = below(100);
  if (dice < 12) {
    write_events();
  } else if (dice < 14) {
    crash(relay);
  } else if (dice < 18) {
    const auto route = below(routes_.size());
    down_[route] = !down_[route];
    record("destination of " + routes_[route].name + (down_[route] ? " goes down" : " comes up"));
  } else if (dice < 22) {
    arrive_late();
  } else if (dice < 24) {
    lose_connection(relay, below(routes_.size()));
  } else if (dice < 26) {
    clock_.advance(milliseconds(2000 + below(6000)));  // freezes relays past their leases
  } else if (dice < 45) {
    clock_.advance(milliseconds(below(300)));
    let_relay_act(relay);
  } else {
    let_relay_act(relay);
  }
}

void RelayWorld::healed_step() {
  if (chance(20)) clock_.advance(milliseconds(below(400)));
  if (chance(5)) arrive_late();
  let_relay_act(relays_[below(relays_.size())]);
}

void RelayWorld::peaceful_step() {
  if (chance(12)) {
    write_events();
  } else {
    healed_step();
  }
}

void RelayWorld::write_events() {
  std::vector<NewEvent> events(1 + below(4));
  for (auto& event : events) {
    event.type = "thing.happened";
    if (chance(90))
      event.aggregate = Aggregate{"thing", std::to_string(below(options_.aggregates))};
    aggregate_of_[++last_seq_] = event.aggregate ? event.aggregate->id : "";
    if (options_.poison && last_seq_ == poisonous_seq) poison_ = last_seq_;
  }
  const auto ids = writer_->add(events, Deadline::after(patience));
  if (!ids) violations_.push_back("add failed: " + describe(ids.error()));
}

void RelayWorld::let_relay_act(RelayProcess& relay) {
  if (!relay.in_flight.empty() && chance(20)) {
    answer_one(relay);
  } else if (relay.idle) {
    relay.idle = false;
    take_step(relay, core::input::Begin{options_.continuous});
  } else if (!relay.inputs.empty() && (!hostile_ || chance(70))) {
    auto input = std::move(relay.inputs.front());
    relay.inputs.pop_front();
    take_step(relay, std::move(input));
  } else if (!relay.in_flight.empty() && chance(70)) {
    answer_one(relay);
  } else {
    take_step(relay, core::input::Tick{});
  }
}

void RelayWorld::take_step(RelayProcess& relay, core::Input input) {
  for (auto& action : relay.core->step(std::move(input), clock_.steady())) {
    if (!execute(relay, action)) return;
  }
}

// The store does its work at once, atomically; the answer may be on its way for long.
template <class Answer, class Call>
void RelayWorld::call_store(RelayProcess& relay, std::string_view what, Call&& call) {
  const auto dice = hostile_ ? below(100) : 99;
  if (dice < 3) {
    record(relay.name + ": " + std::string(what) + " fails, nothing happened");
    relay.inputs.emplace_back(
        core::input::StoreFailed{store_error(ErrorCode::unavailable, Disposition::retry)});
    return;
  }
  auto result = call();
  if (dice < 6 || !result) {
    record(relay.name + ": the answer to " + std::string(what) + " is lost");
    relay.inputs.emplace_back(
        core::input::StoreFailed{store_error(ErrorCode::commit_unknown, Disposition::in_doubt)});
    return;
  }
  relay.inputs.emplace_back(Answer{std::move(result).value()});
}

bool RelayWorld::execute(RelayProcess& relay, core::Action& action) {
  using namespace core;
  const auto now = clock_.database_override();
  auto& store = *relay.store;
  if (auto* lease = std::get_if<action::Lease>(&action)) {
    lease->request.now = now;
    const auto asked_at = clock_.steady();
    call_store<input::Leased>(relay, "lease", [&]() -> Result<input::Leased> {
      auto grant = store.lease(lease->request, Deadline::after(patience));
      if (!grant) return std::move(grant).error();
      record(relay.name + ": holds " + std::to_string(grant->leases.size()) + " leases");
      return input::Leased{std::move(grant).value(), asked_at};
    });
  } else if (auto* claim = std::get_if<action::Claim>(&action)) {
    claim->request.now = now;
    call_store<input::Claimed>(relay, "claim", [&] {
      auto batch = store.claim(claim->request, Deadline::after(patience));
      if (batch) record(relay.name + ": claims " + described(*batch));
      return batch;
    });
  } else if (auto* due = std::get_if<action::TakeDue>(&action)) {
    due->request.now = now;
    call_store<input::TookDue>(relay, "due", [&] {
      auto batch = store.due(due->request, Deadline::after(patience));
      if (batch) record(relay.name + ": finds due " + described(*batch));
      return batch;
    });
  } else if (auto* held = std::get_if<action::TakeHeld>(&action)) {
    held->request.now = now;
    call_store<input::TookHeld>(relay, "held", [&] {
      record(relay.name + ": looks for held events");
      return store.held(held->request, Deadline::after(patience));
    });
  } else if (auto* settle = std::get_if<action::Settle>(&action)) {
    settle->request.now = now;
    record(relay.name + ": settles " + described(settle->request));
    call_store<input::Settled>(
        relay, "settle", [&] { return store.settle(settle->request, Deadline::after(patience)); });
  } else if (auto* purge_slice = std::get_if<action::Purge>(&action)) {
    purge(relay, std::move(purge_slice->request));
  } else if (auto* submitted = std::get_if<action::Submit>(&action)) {
    return submit(relay, *submitted);
  } else if (std::get_if<action::Done>(&action) != nullptr) {
    relay.idle = true;
  }
  return true;
}

bool RelayWorld::submit(RelayProcess& relay, core::action::Submit& submit) {
  for (auto& message : submit.messages) {
    const auto seq = message.event->seq.value();
    record(relay.name + ": sends " + std::to_string(seq) + " on " + routes_[submit.route].name);
    if (seq == poison_) {
      die_of_poison(relay);
      return false;
    }
    relay.in_flight.push_back({submit.route, std::move(message)});
  }
  return true;
}

// Whether crashes are suspected is read from the rows, as the next owner will.
void RelayWorld::die_of_poison(RelayProcess& relay) {
  const auto status = operations_->status(clock_.wall(), Deadline::after(patience));
  int crashes = 0;
  for (const auto& partition : status->partitions)
    crashes = std::max(crashes, partition.suspicion.crashes);
  ++deaths_;
  if (crashes >= core::CrashWatch::alone_from) ++deaths_alone_;
  record("poison, after " + std::to_string(crashes) + " crashes");
  crash(relay);
}

void RelayWorld::purge(RelayProcess& relay, PurgeRequest request) {
  if (hostile_ && chance(20)) {
    record(relay.name + ": a purge fails");
    relay.inputs.emplace_back(
        core::input::PurgeFailed{store_error(ErrorCode::unavailable, Disposition::retry)});
    return;
  }
  request.now = clock_.database_override();
  auto slice = purger_->purge(request, std::nullopt, Deadline::after(patience));
  purged_ += slice->rows;
  record(relay.name + ": purges " + std::to_string(slice->rows) + " " +
         std::string(to_string(request.kept)));
  relay.inputs.emplace_back(core::input::Purged{std::move(slice).value()});
}

// One message that is in flight gets its outcome; the destination may have it, lose it, or get it
// later although the sender was told nothing.
void RelayWorld::answer_one(RelayProcess& relay) {
  const auto index = below(relay.in_flight.size());
  const auto sent = std::move(relay.in_flight[index]);
  relay.in_flight.erase(relay.in_flight.begin() + static_cast<std::ptrdiff_t>(index));
  const auto seq = sent.message.event->seq;
  const auto dice = hostile_ ? below(100) : 0;
  Outcome outcome = Outcome::confirmed();
  if (down_[sent.route]) {
    outcome = Outcome::unavailable("down", "the destination is down");
  } else if (dice < 70) {
    accept(sent.route, seq);
  } else if (dice < 78) {
    outcome = Outcome::refused("nacked", "refused");
  } else if (dice < 80) {
    accept(sent.route, seq);
    outcome = Outcome::answered_unknown("http_500", "it failed behind its work");
  } else if (dice < 86) {
    accept(sent.route, seq);
    outcome = Outcome::unknown("timed_out", "the confirmation was lost");
  } else if (dice < 92) {
    late_copies_.push_back({sent.route, seq});
    outcome = Outcome::unknown("timed_out", "the message is still on its way");
  } else if (dice < 97) {
    outcome = Outcome::unknown("timed_out", "the message was lost");
  } else if (dice < 98) {
    outcome = Outcome::rejected("rejected", "never");
  } else {
    outcome = Outcome::throttled(milliseconds(500), "slow down");
  }
  record(relay.name + ": " + std::to_string(seq.value()) + " on " + routes_[sent.route].name +
         " is " + std::string(to_string(outcome.kind)));
  take_step(relay, core::input::Outcomes{{{sent.message.attempt, std::move(outcome)}}});
}

void RelayWorld::lose_connection(RelayProcess& relay, std::size_t route) {
  core::input::Outcomes outcomes;
  std::erase_if(relay.in_flight, [&](const InFlight& sent) {
    if (sent.route != route) return false;
    if (chance(50)) accept(route, sent.message.event->seq);
    outcomes.outcomes.push_back({sent.message.attempt, Outcome::lost_connection("cut")});
    return true;
  });
  if (outcomes.outcomes.empty()) return;
  record(relay.name + ": loses its connection on " + routes_[route].name);
  take_step(relay, std::move(outcomes));
}

void RelayWorld::accept(std::size_t route, Seq seq) {
  accepted_[route].push_back(seq.value());
}

void RelayWorld::arrive_late() {
  if (late_copies_.empty()) return;
  const auto index = below(late_copies_.size());
  const auto copy = late_copies_[index];
  late_copies_.erase(late_copies_.begin() + static_cast<std::ptrdiff_t>(index));
  record(std::to_string(copy.seq.value()) + " arrives late on " + routes_[copy.route].name);
  accept(copy.route, copy.seq);
}

// What it had sent may still arrive.
void RelayWorld::crash(RelayProcess& relay) {
  record(relay.name + ": dies");
  for (const auto& sent : relay.in_flight) {
    if (chance(50)) late_copies_.push_back({sent.route, sent.message.event->seq});
  }
  start(relay);
}

bool RelayWorld::settled_down() const {
  if (!late_copies_.empty()) return false;
  const auto dead = operations_->dead_letters({}, Deadline::after(patience));
  std::set<std::pair<std::string, std::int64_t>> failed;
  if (options_.poison && last_seq_ >= poisonous_seq && dead->empty()) return false;
  for (const auto& letter : *dead) {
    failed.emplace(letter.delivery.route, letter.delivery.event_seq.value());
  }
  for (std::size_t route = 0; route < routes_.size(); ++route) {
    const std::set<std::int64_t> arrived(accepted_[route].begin(), accepted_[route].end());
    std::set<std::string> halted;
    for (const auto& [seq, aggregate] : aggregate_of_) {
      const bool is_dead = failed.contains({routes_[route].name, seq});
      if (is_dead && !aggregate.empty()) halted.insert(aggregate);
      const bool waits = !aggregate.empty() && halted.contains(aggregate);
      if (!is_dead && !waits && !arrived.contains(seq)) return false;
    }
  }
  return !options_.jobs || count_jobs().size() == aggregate_of_.size();
}

std::map<std::int64_t, std::size_t> RelayWorld::count_jobs() const {
  DeliveryFilter filter;
  filter.route = "jobs";
  filter.history = true;
  filter.limit = 1000;  // more than a run writes events
  std::map<std::int64_t, std::size_t> jobs;
  const auto page = operations_->deliveries(filter, std::nullopt, Deadline::after(patience));
  for (const auto& listed : page->deliveries)
    ++jobs[listed.delivery.event_seq.value()];
  return jobs;
}

// R-170: whoever dies when, an event makes its job once.
void RelayWorld::check_jobs() {
  const auto jobs = count_jobs();
  for (const auto& [seq, aggregate] : aggregate_of_) {
    const auto found = jobs.find(seq);
    if (found != jobs.end() && found->second == 1) continue;
    violations_.push_back("jobs: " + std::to_string(seq) + " has " +
                          std::to_string(found == jobs.end() ? 0 : found->second));
  }
}

// G4: within first occurrences, events of one aggregate ascend.
void RelayWorld::check_order() {
  for (std::size_t route = 0; route < routes_.size(); ++route) {
    std::set<std::int64_t> seen;
    std::map<std::string, std::int64_t> last;
    for (const auto seq : accepted_[route]) {
      if (!seen.insert(seq).second) continue;
      const auto& aggregate = aggregate_of_.at(seq);
      if (aggregate.empty()) continue;
      auto& before = last[aggregate];
      if (seq < before) {
        violations_.push_back("order: " + std::to_string(seq) + " arrives first after " +
                              std::to_string(before) + " of aggregate " + aggregate + " on " +
                              routes_[route].name);
      }
      before = std::max(before, seq);
    }
  }
}

void RelayWorld::check_all_arrived() {
  if (settled_down()) return;
  violations_.push_back("liveness: something that may arrive has not");
  for (const auto& relay : relays_) {
    record(relay.name + (relay.idle ? " is between passes" : " is in a pass") + ", " +
           std::to_string(relay.inputs.size()) + " answers on their way, " +
           std::to_string(relay.in_flight.size()) + " messages in flight, " +
           std::to_string(relay.core->in_flight()) + " as it knows, " +
           std::to_string(relay.core->leases().size()) + " leases");
  }
}

// G10: the event that kills relays is found, and where nothing else fails, only that one.
void RelayWorld::check_quarantine() {
  if (deaths_alone_ > (options_.faults ? most_deaths_alone_amid_faults : most_deaths_alone)) {
    violations_.push_back("quarantine: poison killed " + std::to_string(deaths_alone_) +
                          " relays that sent one event at a time");
  }
  if (options_.faults) return;
  const auto dead = operations_->dead_letters({}, Deadline::after(patience));
  for (const auto& letter : *dead) {
    const auto seq = letter.delivery.event_seq.value();
    if (seq == poison_ && letter.delivery.failure_code == "relay_crashed") continue;
    violations_.push_back("quarantine: " + std::to_string(seq) + " is a dead letter, " +
                          letter.delivery.failure_code);
  }
}

}  // namespace postrider::simulation
