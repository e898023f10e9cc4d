#pragma once
/// \file
/// TLS towards RabbitMQ: which authorities are trusted, who the peer must be, and why it was
/// refused.
///
/// The host is checked by OpenSSL itself during the handshake, not by rabbitmq-c after it: version
/// 0.11 knows no IP addresses in certificates, and its own check was corrected only in 0.14.

#include <string>

#include <postrider/result.hpp>

#include "broker/amqp/amqp_client.hpp"

namespace postrider::amqp {

struct TlsFiles {
  std::string ca_file;  ///< empty: the system's authorities
  std::string certificate_file;
  std::string key_file;
};

/// Why the peer's certificate was refused; OpenSSL's X509_V_ERR_… code, 0 when it was not.
struct TlsVerdict {
  int verify_error = 0;
};

/// Makes `socket` demand a certificate for `host`. Files are read anew at each call, so that a new
/// certificate takes effect with the next connection.
///
/// Ownership: `verdict` is borrowed for as long as the socket lives.
/// Errors: `config_invalid` when a file cannot be used.
[[nodiscard]] Result<void> set_up_tls(amqp_socket_t* socket, const TlsFiles& files,
                                      const std::string& host, TlsVerdict& verdict);

/// The error of a handshake that ended with `status`.
[[nodiscard]] Error tls_error(int status, const TlsVerdict& verdict);

}  // namespace postrider::amqp
