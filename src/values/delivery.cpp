#include <postrider/delivery.hpp>

namespace postrider {

std::string_view to_string(DeliveryStatus status) noexcept {
  switch (status) {
    case DeliveryStatus::held:
      return "held";
    case DeliveryStatus::pending:
      return "pending";
    case DeliveryStatus::dispatched:
      return "dispatched";
    case DeliveryStatus::completed:
      return "completed";
    case DeliveryStatus::failed:
      return "failed";
    case DeliveryStatus::discarded:
      return "discarded";
    case DeliveryStatus::cancelled:
      return "cancelled";
  }
  return "pending";
}

std::optional<DeliveryStatus> parse_delivery_status(std::string_view text) noexcept {
  for (const auto status : all_delivery_statuses()) {
    if (to_string(status) == text) return status;
  }
  return std::nullopt;
}

const std::vector<DeliveryStatus>& all_delivery_statuses() {
  static const std::vector<DeliveryStatus> all = {
      DeliveryStatus::held,      DeliveryStatus::pending, DeliveryStatus::dispatched,
      DeliveryStatus::completed, DeliveryStatus::failed,  DeliveryStatus::discarded,
      DeliveryStatus::cancelled};
  return all;
}

}  // namespace postrider
