#pragma once
/// \file
/// Which addresses a webhook may be sent to. What a name says when it is configured proves nothing:
/// names change, and an address has many spellings. So the address that a socket is about to be
/// connected to is what is judged (CURLOPT_OPENSOCKETFUNCTION).

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/result.hpp>

namespace postrider::http {

/// IPv6, or IPv4 as ::ffff:a.b.c.d: two spellings of one address are equal.
using Address = std::array<std::uint8_t, 16>;

/// Nothing for families other than IPv4 and IPv6.
[[nodiscard]] std::optional<Address> address_of(const sockaddr& socket_address);
/// An address as a URL can spell it: also 2130706433, 0x7f.1 and 0177.0.0.1. Nothing for a name.
[[nodiscard]] std::optional<Address> address_of(const std::string& host);

class AddressRange {
 public:
  /// "10.0.0.0/8", "::1"; a range's bits behind its length do not count.
  [[nodiscard]] static std::optional<AddressRange> parse(std::string_view text);
  [[nodiscard]] bool holds(const Address& address) const noexcept;

 private:
  Address first_{};
  unsigned bits_ = 128;
};

/// Refuses everything that is not public, except what is allowed by name.
class AddressGuard {
 public:
  /// Errors: `config_invalid`, with the text that is no range.
  [[nodiscard]] static Result<AddressGuard> make(std::span<const std::string> allowed);
  [[nodiscard]] bool allows(const Address& address) const;

 private:
  std::vector<AddressRange> allowed_;
};

}  // namespace postrider::http
