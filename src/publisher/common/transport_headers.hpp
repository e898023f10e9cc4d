#pragma once
/// \file
/// The headers that travel with a message on every broker that has headers.

#include <string_view>

#include <postrider/event.hpp>

namespace postrider::publisher {

inline constexpr std::string_view seq_header = "postrider-seq";
inline constexpr std::string_view aggregate_type_header = "postrider-aggregate-type";
inline constexpr std::string_view aggregate_id_header = "postrider-aggregate-id";

/// The event's own headers and the reserved ones above. Where an event brings a reserved name, ours
/// stands: a receiver that orders by seq must not be led astray by what a writer put there.
[[nodiscard]] Headers transport_headers(const Event& event);

}  // namespace postrider::publisher
