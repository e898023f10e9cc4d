#include "store/mariadb/mariadb_url.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace postrider::store::mariadb {
namespace {

Error unusable(const std::string& what) {
  return {ErrorCode::config_invalid, Disposition::stop,
          "the store's URL " + what +
              ". Write mariadb://USER[:PASSWORD]@HOST[:PORT]/DATABASE with %XX for characters that "
              "have a meaning.",
          "mariadb", ""};
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

/// Nothing for a broken escape, and for NUL, which would cut the value in the client library.
std::optional<std::string> decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low || (*high == 0 && *low == 0)) return std::nullopt;
    plain += static_cast<char>(*high << 4U | *low);
    i += 2;
  }
  return plain;
}

/// Cuts what stands before `separator` off `rest`; all of it when there is none.
std::string_view cut(std::string_view& rest, char separator) {
  const auto at = rest.find(separator);
  const auto part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return part;
}

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

class Parser {
 public:
  Result<Address> parse(std::string_view url) {
    for (const std::string_view scheme : {"mariadb://", "mysql://"}) {
      if (url.starts_with(scheme)) rest_ = url.substr(scheme.size());
    }
    if (rest_.empty()) return unusable("has no server");
    auto before_query = cut(rest_, '?');
    const auto authority = cut(before_query, '/');
    if (auto done = take_login(authority); !done) return done.error();
    if (!decode(before_query, address_.database)) return unusable("has a broken % in its database");
    if (address_.database.empty()) return unusable("names no database");
    address_.tls = !is_this_machine(address_.host);
    while (!rest_.empty()) {
      auto option = cut(rest_, '&');
      const auto name = cut(option, '=');
      if (auto done = take_option(name, option); !done) return done.error();
    }
    if (address_.host.empty() && address_.socket.empty()) return unusable("has no host");
    return std::move(address_);
  }

 private:
  static bool decode(std::string_view text, std::string& into) {
    auto plain = decoded(text);
    if (!plain) return false;
    into = std::move(*plain);
    return true;
  }

  Result<void> take_login(std::string_view authority) {
    const auto at = authority.rfind('@');
    if (at == std::string_view::npos || at == 0) return unusable("names no user");
    auto login = authority.substr(0, at);
    const auto user = cut(login, ':');
    if (!decode(user, address_.user) || !decode(login, address_.password)) {
      return unusable("has a broken % in its user or password");
    }
    return take_host(authority.substr(at + 1));
  }

  Result<void> take_host(std::string_view host) {
    auto port = std::string_view();
    if (host.starts_with('[')) {
      const auto end = host.find(']');
      if (end == std::string_view::npos) return unusable("has a [ without a ]");
      port = host.substr(end + 1);
      host = host.substr(1, end - 1);
    } else if (const auto colon = host.find(':'); colon != std::string_view::npos) {
      port = host.substr(colon);
      host = host.substr(0, colon);
    }
    if (!decode(host, address_.host)) return unusable("has a broken % in its host");
    if (port.empty()) return {};
    const auto digits = port.substr(1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), address_.port);
    const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
    if (port.front() != ':' || !whole || address_.port < 1 || address_.port > 65'535) {
      return unusable("has a port that is not 1 to 65535");
    }
    return {};
  }

  Result<void> take_option(std::string_view name, std::string_view value) {
    std::string plain;
    if (!decode(value, plain)) return unusable("has a broken % behind its question mark");
    if (name == "socket") {
      address_.socket = plain;
      address_.tls = false;
    } else if (name == "tls_ca") {
      address_.tls_ca = plain;
    } else if (name == "tls" && (plain == "verify" || plain == "off")) {
      address_.tls = plain == "verify";
    } else if (name == "tls") {
      return unusable("has a tls that is neither verify nor off");
    } else {
      return unusable("has an option that is none of socket, tls, tls_ca");
    }
    return {};
  }

  std::string_view rest_;
  Address address_;
};

}  // namespace

Result<Address> parse_url(const std::string& url) {
  return Parser().parse(url);
}

}  // namespace postrider::store::mariadb
