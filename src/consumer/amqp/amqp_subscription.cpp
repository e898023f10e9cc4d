#include "consumer/amqp/amqp_subscription.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "consumer/amqp/task_message.hpp"

namespace postrider::amqp {
namespace {

constexpr std::string_view consumer_tag = "postrider";

}  // namespace

Result<std::unique_ptr<Subscription>> Subscription::open(const LinkSettings& settings,
                                                         const std::string& queue,
                                                         std::size_t prefetch, SocketGuard& guard) {
  auto link = Link::open(settings, guard);
  if (!link) return std::move(link).error();
  std::unique_ptr<Subscription> opened(new Subscription(std::move(link).value()));
  if (auto begun = opened->begin(queue, prefetch); !begun) return std::move(begun).error();
  return opened;
}

Result<void> Subscription::begin(const std::string& queue, std::size_t prefetch) {
  if (auto opened = link_->open_channel(); !opened) return opened;
  const auto count = static_cast<std::uint16_t>(
      std::min<std::size_t>(prefetch, std::numeric_limits<std::uint16_t>::max()));
  amqp_basic_qos(link_->state(), channel, /*prefetch_size=*/0, count, /*global=*/0);
  if (auto bounded = link_->last_answer(ErrorSource::consumer); !bounded) return bounded;
  amqp_basic_consume(link_->state(), channel, bytes_of(queue), bytes_of(consumer_tag),
                     /*no_local=*/0, /*no_ack=*/0, /*exclusive=*/0, amqp_empty_table);
  return link_->last_answer(ErrorSource::consumer);
}

Result<std::optional<ReceivedMessage>> Subscription::next() {
  for (;;) {
    const auto frame = link_->next_frame();
    if (!frame) return frame.error();
    if (!*frame) return std::optional<ReceivedMessage>();
    auto message = understand(**frame);
    if (!message || *message) return message;
  }
}

Result<std::optional<ReceivedMessage>> Subscription::understand(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) {
    if (auto understood = understand_method(frame.payload.method); !understood) {
      return std::move(understood).error();
    }
  } else if (frame.frame_type == AMQP_FRAME_HEADER && announced_) {
    begin_body(frame);
  } else if (frame.frame_type == AMQP_FRAME_BODY && has_header_) {
    add_to_body(frame.payload.body_fragment);
  }
  if (!is_complete()) return std::optional<ReceivedMessage>();
  announced_ = false;
  has_header_ = false;
  return std::optional<ReceivedMessage>(std::exchange(message_, {}));
}

Result<void> Subscription::understand_method(const amqp_method_t& method) {
  if (const auto closure = link_->closure_of(method)) {
    return native_error(ErrorSource::consumer, closure->reply_code);
  }
  if (method.id == AMQP_BASIC_CANCEL_METHOD) {  // the queue was deleted, or has moved
    return native_error(ErrorSource::consumer, AMQP_NOT_FOUND);
  }
  if (method.id != AMQP_BASIC_DELIVER_METHOD) return {};
  const auto* deliver = static_cast<amqp_basic_deliver_t*>(method.decoded);
  message_ = {};
  message_.tag = deliver->delivery_tag;
  message_.redelivered = deliver->redelivered != 0;
  announced_ = true;
  return {};
}

void Subscription::begin_body(const amqp_frame_t& frame) {
  const auto& header = frame.payload.properties;
  has_header_ = true;
  missing_ = header.body_size;
  message_.too_big = header.body_size > most_task_bytes;
  const auto* properties = static_cast<const amqp_basic_properties_t*>(header.decoded);
  if (header.class_id == AMQP_BASIC_CLASS && (properties->_flags & AMQP_BASIC_TYPE_FLAG) != 0) {
    message_.type = text_of(properties->type);
  }
}

void Subscription::add_to_body(const amqp_bytes_t& fragment) {
  missing_ -= std::min<std::uint64_t>(missing_, fragment.len);
  if (!message_.too_big) message_.body += text_of(fragment);
}

Result<void> Subscription::acknowledge(std::uint64_t tag) {
  return sent(amqp_basic_ack(link_->state(), channel, tag, /*multiple=*/0));
}

Result<void> Subscription::reject(std::uint64_t tag) {
  return sent(amqp_basic_reject(link_->state(), channel, tag, /*requeue=*/0));
}

Result<void> Subscription::cancel(milliseconds patience) {
  auto limit = timeval_of(std::max(patience, milliseconds(1)));
  amqp_set_rpc_timeout(link_->state(), &limit);
  amqp_basic_cancel(link_->state(), channel, bytes_of(consumer_tag));
  return link_->last_answer(ErrorSource::consumer);
}

Result<void> Subscription::sent(int status) {
  if (status != AMQP_STATUS_OK) return link_->broken(status);
  return {};
}

}  // namespace postrider::amqp
