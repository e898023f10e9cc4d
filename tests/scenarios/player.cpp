#include "scenarios/player.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace postrider::scenarios {
namespace {

using Words = std::vector<std::string>;

constexpr milliseconds patience{10'000};

class SilentObserver final : public Observer {
 public:
  void notice(const Notice&) override {}
};

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error(why);
}

template <class T>
T must(Result<T> result) {
  if (!result) refuse(describe(result.error()));
  return std::move(result).value();
}

milliseconds duration(const std::string& text) {
  std::size_t end = 0;
  const auto number = std::stoll(text, &end);
  const auto unit = text.substr(end);
  if (unit == "ms") return milliseconds(number);
  if (unit == "s") return std::chrono::seconds(number);
  if (unit == "m") return std::chrono::minutes(number);
  if (unit == "h") return std::chrono::hours(number);
  refuse("'" + text + "' is no duration");
}

Words split(const std::string& text, char separator) {
  Words parts;
  std::string::size_type from = 0;
  while (from <= text.size()) {
    const auto to = std::min(text.find(separator, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

testing::Fault fault(const std::string& word) {
  if (word == "down") return testing::Fault::down;
  if (word == "lost_ack") return testing::Fault::lost_ack;
  if (word == "refuse") return testing::Fault::refuse;
  if (word == "reject") return testing::Fault::reject;
  if (word == "cut") return testing::Fault::cut;
  refuse("'" + word + "' is no fault");
}

std::string joined(const Words& words) {
  std::string text;
  for (const auto& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "nothing" : text;
}

Words from(const Words& words, std::size_t index) {
  Words rest(words.begin() + static_cast<std::ptrdiff_t>(std::min(index, words.size())),
             words.end());
  if (rest == Words{"nothing"}) rest.clear();
  return rest;
}

/// False when `key` is no setting of jobs.
bool set_job(Route& route, const std::string& key, const std::string& value) {
  if (key != "job" && key != "queue" && key != "serial_key" && key != "unique_key") return false;
  auto& job = route.job ? *route.job : route.job.emplace();
  if (key == "job") job.job = value;
  if (key == "queue") job.queue = value;
  if (key == "serial_key") job.serial_key = value;
  if (key == "unique_key") job.unique_key = value;
  route.order = Order::none;
  route.on_failed = OnFailed::skip;
  return true;
}

bool is_number(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

Player::Player(const World& world)
    : world_(world),
      random_(seeded_random(1)),
      harness_(world.make_store()),
      store_(harness_->open_store()),
      operations_(harness_->open_operations()),
      observer_(std::make_unique<SilentObserver>()) {
  Route route;
  route.name = "all";
  route.destination = "scenario:";
  route.retry_delays = {std::chrono::seconds(1)};
  routes_.push_back(std::move(route));
}

Player::~Player() {
  relays_.clear();
}

void Player::play(const Scenario& scenario) {
  for (const auto& command : scenario.commands) {
    at_ = scenario.file + ":" + std::to_string(command.line) + ": " + joined(command.words);
    SCOPED_TRACE(at_);
    try {
      run(command);
    } catch (const std::exception& failure) {
      FAIL() << failure.what();
    }
    if (::testing::Test::HasFailure()) return;
  }
}

void Player::run(const Command& command) {
  const auto& words = command.words;
  const auto& verb = words.front();
  if (verb == "option") return set_option(words);
  if (verb == "route") return set_route(words);
  if (verb == "add") return add(words);
  if (verb == "fault") return set_faults(words);
  if (verb == "down" || verb == "up") return set_down(words, verb == "down");
  if (verb == "pass") return pass(words);
  if (verb == "advance") return advance(words);
  if (verb == "restart") return restart();
  if (verb == "crash") return crash();
  if (verb == "dead") return operate_dead(words);
  if (verb == "pause" || verb == "resume") return operate_route(words);
  if (verb == "received") return expect_received(words);
  if (verb == "effects") return expect_effects(words);
  if (verb == "count") return expect_count(words);
  refuse("'" + verb + "' is no command");
}

// option batch 2
void Player::set_option(const Words& words) {
  const auto& name = words.at(1);
  const auto& value = words.at(2);
  if (name == "batch") {
    options_.batch = std::stoul(value);
  } else if (name == "unrouted") {
    options_.unrouted = parse_unrouted(value).value();
  } else if (name == "settle_patience") {
    options_.settle_patience = duration(value);
  } else {
    refuse("'" + name + "' is no option");
  }
}

// route mail events=order.placed,order.paid on_failed=skip retry_delays=1s,5s
// route ship events=order.placed job=Reserve queue=shipping
// The first `route` of a scenario replaces the default one.
void Player::set_route(const Words& words) {
  if (routes_.size() == 1 && routes_.front().name == "all") routes_.clear();
  std::erase_if(routes_, [&](const Route& old) { return old.name == words.at(1); });
  Route route;
  route.name = words.at(1);
  route.destination = "scenario:";
  route.retry_delays = {std::chrono::seconds(1)};
  for (const auto& setting : from(words, 2)) {
    const auto equals = setting.find('=');
    const auto key = setting.substr(0, equals);
    const auto value = setting.substr(equals + 1);
    if (key == "events") {
      route.events = split(value, ',');
    } else if (key == "order") {
      route.order = parse_order(value).value();
    } else if (key == "on_failed") {
      route.on_failed = parse_on_failed(value).value();
    } else if (key == "record") {
      route.record = parse_record(value).value();
    } else if (key == "outage_counts") {
      route.outage_counts = value == "true";
    } else if (key == "window") {
      route.window = std::stoul(value);
    } else if (set_job(route, key, value)) {
      continue;
    } else if (key == "retry_delays") {
      route.retry_delays.clear();
      for (const auto& delay : split(value, ','))
        route.retry_delays.push_back(duration(delay));
    } else {
      refuse("'" + key + "' is no setting of a route");
    }
  }
  if (route.job) route.destination.clear();
  ASSERT_EQ(validate(route), std::vector<std::string>{});
  routes_.push_back(std::move(route));
}

// add 1 order.placed order/1 in 5s
void Player::add(const Words& words) {
  NewEvent event;
  const auto& label = words.at(1);
  event.type = words.at(2);
  event.payload = label;
  if (words.size() > 3 && words[3] != "-") {
    const auto slash = words[3].find('/');
    event.aggregate = Aggregate{words[3].substr(0, slash), words[3].substr(slash + 1)};
  }
  if (words.size() > 5 && words[4] == "in") {
    event.available_at = clock_.wall() + duration(words[5]);
  }
  const std::vector<NewEvent> events = {event};
  const auto ids = must(store_->add(events, Deadline::after(patience)));
  ids_.insert_or_assign(label, ids.front());
  labels_[ids.front().value().to_string()] = label;
  order_.push_back(label);
}

// fault 1 down 3 lost_ack       by number of the attempt
// fault on warehouse: 1 refuse  at the destination of this route
// fault event A reject          whenever this event is sent
// fault event A kill            and whoever sends it dies
// fault none
void Player::set_faults(const Words& words) {
  std::size_t at = 1;
  std::string name = routes_.front().name;
  if (words.at(at) == "on") {
    name = words.at(at + 1);
    at += 2;
  }
  auto& target = destination(name);
  if (words.at(at) == "none") return target.heal();
  if (words.at(at) == "event" && words.at(at + 2) == "kill") {
    return target.make_deadly(ids_.at(words.at(at + 1)).value().to_string(),
                              [this] { *death_ = true; });
  }
  if (words.at(at) == "event") {
    return target.fail_event(ids_.at(words.at(at + 1)).value().to_string(),
                             fault(words.at(at + 2)));
  }
  for (; at + 1 < words.size(); at += 2) {
    target.fail_attempt(std::stoull(words[at]), fault(words[at + 1]));
  }
}

void Player::set_down(const Words& words, bool down) {
  destination(words.size() > 1 ? words[1] : routes_.front().name).set_down(down);
}

// pass sends 2 3            what was confirmed, in that order
// pass by r2 sends nothing  by another relay
// pass sends a@mail b@stock with several routes; the order between routes does not count
// pass dies                 of an event that kills
void Player::pass(const Words& words) {
  std::size_t at = 1;
  std::string name = "r1";
  if (words.size() > at && words[at] == "by") {
    name = words.at(at + 1);
    at += 2;
  }
  auto result = relay(name).run_once();
  if (words.size() > at && words[at] == "dies") {
    EXPECT_TRUE(*death_) << "nothing killed it";
    return crash();
  }
  const auto report = must(std::move(result));
  if (words.size() <= at) return;
  ASSERT_EQ(words[at], "sends");
  auto expected = from(words, at + 1);
  Words sent;
  for (const auto& one : report.sent) {
    auto label = labels_.at(one.event_id.value().to_string());
    sent.push_back(routes_.size() > 1 ? label + "@" + one.route : label);
  }
  if (routes_.size() > 1) {
    const auto by_route = [](const std::string& a, const std::string& b) {
      return a.substr(a.find('@')) < b.substr(b.find('@'));
    };
    std::stable_sort(sent.begin(), sent.end(), by_route);
    std::stable_sort(expected.begin(), expected.end(), by_route);
  }
  EXPECT_EQ(joined(sent), joined(expected));
}

void Player::advance(const Words& words) {
  clock_.advance(duration(words.at(1)));
}

void Player::restart() {
  relays_.clear();
}

void Player::crash() {
  *death_ = true;
  relays_.clear();
  death_ = std::make_shared<std::atomic<bool>>(false);
}

// dead retry A     dead discard A     dead is A B
void Player::operate_dead(const Words& words) {
  DeadFilter filter;
  const auto& verb = words.at(1);
  const auto dead = must(operations_->dead_letters(filter, Deadline::after(patience)));
  if (verb == "is") {
    Words found;
    for (const auto& letter : dead) {
      found.push_back(labels_.at(letter.delivery.event_id.value().to_string()));
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(joined(found), joined(from(words, 2)));
    return;
  }
  for (const auto& letter : dead) {
    const auto& label = labels_.at(letter.delivery.event_id.value().to_string());
    const auto wanted = from(words, 2);
    if (std::find(wanted.begin(), wanted.end(), label) != wanted.end()) {
      filter.ids.push_back(letter.delivery.id);
    }
  }
  ASSERT_FALSE(filter.ids.empty()) << "no such dead letter";
  const Operator who{"scenario", "told to"};
  if (verb == "retry") {
    (void)must(operations_->dead_retry(filter, who, clock_.wall(), Deadline::after(patience)));
  } else if (verb == "discard") {
    (void)must(operations_->dead_discard(filter, who, clock_.wall(), Deadline::after(patience)));
  } else {
    refuse("'" + verb + "' is no command for dead letters");
  }
}

void Player::operate_route(const Words& words) {
  const Operator who{"scenario", "told to"};
  const auto change =
      words.front() == "pause" ? &Operations::route_pause : &Operations::route_resume;
  (void)must(
      (operations_.get()->*change)(words.at(1), who, clock_.wall(), Deadline::after(patience)));
}

// received 1 2 1              everything that arrived, repeats included
// received at mail: 1 2
void Player::expect_received(const Words& words) {
  const bool named = words.size() > 2 && words[1] == "at";
  const auto name = named ? split(words[2], ':').front() : routes_.front().name;
  EXPECT_EQ(joined(labels_of(destination(name).received_ids())),
            joined(from(words, named ? 3 : 1)));
}

// effects 1 2 duplicates 1    what a receiver does that skips ids that it has processed
void Player::expect_effects(const Words& words) {
  auto expected = from(words, 1);
  ASSERT_GE(expected.size(), 2U);
  ASSERT_EQ(expected[expected.size() - 2], "duplicates");
  const auto expected_duplicates = std::stoul(expected.back());
  expected.resize(expected.size() - 2);

  std::set<std::string> processed;
  std::size_t duplicates = 0;
  Words effects;
  for (const auto& label : labels_of(destination(routes_.front().name).received_ids())) {
    if (processed.insert(label).second) {
      effects.push_back(label);
    } else {
      ++duplicates;
    }
  }
  EXPECT_EQ(joined(effects), joined(expected));
  EXPECT_EQ(duplicates, expected_duplicates);
}

// count unrouted 2     count mail failed 1
void Player::expect_count(const Words& words) {
  const auto status = must(operations_->status(clock_.wall(), Deadline::after(patience)));
  const auto expected = std::stoll(words.back());
  ASSERT_TRUE(is_number(words.back()));
  if (words.at(1) == "unrouted") {
    EXPECT_EQ(status.events.unrouted, expected);
    return;
  }
  const auto& state = words.at(2);
  const auto route = words.at(1) == "held" ? "" : words.at(1);
  std::int64_t found = 0;
  for (const auto& counts : status.routes) {
    if (counts.route != route) continue;
    if (state == "open") {
      found = counts.due + counts.delayed + counts.dispatched;
    } else if (state == "due") {
      found = counts.due;
    } else if (state == "delayed") {
      found = counts.delayed;
    } else if (state == "dispatched") {
      found = counts.dispatched;
    } else if (state == "completed") {
      found = counts.completed;
    } else if (state == "failed") {
      found = counts.failed;
    } else if (state == "discarded") {
      found = counts.discarded;
    } else if (state == "events") {
      found = counts.held;
    } else {
      refuse("'" + state + "' cannot be counted");
    }
  }
  EXPECT_EQ(found, expected);
}

Relay& Player::relay(const std::string& name) {
  auto& relay = relays_[name];
  if (!relay) {
    std::vector<RouteBinding> bindings;
    for (const auto& route : routes_) {
      auto publisher = route.job ? nullptr : destination(route.name).open();
      bindings.push_back({route, std::move(publisher)});
    }
    auto options = options_;
    options.name = name;
    relay = std::make_unique<Relay>(make_mortal_store(harness_->open_store(), death_),
                                    std::move(bindings), options, clock_, *random_, *observer_);
  }
  return *relay;
}

Destination& Player::destination(const std::string& route) {
  const auto name = split(route, ':').front();
  auto& found = destinations_[name];
  if (!found) found = std::make_unique<Destination>(world_.make_destination());
  return *found;
}

Words Player::labels_of(const std::vector<std::string>& event_ids) const {
  Words labels;
  for (const auto& id : event_ids)
    labels.push_back(labels_.at(id));
  return labels;
}

}  // namespace postrider::scenarios
