#include "broker/amqp/amqp_url.hpp"

#include "broker/amqp/amqp_client.hpp"
#include "broker/amqp/amqp_errors.hpp"

namespace postrider::amqp {

Result<Address> parse_url(const std::string& url) {
  std::string writable = url;  // The parser cuts it into its parts.
  amqp_connection_info parts;
  const int status = amqp_parse_url(writable.data(), &parts);
  if (status != AMQP_STATUS_OK) return native_error(ErrorSource::library, status);
  const std::string vhost = parts.vhost;
  return Address{parts.host, parts.port,     vhost.empty() ? "/" : vhost,
                 parts.user, parts.password, parts.ssl != 0};
}

}  // namespace postrider::amqp
