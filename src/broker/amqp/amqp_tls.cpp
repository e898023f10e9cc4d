#include "broker/amqp/amqp_tls.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "broker/amqp/amqp_errors.hpp"

namespace postrider::amqp {
namespace {

int verify_certificate(X509_STORE_CTX* store, void* verdict) {
  const int trusted = X509_verify_cert(store);
  if (trusted <= 0) {
    static_cast<TlsVerdict*>(verdict)->verify_error = X509_STORE_CTX_get_error(store);
  }
  return trusted;
}

bool expect_host(SSL_CTX* context, const std::string& host) {
  X509_VERIFY_PARAM* expected = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1) return true;
  return X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size()) == 1;
}

Error file_error(std::string_view option) {
  return {ErrorCode::config_invalid, Disposition::stop,
          fmt::format("{} of the destination cannot be used; check that it is a readable PEM file.",
                      option),
          "amqp", ""};
}

Error verify_error(int code) {
  const auto make = [code](std::string_view sentence) {
    return Error{ErrorCode::auth_failed, Disposition::stop, std::string(sentence), "tls",
                 std::to_string(code)};
  };
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return make("The broker's certificate has expired; renew it.");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return make("The broker's certificate is not valid yet; check both clocks.");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return make(
          find_error(ErrorSource::library, AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED).sentence);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return make(find_error(ErrorSource::library, AMQP_STATUS_SSL_PEER_VERIFY_FAILED).sentence);
    default:
      return make(fmt::format("The broker's certificate was refused ({}); replace it.",
                              X509_verify_cert_error_string(code)));
  }
}

}  // namespace

Result<void> set_up_tls(amqp_socket_t* socket, const TlsFiles& files, const std::string& host,
                        TlsVerdict& verdict) {
  auto* context = static_cast<SSL_CTX*>(amqp_ssl_socket_get_context(socket));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context, verify_certificate, &verdict);
  amqp_ssl_socket_set_verify_peer(socket, 1);
  amqp_ssl_socket_set_verify_hostname(socket, 0);  // By OpenSSL instead, see the header.
  if (!expect_host(context, host)) return native_error(ErrorSource::library, AMQP_STATUS_NO_MEMORY);
  if (files.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (amqp_ssl_socket_set_cacert(socket, files.ca_file.c_str()) != AMQP_STATUS_OK) {
    return file_error("ca_file");
  }
  if (!files.certificate_file.empty() &&
      amqp_ssl_socket_set_key(socket, files.certificate_file.c_str(), files.key_file.c_str()) !=
          AMQP_STATUS_OK) {
    return file_error("certificate_file or key_file");
  }
  return {};
}

Error tls_error(int status, const TlsVerdict& verdict) {
  if (verdict.verify_error != 0) return verify_error(verdict.verify_error);
  return native_error(ErrorSource::library, status);
}

}  // namespace postrider::amqp
