// Four messages of two orders, and a broker that fails twice: once it takes a message and its
// acknowledgement is lost, once the message never arrives. To the relay both look the same: no
// answer. Broker, faults and clock are those of the test kit, so an application can play the same
// in its own tests; database, relay and inbox are the real ones.

#include <algorithm>
#include <iostream>
#include <map>

#include <postrider/relay.hpp>
#include <postrider/sqlite.hpp>
#include <postrider/store/sqlite.hpp>
#include <postrider/testing/manual_clock.hpp>
#include <postrider/testing/memory_publisher.hpp>

#include "common/database.hpp"
#include "common/order_events.hpp"
#include "common/silent_observer.hpp"
#include "common/temporary_folder.hpp"
#include "common/text_table.hpp"

namespace {

using examples::Database;
using examples::order_aggregate;
using examples::print_table;
using examples::value_or_throw;
using postrider::testing::Fault;
using postrider::testing::make_flaky_publisher;
using postrider::testing::make_memory_publisher;

constexpr std::chrono::seconds retry_delay{1};

/// The four messages, in the order in which they are written: seq, and how people call it.
const std::vector<std::string> messages = {"1 order-1 order.placed", "2 order-2 order.placed",
                                           "3 order-1 order.paid", "4 order-1 order.shipped"};

void write_messages(Database& shop) {
  const postrider::SqliteOutbox outbox;
  value_or_throw(postrider::transaction(shop.handle(), [&] {
    const std::vector<postrider::NewEvent> events = {
        *make_event(examples::OrderPlaced{1, "lamp", 1, 2500}, order_aggregate(1)),
        *make_event(examples::OrderPlaced{2, "rug", 1, 9900}, order_aggregate(2)),
        *make_event(examples::OrderPaid{1}, order_aggregate(1)),
        *make_event(examples::OrderShipped{1}, order_aggregate(1)),
    };
    return outbox.add_all(shop.handle(), events);
  }));
}

// [flaky]
/// Attempts are counted from 1, over all messages.
std::unique_ptr<postrider::Publisher> flaky_broker(
    const std::shared_ptr<postrider::testing::Journal>& taken) {
  return make_flaky_publisher(make_memory_publisher(taken),
                              {{1, Fault::lost_ack},  // the broker has it, nobody hears of it
                               {4, Fault::down}});    // it never arrives
}
// [flaky]

std::unique_ptr<postrider::Relay> relay_to(std::unique_ptr<postrider::Publisher> broker,
                                           const std::string& database,
                                           const postrider::Clock& clock, postrider::Random& random,
                                           postrider::Observer& observer) {
  std::vector<postrider::RouteBinding> routes(1);
  routes[0].route.name = "broker";
  routes[0].route.destination = "memory:";
  routes[0].route.retry_delays = {retry_delay, retry_delay, retry_delay};
  routes[0].publisher = std::move(broker);
  return std::make_unique<postrider::Relay>(postrider::make_sqlite_store({database, {}}),
                                            std::move(routes), postrider::RelayOptions{}, clock,
                                            random, observer);
}

// [inbox]
/// The receiver: an effect for each event, and a receipt in the same transaction.
postrider::InboxResult receive(Database& receiver, const postrider::Event& event) {
  const postrider::SqliteInbox inbox;
  const postrider::InboxMessage message{"shipping", "shop", event.id.value().to_string(),
                                        content_hash(event)};
  return value_or_throw(postrider::transaction(receiver.handle(), [&] {
    return inbox.process(receiver.handle(), message, [&] {
      receiver.run("INSERT INTO effects (seq, order_id, type) VALUES (?, ?, ?)",
                   {event.seq.value(), event.aggregate->id, event.type});
    });
  }));
}
// [inbox]

/// What a pass did, as one column of the table.
class PassColumn {
 public:
  explicit PassColumn(const postrider::PassReport& report) {
    for (const auto& sent : report.sent)
      cells_[sent.seq.value()] = "confirmed";
    for (const auto& error : report.errors) {
      if (error.seq) cells_[error.seq->value()] = "no answer";
    }
  }
  void take(std::int64_t seq, postrider::InboxResult result) {
    taken_ += (taken_.empty() ? "" : ", ") + std::to_string(seq);
    const bool first = result == postrider::InboxResult::processed;
    effects_ += (effects_.empty() ? "" : ", ") +
                (first ? std::to_string(seq) : "skips " + std::to_string(seq));
  }
  [[nodiscard]] bool is_sent(std::int64_t seq) const {
    const auto cell = cells_.find(seq);
    return cell != cells_.end() && cell->second == "confirmed";
  }
  [[nodiscard]] std::string cell(std::int64_t seq) const {
    const auto cell = cells_.find(seq);
    return cell == cells_.end() ? "waits" : cell->second;
  }
  [[nodiscard]] const std::string& taken() const { return taken_; }
  [[nodiscard]] const std::string& effects() const { return effects_; }

