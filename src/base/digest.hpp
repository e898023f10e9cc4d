#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace postrider {

/// MD5 of the concatenation of `parts`. Spreads keys over slots as every database can; no security
/// rests on it. Source: RFC 1321.
[[nodiscard]] std::array<std::uint8_t, 16> md5(std::initializer_list<std::string_view> parts);

/// SHA-256 of the concatenation of `parts`. Source: FIPS 180-4.
[[nodiscard]] std::array<std::uint8_t, 32> sha256(std::initializer_list<std::string_view> parts);

/// HMAC-SHA-256 of the concatenation of `parts`. Source: RFC 2104.
[[nodiscard]] std::array<std::uint8_t, 32> hmac_sha256(
    std::string_view key, std::initializer_list<std::string_view> parts);

/// Compares secrets: the time that it takes tells the length and nothing else.
[[nodiscard]] bool equal_in_constant_time(std::string_view one, std::string_view other) noexcept;

}  // namespace postrider
