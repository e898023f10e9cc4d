#pragma once
#include <string>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider {

/// The parts of a URL that a request needs.
struct HttpUrl {
  bool tls = false;
  std::string host;    ///< a name or an address, without the brackets of IPv6
  std::string port;    ///< 80 or 443 when it was not given
  std::string target;  ///< path and query, as they were given; "/" when there is none

  /// As the header Host has it: the port only when it is not the usual one.
  [[nodiscard]] std::string authority() const;
};

/// Errors: `config_invalid`; the URL is not quoted, as it may hold a secret.
[[nodiscard]] Result<HttpUrl> parse_http_url(std::string_view url);

}  // namespace postrider
