#pragma once
/// \file
/// Where a RabbitMQ is and who we are there: amqp://user:password@host:port/vhost.

#include <string>

#include <postrider/result.hpp>

namespace postrider::amqp {

struct Address {
  std::string host;
  int port = 0;
  std::string vhost;
  std::string user;
  std::string password;
  bool tls = false;
};

/// Defaults: port 5672, with amqps 5671; user and password guest; virtual host "/", also when the
/// path is a lone slash (there is no virtual host without a name). Names are percent-decoded.
/// Errors: `config_invalid`; the URL is not quoted, as it may hold a password.
[[nodiscard]] Result<Address> parse_url(const std::string& url);

}  // namespace postrider::amqp
