#pragma once
/// \file
/// The URL of a MariaDB, taken apart. Its form stands at `MariadbOptions`.
///
/// Thread safety: functions without state.

#include <string>

#include <postrider/result.hpp>

namespace postrider::store::mariadb {

struct Address {
  std::string user;
  std::string password;
  std::string host;
  unsigned port = 3306;
  std::string database;
  std::string socket;  ///< empty: over TCP
  bool tls = false;    ///< with a certificate that is verified
  std::string tls_ca;
  friend bool operator==(const Address&, const Address&) = default;
};

/// Errors: `config_invalid`. The URL is not quoted: it may hold a password.
[[nodiscard]] Result<Address> parse_url(const std::string& url);

}  // namespace postrider::store::mariadb
