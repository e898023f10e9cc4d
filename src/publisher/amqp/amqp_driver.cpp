#include "publisher/amqp/amqp_driver.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "broker/amqp/amqp_errors.hpp"

namespace postrider::amqp {
namespace {

// Enough for an answer across the world. The broker needs no goodbye to keep what it confirmed.
constexpr milliseconds goodbye_patience{1'000};

class Driver {
 public:
  Driver(DriverNumber number, const ConnectionSettings& settings, Mailbox& mailbox,
         SocketGuard& guard)
      : number_(number), settings_(settings), mailbox_(mailbox), guard_(guard) {}

  void run();

 private:
  void open_link();
  [[nodiscard]] bool read_all();
  [[nodiscard]] bool obey(const BrokerWord& word);
  void write_all();
  void lose_connection(std::string_view why);
  void lose_channel(int reply_code);
  void end();

  const DriverNumber number_;
  const ConnectionSettings& settings_;
  Mailbox& mailbox_;
  SocketGuard& guard_;
  std::unique_ptr<Connection> connection_;
  bool channel_open_ = false;
};

void Driver::run() {
  for (;;) {
    const auto orders = mailbox_.begin_turn(number_);
    if (orders.end) break;
    if (orders.open_link) open_link();
    if (connection_ && read_all() && channel_open_) write_all();
    if (connection_) connection_->release_buffers();
    // rabbitmq-c sends heartbeats only inside its calls, and does so at half the interval.
    mailbox_.rest(connection_ ? connection_->descriptor() : -1, settings_.link.heartbeat / 4);
  }
  end();
}

void Driver::open_link() {
  // Asked for although one is open: its answers stay away, so it is replaced.
  if (channel_open_) lose_connection("Earlier messages were never answered on this connection.");
  mailbox_.link_opening();
  if (!connection_) {
    auto opened = Connection::open(settings_, guard_);
    if (!opened) return mailbox_.link_failed(number_, std::move(opened).error());
    connection_ = std::move(opened).value();
  }
  if (auto channel = connection_->open_channel(); !channel) {
    if (!connection_->usable()) connection_.reset();
    return mailbox_.link_failed(number_, std::move(channel).error());
  }
  channel_open_ = mailbox_.link_opened(number_, connection_->frame_max());
  if (!channel_open_) connection_.reset();
}

/// False when the connection is gone.
bool Driver::read_all() {
  for (;;) {
    const auto word = connection_->read();
    if (!word) {
      lose_connection(word.error().message);
      return false;
    }
    if (word->kind == BrokerWord::Kind::none) return true;
    if (!obey(*word)) return false;
  }
}

/// False when the connection is gone.
bool Driver::obey(const BrokerWord& word) {
  using Kind = BrokerWord::Kind;
  bool possible = true;
  switch (word.kind) {
    case Kind::none:
      break;
    case Kind::acked:
      possible = mailbox_.settle(word.tag, word.multiple, true);
      break;
    case Kind::nacked:
      possible = mailbox_.settle(word.tag, word.multiple, false);
      break;
    case Kind::returned:
      possible = mailbox_.mark_returned(word.event);
      break;
    case Kind::blocked:
      mailbox_.set_blocked(true);
      break;
    case Kind::unblocked:
      mailbox_.set_blocked(false);
      break;
    case Kind::channel_closed:
      lose_channel(word.reply_code);
      break;
    case Kind::connection_closed:
      lose_connection(find_error(ErrorSource::broker, word.reply_code).sentence);
      return false;
  }
  if (!possible) lose_connection("RabbitMQ answered a message that was never sent to it.");
  return possible;
}

void Driver::write_all() {
  while (const auto message = mailbox_.next_to_write()) {
    if (const auto wrote = connection_->publish(*message); !wrote) {
      return lose_connection(wrote.error().message);
    }
    mailbox_.written();
    // "Blocked" should be heard before the next message, not behind the whole queue.
    if (connection_->readable() && (!read_all() || !channel_open_)) return;
  }
}

void Driver::lose_connection(std::string_view why) {
  connection_.reset();
  channel_open_ = false;
  mailbox_.link_lost(why, Outcome::unavailable("connection_lost", why));
}

void Driver::lose_channel(int reply_code) {
  const auto& row = find_error(ErrorSource::broker, reply_code);
  const auto detail =
      fmt::format("RabbitMQ closed the channel with {}. {}", reply_code, row.sentence);
  // What was not written cannot be what the broker rejects, but it can lack the same exchange.
  const auto queued = row.disposition == Disposition::reject
                          ? Outcome::unavailable("channel_lost", detail)
                          : Outcome::unavailable(row.word, row.sentence);
  channel_open_ = false;
  mailbox_.channel_closed(detail, native_outcome(ErrorSource::broker, reply_code), queued);
}

void Driver::end() {
  if (connection_ && connection_->usable()) connection_->say_goodbye(goodbye_patience);
  connection_.reset();
  mailbox_.ended(number_);
}

}  // namespace

void drive(DriverNumber number, const ConnectionSettings& settings,
           const std::shared_ptr<Mailbox>& mailbox, const std::shared_ptr<SocketGuard>& guard) {
  Driver(number, settings, *mailbox, *guard).run();
}

}  // namespace postrider::amqp
