#include <postrider/publisher/amqp.hpp>
#include <postrider/route.hpp>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "broker/amqp/amqp_errors.hpp"
#include "broker/amqp/amqp_limits.hpp"
#include "broker/amqp/amqp_url.hpp"
#include "publisher/amqp/amqp_driver.hpp"
#include "publisher/amqp/amqp_message.hpp"
#include "publisher/amqp/mailbox.hpp"
#include "values/event_template.hpp"

namespace postrider {
namespace amqp {
namespace {

constexpr std::size_t most_exchange_bytes = 255;
// After a cut a call of rabbitmq-c returns at once; only a name resolution takes longer.
constexpr milliseconds cut_patience{250};

Outcome unroutable_outcome(Unroutable policy) {
  const auto& row = find_error(ErrorSource::broker, AMQP_NO_ROUTE);
  return policy == Unroutable::retry ? Outcome::refused(row.word, row.sentence)
                                     : Outcome::rejected(row.word, row.sentence);
}

Result<EventTemplate> parse_routing_key(const AmqpOptions& options) {
  return EventTemplate::parse("The routing key", options.routing_key);
}

/// Requires: `options` is valid.
ConnectionSettings settings_of(const AmqpOptions& options) {
  auto address = parse_url(options.url);
  return {{std::move(address).value(),
           {options.ca_file, options.certificate_file, options.key_file},
           options.heartbeat,
           options.connect_timeout},
          options.exchange};
}

/// An error that `submit` returns for as long as the options are wrong.
Error options_error(const std::vector<std::string>& faults) {
  std::string all;
  for (const auto& fault : faults)
    all += (all.empty() ? "" : " ") + fault;
  return {ErrorCode::config_invalid, Disposition::stop, all, "config", ""};
}

class AmqpPublisher final : public Publisher {
 public:
  explicit AmqpPublisher(AmqpOptions options)
      : options_(std::move(options)),
        faults_(validate(options_)),
        mailbox_(std::make_shared<Mailbox>(Mailbox::Limits{
            options_.window, 3 * options_.heartbeat, unroutable_outcome(options_.unroutable)})) {
    if (faults_.empty()) {
      routing_key_ = parse_routing_key(options_).value();
    }
  }
  ~AmqpPublisher() override { end_driver(Deadline::after(cut_patience)); }

  PublisherTraits traits() const override;
  Result<void> submit(std::span<const Message> messages, Deadline deadline) override;
  std::vector<MessageOutcome> poll(Deadline deadline) override {
    return mailbox_->collect(deadline);
  }
  void wake() noexcept override { mailbox_->wake(); }
  std::vector<MessageOutcome> close(Deadline deadline) override {
    end_driver(deadline);
    return mailbox_->clear();
  }

 private:
  void begin_driver();
  void end_driver(Deadline deadline);

  const AmqpOptions options_;
  const std::vector<std::string> faults_;
  EventTemplate routing_key_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<SocketGuard> guard_;
  std::uint64_t drivers_ = 0;  ///< begun so far
  std::thread thread_;
};

PublisherTraits AmqpPublisher::traits() const {
  PublisherTraits traits;
  traits.name = "amqp";
  traits.window = options_.window;
  traits.detects_unroutable = true;
  return traits;
}

void AmqpPublisher::begin_driver() {
  if (thread_.joinable()) return;
  const DriverNumber number(++drivers_);
  guard_ = std::make_shared<SocketGuard>();
  mailbox_->begin(number, guard_);
  thread_ = std::thread([number, settings = settings_of(options_), mailbox = mailbox_,
                         guard = guard_] { drive(number, settings, mailbox, guard); });
}

void AmqpPublisher::end_driver(Deadline deadline) {
  if (!thread_.joinable()) return;
  mailbox_->ask_to_end();
  if (!mailbox_->await_end(deadline)) {
    guard_->cut_for_good();
    if (!mailbox_->await_end_or_disown(Deadline::after(cut_patience))) {
      return thread_.detach();  // In a name resolution; it shares all that it needs.
    }
  }
  thread_.join();
}

Result<void> AmqpPublisher::submit(std::span<const Message> messages, Deadline deadline) {
  if (!faults_.empty()) return options_error(faults_);
  begin_driver();
  for (;;) {
    if (auto link = mailbox_->await_link(deadline); !link) return link;
    const std::size_t frame_max = mailbox_->frame_max();
    const Instant now = system_clock().steady();
    std::vector<OutgoingMessage> outgoing;
    std::vector<MessageOutcome> unsendable;
    for (const auto& message : messages) {
      auto prepared = prepare(message, routing_key_, frame_max, now);
      if (prepared) {
        outgoing.push_back(std::move(prepared).value());
      } else {
        unsendable.push_back({message.attempt, outcome_of(prepared.error())});
      }
    }
    if (!mailbox_->enqueue(outgoing)) continue;
    mailbox_->report(std::move(unsendable));
    return {};
  }
}

void check_names(const AmqpOptions& options, std::vector<std::string>& faults) {
  if (options.exchange.size() > most_exchange_bytes) {
    faults.push_back(fmt::format("exchange has {} bytes; AMQP allows {}. Choose a shorter name.",
                                 options.exchange.size(), most_exchange_bytes));
  }
  if (const auto key = parse_routing_key(options); !key) {
    faults.push_back(key.error().message);
  }
}

void check_window(const AmqpOptions& options, std::vector<std::string>& faults) {
  if (options.window >= 1 && options.window <= Route::most_window) return;
  faults.push_back(fmt::format("window is {}; set 1 to {}.", options.window, Route::most_window));
}

}  // namespace
}  // namespace amqp

std::vector<std::string> validate(const AmqpOptions& options) {
  std::vector<std::string> faults;
  const auto address = amqp::parse_url(options.url);
  if (!address) faults.push_back(address.error().message);
  amqp::check_names(options, faults);
  if (address) {
    amqp::check_tls_files({options.ca_file, options.certificate_file, options.key_file},
                          address->tls, faults);
  }
  amqp::check_window(options, faults);
  amqp::check_times(options.heartbeat, options.connect_timeout, faults);
  return faults;
}

std::unique_ptr<Publisher> make_amqp_publisher(AmqpOptions options) {
  return std::make_unique<amqp::AmqpPublisher>(std::move(options));
}

}  // namespace postrider
