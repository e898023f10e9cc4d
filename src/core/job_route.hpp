#pragma once
/// \file
/// Makes the job that an event is on a job route. No lane, no attempt: it becomes a row at once,
/// and a worker takes it from there.

#include <string>

#include <postrider/event.hpp>
#include <postrider/route.hpp>
#include <postrider/store_values.hpp>

#include "values/event_template.hpp"

namespace postrider::core {

class JobRoute {
 public:
  /// Requires: `route` is a job route and passes `validate`.
  explicit JobRoute(const Route& route);

  /// The delivery of `event`, due at once, without its partition: policy and keys are filled in. A
  /// key that is too long makes it fail for good, with the reason. At `JobHooks::most_depth` it has
  /// no hooks.
  [[nodiscard]] NewDelivery delivery_of(const Event& event, DeliveryId id) const;

  /// The route has hooks, and `event` is too deep in a chain of them to get them.
  [[nodiscard]] bool drops_hooks(const Event& event) const;

 private:
  NewDelivery pattern_;
  EventTemplate serial_key_;
  EventTemplate unique_key_;
};

/// Makes `delivery` one that has failed before any attempt.
void fail(NewDelivery& delivery, std::string_view code, std::string_view detail);

}  // namespace postrider::core
