#include "demo/story.hpp"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <thread>

#include "delivery/packing_desk.hpp"

namespace examples::demo {
namespace {

using postrider::OutcomeKind;
using postrider::PassReport;
using postrider::testing::Fault;

constexpr postrider::milliseconds answer_patience{30'000};
constexpr postrider::milliseconds most_wait{2000};
constexpr postrider::milliseconds clock_margin{50};  // the database judges what is due
constexpr auto lamp = R"({"item":"lamp","quantity":1})";
constexpr auto rug = R"({"item":"rug","quantity":2})";
constexpr auto pianos = R"({"item":"piano","quantity":3})";

volatile std::sig_atomic_t interrupted = 0;

void expect_no_interruption() {
  if (interrupted != 0) throw Interrupted();
}

void say(const std::string& line) {
  expect_no_interruption();
  std::cout << line << std::endl;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

/// A port on which nobody listens now, and the delivery service will.
int reserve_port() {
  return HttpServer({}, [](const HttpRequest&) { return HttpResponse(); }).port();
}

bool is_sent(const PassReport& pass, std::int64_t seq) {
  return std::any_of(pass.sent.begin(), pass.sent.end(),
                     [&](const auto& sent) { return sent.seq.value() == seq; });
}

const postrider::PassError* error_of(const PassReport& pass, std::int64_t seq) {
  const auto found = std::find_if(pass.errors.begin(), pass.errors.end(), [&](const auto& error) {
    return error.seq && error.seq->value() == seq;
  });
  return found == pass.errors.end() ? nullptr : &*found;
}

/// What became of one event in a pass, in plain words. `before` is how many copies of it the
/// receiver had, `copies` what it has made of each until now.
std::string fate_of(const Written& event, const PassReport& pass, std::size_t before,
                    const std::vector<std::string>& copies) {
  if (is_sent(pass, event.seq)) {
    if (before == 0) return "delivered";
    return copies.back() == "duplicate"
               ? "delivered again; its id is known there, and the copy is skipped"
               : "delivered again";
  }
  const auto* const error = error_of(pass, event.seq);
  if (error == nullptr) return "waits behind the one before it of the same order";
  if (error->outcome == OutcomeKind::unavailable) return "waits: nobody listens there";
  if (error->outcome != OutcomeKind::unknown) return std::string(to_string(error->outcome));
  return copies.size() > before ? "no answer, will be sent again (in truth it has arrived)"
                                : "no answer, will be sent again (in truth it never arrived)";
}

/// The earliest copy of each, in order of arrival.
std::string without_repeats(const std::string& list) {
  std::vector<std::string> seen;
  std::string result;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find(", ", begin), list.size());
    const auto word = list.substr(begin, end - begin);
    if (std::find(seen.begin(), seen.end(), word) == seen.end()) {
      seen.push_back(word);
      result += (result.empty() ? "" : ", ") + word;
    }
    begin = end + 2;
  }
  return result;
}

/// The promises, each with a verdict.
class Verdicts {
 public:
  void add(const std::string& promise, bool kept, const std::string& otherwise) {
    say("   " + padded(promise, 62) + (kept ? "kept" : "BROKEN: " + otherwise));
    all_kept_ = all_kept_ && kept;
  }
  [[nodiscard]] bool all_kept() const { return all_kept_; }

 private:
  bool all_kept_ = true;
};

template <class Condition>
bool holds_for_all(const std::vector<OrderBooks>& orders, Condition condition) {
  return std::all_of(orders.begin(), orders.end(), condition);
}

}  // namespace

void listen_to_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A reader that has seen enough (`demo | head`) is no reason to leave anything behind.
  std::signal(SIGPIPE, SIG_IGN);
}

Story::Story(bool with_inbox) : with_inbox_(with_inbox), delivery_port_(reserve_port()) {
  shop_ = std::make_unique<Service>("shop", std::vector<std::string>{"--database", shop_path_},
                                    folder_.file("shop.log"));
  // Its tables, so that both books can be read from the start. The service itself comes later.
  const delivery::PackingDesk desk(delivery_path_);
  books_ = std::make_unique<Books>(shop_path_, delivery_path_);
}

bool Story::tell() {
  say("A shop and a delivery service, two processes, each with a database of its own. This "
      "program\n"
      "plays the customers, and it is the relay between the two.");
  orders_come_in_during_an_outage();
  the_relay_finds_nobody();
  an_acknowledgement_is_lost();
  the_receiver_dies_and_the_message_comes_again();
  a_message_never_arrives();
  the_message_is_sent_again();
  return compare_the_books();
}

