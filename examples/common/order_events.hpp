#pragma once
/// \file
/// What the shop tells other services: the contract between the two sides. No name and no address
/// of a customer is in it: an event is copied to every receiver and kept.

#include <cstdint>
#include <string>

#include <postrider/typed_event.hpp>

namespace examples {

// [events]
struct OrderPlaced {
  std::int64_t orderId = 0;
  std::string item;
  std::int64_t quantity = 0;
  std::int64_t totalCents = 0;
};
POSTRIDER_EVENT(OrderPlaced, "order.placed", orderId, item, quantity, totalCents)

struct OrderPaid {
  std::int64_t orderId = 0;
};
POSTRIDER_EVENT(OrderPaid, "order.paid", orderId)

struct OrderShipped {
  std::int64_t orderId = 0;
};
POSTRIDER_EVENT(OrderShipped, "order.shipped", orderId)
// [events]

/// The events of one order leave in the order of their commits.
[[nodiscard]] inline postrider::Aggregate order_aggregate(std::int64_t order_id) {
  return {"order", std::to_string(order_id)};
}

}  // namespace examples
