#pragma once
/// \file
/// Deliveries as people and scripts see them.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <postrider/listing.hpp>

#include "cli/console.hpp"

namespace postrider::cli {

[[nodiscard]] std::string deliveries_text(const std::vector<ListedDelivery>& deliveries,
                                          const Console& console);
[[nodiscard]] nlohmann::ordered_json deliveries_json(const std::vector<ListedDelivery>& deliveries);

[[nodiscard]] std::string delivery_text(const ListedDelivery& delivery, const Console& console);
[[nodiscard]] nlohmann::ordered_json delivery_json(const ListedDelivery& delivery);

}  // namespace postrider::cli