 private:
  std::map<std::int64_t, std::string> cells_;
  std::string taken_;
  std::string effects_;
};

std::vector<PassColumn> play(Database& receiver, postrider::Relay& relay,
                             const postrider::testing::Journal& journal,
                             postrider::testing::ManualClock& clock) {
  constexpr std::size_t most_passes = 10;
  std::vector<PassColumn> passes;
  std::size_t seen = 0;
  for (std::size_t sent = 0; sent < messages.size() && passes.size() < most_passes;) {
    const auto report = value_or_throw(relay.run_once());
    sent += report.sent.size();
    auto& pass = passes.emplace_back(report);
    const auto accepted = journal.accepted();
    for (; seen < accepted.size(); ++seen)
      pass.take(accepted[seen]->seq.value(), receive(receiver, *accepted[seen]));
    clock.advance(retry_delay);
  }
  return passes;
}

void print(const std::vector<PassColumn>& passes) {
  std::vector<examples::TableRow> table(messages.size() + 3);
  table[0].emplace_back("message");
  for (std::size_t i = 0; i < messages.size(); ++i)
    table[i + 1].push_back(messages[i]);
  table[messages.size() + 1].emplace_back("the broker took");
  table[messages.size() + 2].emplace_back("the receiver did");
  std::vector<bool> done(messages.size(), false);
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    table[0].push_back("pass " + std::to_string(pass + 1));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto seq = static_cast<std::int64_t>(i) + 1;
      table[i + 1].push_back(done[i] ? "" : passes[pass].cell(seq));
      done[i] = done[i] || passes[pass].is_sent(seq);
    }
    table[messages.size() + 1].push_back(passes[pass].taken());
    table[messages.size() + 2].push_back(passes[pass].effects());
  }
  print_table(std::cout, table);
}

/// Every message once, and those of an order in the order of writing.
bool promises_are_kept(Database& receiver) {
  const auto effects = receiver.value(
      "SELECT group_concat(seq) FROM (SELECT seq FROM effects ORDER BY order_id, n)");
  return effects == "1,3,4,2";
}

}  // namespace

int main() {
  try {
    const examples::TemporaryFolder folder;
    examples::create_postrider_tables(folder.file("shop.db"));
    examples::create_postrider_tables(folder.file("receiver.db"));
    Database shop(folder.file("shop.db"));
    Database receiver(folder.file("receiver.db"));
    receiver.script(
        "CREATE TABLE effects (n INTEGER PRIMARY KEY, seq INTEGER, order_id TEXT, type TEXT)");
    write_messages(shop);

    const auto journal = std::make_shared<postrider::testing::Journal>();
    postrider::testing::ManualClock clock;
    const auto random = postrider::seeded_random(1);
    examples::SilentObserver observer;
    const auto relay =
        relay_to(flaky_broker(journal), folder.file("shop.db"), clock, *random, observer);

    std::cout << "The acknowledgement of attempt 1 is lost; attempt 4 never arrives.\n"
                 "A message without an answer is sent again after a second.\n\n";
    print(play(receiver, *relay, *journal, clock));
    const bool kept = promises_are_kept(receiver);
    std::cout << (kept ? "\nEach message has had its effect once, and nothing overtook.\n"
                       : "\nA promise was BROKEN.\n");
    return kept ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "flaky_broker: " << error.what() << '\n';
    return 70;
  }
}
