#include <postrider/consumer/amqp.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/bell.hpp"
#include "broker/amqp/amqp_limits.hpp"
#include "consumer/amqp/amqp_subscription.hpp"
#include "consumer/amqp/task_message.hpp"

namespace postrider {
namespace amqp {
namespace {

constexpr std::size_t most_queue_bytes = 255;
// A flood of what is no task, which needs no room, must not keep the worker from its own tickets.
constexpr std::size_t most_messages_per_poll = 256;

/// Requires: `options` is valid.
LinkSettings settings_of(const AmqpSourceOptions& options) {
  return {parse_url(options.url).value(),
          {options.ca_file, options.certificate_file, options.key_file},
          options.heartbeat,
          options.connect_timeout};
}

Error not_open() {
  return {ErrorCode::unavailable, Disposition::retry,
          "The source of tasks is not connected; nothing to do, it is opened again.", "amqp", ""};
}

void note_refused(std::vector<RefusedTasks>& refused, const std::string& reason) {
  const auto known = std::find_if(refused.begin(), refused.end(),
                                  [&](const RefusedTasks& each) { return each.reason == reason; });
  if (known != refused.end()) {
    ++known->count;
  } else {
    refused.push_back({reason, 1});
  }
}

class AmqpTaskSource final : public TaskSource {
 public:
  explicit AmqpTaskSource(AmqpSourceOptions options)
      : options_(std::move(options)), settings_(settings_of(options_)) {}

  TaskSourceTraits traits() const override { return {"amqp"}; }
  Result<void> open(std::size_t prefetch, Deadline deadline) override;
  Result<TicketBatch> poll(Deadline deadline) override;
  Result<void> acknowledge(std::span<const TicketTag> tags) override;
  Result<void> cancel(Deadline deadline) override;
  void close(Deadline deadline) noexcept override;
  void wake() noexcept override { bell_.ring(); }
  void cut() noexcept override {
    guard_.cut_for_good();
    bell_.ring();
  }

 private:
  [[nodiscard]] Result<TicketBatch> collect();
  [[nodiscard]] Result<void> judge(const ReceivedMessage& message, TicketBatch& batch);
  /// False when `wake` or the end of the patience ended the wait.
  [[nodiscard]] bool await_frames(Deadline deadline);
  /// Passes on what a call came to; after a failure the connection is gone.
  template <class T>
  [[nodiscard]] Result<T> checked(Result<T> result);

  const AmqpSourceOptions options_;
  const LinkSettings settings_;
  SocketGuard guard_;
  Bell bell_;
  std::unique_ptr<Subscription> subscription_;
  std::uint64_t connections_ = 0;  // opened so far; the number of the present one
  bool cancelled_ = false;
};

template <class T>
Result<T> AmqpTaskSource::checked(Result<T> result) {
  if (!result) subscription_.reset();
  return result;
}

Result<void> AmqpTaskSource::open(std::size_t prefetch, Deadline deadline) {
  POSTRIDER_ASSERT(prefetch > 0);
  subscription_.reset();
  cancelled_ = false;
  auto settings = settings_;
  settings.connect_timeout =
      std::clamp(deadline.remaining(), milliseconds(1), settings.connect_timeout);
  auto opened = Subscription::open(settings, options_.queue, prefetch, guard_);
  if (!opened) return std::move(opened).error();
  subscription_ = std::move(opened).value();
  ++connections_;
  return {};
}

Result<TicketBatch> AmqpTaskSource::poll(Deadline deadline) {
  for (;;) {
    if (!subscription_) return not_open();
    auto batch = checked(collect());
    if (!batch || !batch->tickets.empty() || !batch->refused.empty()) return batch;
    if (!await_frames(deadline)) return batch;
  }
}

Result<TicketBatch> AmqpTaskSource::collect() {
  TicketBatch batch;
  for (std::size_t i = 0; i < most_messages_per_poll; ++i) {
    const auto message = subscription_->next();
    if (!message) return message.error();
    if (!*message) break;
    if (cancelled_) continue;
    if (auto judged = judge(**message, batch); !judged) return std::move(judged).error();
  }
  subscription_->release_buffers();
  return batch;
}

Result<void> AmqpTaskSource::judge(const ReceivedMessage& message, TicketBatch& batch) {
  auto ticket =
      message.too_big ? Result<Ticket>(task_too_big()) : read_task(message.type, message.body);
  if (!ticket) {
    note_refused(batch.refused, ticket.error().message);
    return subscription_->reject(message.tag);
  }
  ticket->tag = {connections_, message.tag};
  ticket->redelivered = message.redelivered;
  batch.tickets.push_back(std::move(ticket).value());
  return {};
}

bool AmqpTaskSource::await_frames(Deadline deadline) {
  // rabbitmq-c sends heartbeats only inside its calls, and does so at half the interval.
  const auto patience = std::min(deadline.remaining(), options_.heartbeat / 4);
  std::array<pollfd, 2> waiting{pollfd{bell_.descriptor(), POLLIN, 0},
                                pollfd{subscription_->descriptor(), POLLIN, 0}};
  (void)::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
  const bool woken = (waiting[0].revents & POLLIN) != 0;
  if (woken) bell_.silence();
  return !woken && !deadline.passed();
}

Result<void> AmqpTaskSource::acknowledge(std::span<const TicketTag> tags) {
  if (!subscription_) return not_open();
  for (const auto& tag : tags) {
    if (tag.connection != connections_) continue;
    if (auto sent = checked(subscription_->acknowledge(tag.number)); !sent) return sent;
  }
  return {};
}

Result<void> AmqpTaskSource::cancel(Deadline deadline) {
  if (!subscription_ || std::exchange(cancelled_, true)) return {};
  return checked(subscription_->cancel(deadline.remaining()));
}

void AmqpTaskSource::close(Deadline deadline) noexcept {
  if (subscription_) subscription_->say_goodbye(deadline.remaining());
  subscription_.reset();
}

}  // namespace
}  // namespace amqp

std::vector<std::string> validate(const AmqpSourceOptions& options) {
  std::vector<std::string> faults;
  const auto address = amqp::parse_url(options.url);
  if (!address) faults.push_back(address.error().message);
  if (options.queue.empty() || options.queue.size() > amqp::most_queue_bytes) {
    faults.push_back(fmt::format("The name of RabbitMQ's queue has {} bytes; give 1 to {}.",
                                 options.queue.size(), amqp::most_queue_bytes));
  }
  if (address) {
    amqp::check_tls_files({options.ca_file, options.certificate_file, options.key_file},
                          address->tls, faults);
  }
  amqp::check_times(options.heartbeat, options.connect_timeout, faults);
  return faults;
}

std::unique_ptr<TaskSource> make_amqp_task_source(AmqpSourceOptions options) {
  return std::make_unique<amqp::AmqpTaskSource>(std::move(options));
}

}  // namespace postrider
