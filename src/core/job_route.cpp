#include "core/job_route.hpp"

#include <postrider/outcome.hpp>

#include "base/utf8.hpp"
#include "values/job_hooks.hpp"

namespace postrider::core {
namespace {

// Without a part, or empty, it is no key: such a job waits for nobody, as a delivery of an event
// without an aggregate does.
std::string fill_in(const EventTemplate& key, const Event& event) {
  return key.has_parts(event) ? key.render(event).value() : std::string();
}

std::string too_long(std::string_view name, const std::string& key) {
  return std::string(name) + " has " + std::to_string(key.size()) + " bytes and may have " +
         std::to_string(JobPolicy::most_key_bytes) + "; shorten the template or what fills it";
}

}  // namespace

JobRoute::JobRoute(const Route& route)
    : serial_key_(EventTemplate::parse("serial_key", route.job->serial_key).value()),
      unique_key_(EventTemplate::parse("unique_key", route.job->unique_key).value()) {
  pattern_.route = route.name;
  pattern_.retry_delays = route.retry_delays;
  pattern_.timeout = route.timeout;
  pattern_.on_failed = route.on_failed;
  pattern_.job =
      NewJob{*route.job, route.destination.empty() ? JobTransport::database : JobTransport::broker};
}

NewDelivery JobRoute::delivery_of(const Event& event, DeliveryId id) const {
  auto delivery = pattern_;
  delivery.id = id;
  delivery.event_seq = event.seq;
  delivery.event_id = event.id;
  auto& policy = delivery.job->policy;
  if (drops_hooks(event)) policy.hooks = {};
  policy.serial_key = fill_in(serial_key_, event);
  policy.unique_key = fill_in(unique_key_, event);
  for (auto* key : {&policy.serial_key, &policy.unique_key}) {
    if (key->size() <= JobPolicy::most_key_bytes) continue;
    fail(delivery, job_code::key_too_long,
         too_long(key == &policy.serial_key ? "serial_key" : "unique_key", *key));
    key->clear();
  }
  return delivery;
}

bool JobRoute::drops_hooks(const Event& event) const {
  return !pattern_.job->policy.hooks.empty() && hook_depth(event.headers) >= JobHooks::most_depth;
}

void fail(NewDelivery& delivery, std::string_view code, std::string_view detail) {
  delivery.status = DeliveryStatus::failed;
  delivery.failure_code = code;
  delivery.failure_detail = clean_text(detail, Outcome::detail_bytes);
}

}  // namespace postrider::core
