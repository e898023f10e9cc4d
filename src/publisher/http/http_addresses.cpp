#include "publisher/http/http_addresses.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.hpp"

namespace postrider::http {
namespace {

constexpr std::size_t v4_at = 12;     // where an IPv4 address stands in a mapped one
constexpr unsigned mapped_bits = 96;  // its prefix
constexpr unsigned address_bits = 128;

// Sources: the special-purpose registries of IANA (RFC 6890), and what clouds serve at 169.254.
constexpr std::array<std::string_view, 25> not_public{
    "0.0.0.0/8",        // this network
    "10.0.0.0/8",       // private
    "100.64.0.0/10",    // shared with a carrier
    "127.0.0.0/8",      // loopback
    "169.254.0.0/16",   // link-local, metadata of clouds
    "172.16.0.0/12",    // private
    "192.0.0.0/24",     // protocol assignments
    "192.0.2.0/24",     // documentation
    "192.88.99.0/24",   // relays of 6to4
    "192.168.0.0/16",   // private
    "198.18.0.0/15",    // benchmarks
    "198.51.100.0/24",  // documentation
    "203.0.113.0/24",   // documentation
    "224.0.0.0/4",      // multicast
    "240.0.0.0/4",      // reserved, broadcast
    "::/128",           // unspecified
    "::1/128",          // loopback
    "64:ff9b:1::/48",   // local translation to IPv4
    "100::/64",         // discard
    "2001::/32",        // Teredo: the IPv4 address in it is disguised
    "2001:db8::/32",    // documentation
    "fc00::/7",         // unique local
    "fe80::/10",        // link-local
    "fec0::/10",        // site-local
    "ff00::/8",         // multicast
};

// Addresses of IPv6 that lead to the IPv4 address in them, and where it stands there.
struct Embedding {
  std::string_view range;
  std::size_t at;
};
constexpr std::array embeddings{Embedding{"::/96", v4_at}, Embedding{"64:ff9b::/96", v4_at},
                                Embedding{"2002::/16", 2}};

Address mapped(const void* v4) {
  Address address{};
  address[v4_at - 2] = address[v4_at - 1] = 0xff;
  std::memcpy(address.data() + v4_at, v4, 4);
  return address;
}

const std::vector<AddressRange>& denied_ranges() {
  static const auto ranges = [] {
    std::vector<AddressRange> made;
    for (const auto text : not_public) {
      const auto range = AddressRange::parse(text);
      POSTRIDER_ASSERT(range.has_value());
      made.push_back(*range);
    }
    return made;
  }();
  return ranges;
}

bool any_holds(const std::vector<AddressRange>& ranges, const Address& address) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const AddressRange& range) { return range.holds(address); });
}

std::optional<Address> embedded_in(const Address& address) {
  for (const auto& embedding : embeddings) {
    if (AddressRange::parse(embedding.range)->holds(address)) {
      return mapped(address.data() + embedding.at);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Address> address_of(const sockaddr& socket_address) {
  if (socket_address.sa_family == AF_INET) {
    return mapped(&reinterpret_cast<const sockaddr_in&>(socket_address).sin_addr);
  }
  if (socket_address.sa_family != AF_INET6) return std::nullopt;
  Address address{};
  std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(socket_address).sin6_addr,
              address.size());
  return address;
}

std::optional<Address> address_of(const std::string& host) {
  in_addr v4{};
  if (::inet_aton(host.c_str(), &v4) != 0) return mapped(&v4);
  Address address{};
  const auto without_zone = host.substr(0, host.find('%'));
  if (::inet_pton(AF_INET6, without_zone.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

std::optional<AddressRange> AddressRange::parse(std::string_view text) {
  const auto slash = text.find('/');
  const std::string name(text.substr(0, slash));
  AddressRange range;
  in_addr v4{};
  const bool is_v4 = ::inet_pton(AF_INET, name.c_str(), &v4) == 1;
  if (is_v4) {
    range.first_ = mapped(&v4);
  } else if (::inet_pton(AF_INET6, name.c_str(), range.first_.data()) != 1) {
    return std::nullopt;
  }
  if (slash == std::string_view::npos) return range;
  const auto length = text.substr(slash + 1);
  const unsigned most = is_v4 ? address_bits - mapped_bits : address_bits;
  unsigned bits = 0;
  const auto [rest, fault] = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (fault != std::errc() || rest != length.data() + length.size() || bits > most) {
    return std::nullopt;
  }
  range.bits_ = is_v4 ? bits + mapped_bits : bits;
  return range;
}

bool AddressRange::holds(const Address& address) const noexcept {
  for (unsigned i = 0; i < address.size() && i * 8 < bits_; ++i) {
    const unsigned counted = std::min(8U, bits_ - i * 8);
    const auto mask = static_cast<std::uint8_t>(0xff00U >> counted);
    if (((address[i] ^ first_[i]) & mask) != 0) return false;
  }
  return true;
}

Result<AddressGuard> AddressGuard::make(std::span<const std::string> allowed) {
  AddressGuard guard;
  for (const auto& text : allowed) {
    const auto range = AddressRange::parse(text);
    if (!range) {
      return Error{ErrorCode::config_invalid, Disposition::stop,
                   fmt::format("allow has '{}', which is no address. Write 10.1.2.3, 10.0.0.0/8 or "
                               "fd00::/8.",
                               text),
                   "http", ""};
    }
    guard.allowed_.push_back(*range);
  }
  return guard;
}

bool AddressGuard::allows(const Address& address) const {
  if (any_holds(allowed_, address)) return true;
  // Before the denied ranges: ::1 is in ::/96 as well, and 0.0.0.1 is not allowed by "::1".
  if (any_holds(denied_ranges(), address)) return false;
  const auto embedded = embedded_in(address);
  return !embedded || allows(*embedded);
}

}  // namespace postrider::http