void Story::orders_come_in_during_an_outage() {
  say("\n1. Orders come in. The delivery service is not running.");
  order("/orders", lamp, "order 1: a lamp", 201);
  order("/orders", rug, "order 2: two rugs", 201);
  order("/orders", rug, "the same request again: order 2, and no second one", 201);
  order("/orders", pianos, "one piano is left: order and event are rolled back", 409);
  order("/orders/1/payment", "", "order 1 is paid", 200);
  say("   The shop answers as always: it talks to its database and to nobody else.\n"
      "   Events that wait in its table: " +
      std::to_string(books_->waiting().size()));
}

void Story::the_relay_finds_nobody() {
  say("\n2. The relay runs. An outage is no fault of a message.");
  run_relay();
  outage_was_free_ = books_->attempts() == 0;
  say("   Attempts that were used up: " + std::to_string(books_->attempts()));
}

void Story::an_acknowledgement_is_lost() {
  say("\n3. The delivery service starts. The first acknowledgement is lost on its way back.");
  start_delivery();
  run_relay({{1, Fault::lost_ack}});
}

void Story::the_receiver_dies_and_the_message_comes_again() {
  say("\n4. The delivery service is killed (kill -9) and started again. The relay runs.");
  delivery_->kill();
  start_delivery();
  run_relay();
}

void Story::a_message_never_arrives() {
  say("\n5. More happens. This time a message is lost on its way there.");
  order("/orders/1/shipment", "", "order 1 is shipped", 200);
  order("/orders/2/payment", "", "order 2 is paid", 200);
  run_relay({{1, Fault::down}});
}

void Story::the_message_is_sent_again() {
  say("\n6. The relay runs again.");
  run_relay();
}

bool Story::compare_the_books() {
  say("\n7. What the two databases hold:");
  const auto orders = books_->orders();
  std::vector<TableRow> table{
      {"order", "events written", "copies that arrived", "effects", "parcels"}};
  for (const auto& each : orders) {
    table.push_back(
        {each.order, each.written, each.arrived, each.effects, std::to_string(each.parcels)});
  }
  print_table(std::cout, table);

  say("\n8. What was promised:");
  Verdicts verdicts;
  verdicts.add("The shop answered as always while nobody took its events.",
               shop_answered_as_always_, "see the answers in step 1");
  verdicts.add("The outage used up no attempt.", outage_was_free_, "see step 2");
  verdicts.add("A repeated request placed no second order.", orders.size() == 2,
               std::to_string(orders.size()) + " orders");
  verdicts.add("What was rolled back was never announced.", !books_->announced_what_is_not_there(),
               "an event without an order");
  verdicts.add(
      "Every committed event arrived; nothing waits any more.",
      books_->waiting().empty() && holds_for_all(orders,
                                                 [](const auto& each) {
                                                   return without_repeats(each.arrived).size() ==
                                                          each.written.size();
                                                 }),
      "see the table");
  verdicts.add(
      "Nothing overtook: each order's events came in their order.",
      holds_for_all(orders,
                    [](const auto& each) { return without_repeats(each.arrived) == each.written; }),
      "see the table");
  verdicts.add(
      "One copy came twice, and each event had its effect once.",
      books_->repeats() == 1 &&
          holds_for_all(orders, [](const auto& each) { return each.effects == each.written; }),
      "a copy had its effect again");
  verdicts.add("Each order has one parcel.",
               holds_for_all(orders, [](const auto& each) { return each.parcels == 1; }),
               "an order has several");
  return verdicts.all_kept();
}

void Story::start_delivery() {
  std::vector<std::string> arguments{"--database", delivery_path_, "--port",
                                     std::to_string(delivery_port_)};
  if (!with_inbox_) arguments.emplace_back("--without-inbox");
  delivery_ = std::make_unique<Service>("delivery", arguments, folder_.file("delivery.log"));
}

void Story::order(const std::string& target, const std::string& body, const std::string& told,
                  int expected_status) {
  HttpRequest request{"POST", target, {{"content-type", "application/json"}}, body};
  // A customer's browser makes one key for one click, and repeats it with the request.
  request.headers["idempotency-key"] = target + body;
  const auto answer = value_or_throw(
      send_http(shop_->port(), request, postrider::Deadline::after(answer_patience)));
  shop_answered_as_always_ = shop_answered_as_always_ && answer.status == expected_status;
  say("   " + padded("POST " + target + " " + body, 46) + std::to_string(answer.status) + "  " +
      told);
}

void Story::run_relay(postrider::testing::FaultScript faults) {
  const auto events = books_->waiting();
  std::vector<std::size_t> before;
  for (const auto& event : events)
    before.push_back(books_->copies_of(event.id).size());
  const auto pass = run_relay_once({shop_path_, delivery_port_, std::move(faults)});
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto& event = events[i];
    say("   " + std::to_string(event.seq) + "  order " + event.order + "  " +
        padded(event.type, 15) + fate_of(event, pass, before[i], books_->copies_of(event.id)));
  }
  if (pass.next_due_in)
    std::this_thread::sleep_for(std::min(*pass.next_due_in + clock_margin, most_wait));
}

}  // namespace examples::demo
