#pragma once
/// \file
/// A fingerprint of what an event says: the same for the event and every copy of it, on both sides.

#include <array>
#include <cstdint>
#include <string>

#include <postrider/event.hpp>

namespace postrider {

/// SHA-256.
struct ContentHash {
  std::array<std::uint8_t, 32> bytes{};
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};

/// Over type, aggregate, payload, content type and headers; not over id, version or times, which
/// differ between two requests that mean the same.
///
/// Format: each part is its number of bytes in decimal, a colon, and its bytes; an absent aggregate
/// is "-". Parts in order: type, aggregate type, aggregate id, content type, number of headers,
/// name and value of each header by name, payload.
[[nodiscard]] ContentHash content_hash(const NewEvent& event);
[[nodiscard]] ContentHash content_hash(const Event& event);

/// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string to_string(const ContentHash& hash);

}  // namespace postrider
