#include "servers/tls_listener.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "servers/loopback.hpp"

namespace postrider::testing {
namespace {

SSL_CTX* context_of(void* context) {
  return static_cast<SSL_CTX*>(context);
}

}  // namespace

TlsListener::TlsListener(const CertificateFiles& files, Versions versions)
    : listener_(listen_on_loopback(port_)), context_(SSL_CTX_new(TLS_server_method())) {
  SSL_CTX* context = context_of(context_);
  if (versions == Versions::old_only) {
    SSL_CTX_set_security_level(context, 0);  // Else OpenSSL itself refuses to be that old.
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
  }
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate_file.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error("the test certificate cannot be used");
  }
  thread_ = std::thread([this] { run(); });
}

TlsListener::~TlsListener() {
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
  SSL_CTX_free(context_of(context_));
}

void TlsListener::run() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    // A client that says nothing must not keep the test from ending.
    const timeval patience{5, 0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    serve(client);
    close(client);
  }
}

void TlsListener::serve(int client) {
  std::array<char, 4> first{};
  if (recv(client, first.data(), first.size(), MSG_PEEK) == 4 &&
      std::string_view(first.data(), first.size()) == "AMQP") {
    saw_plain_text_ = true;
  }
  SSL* connection = SSL_new(context_of(context_));
  SSL_set_fd(connection, client);
  if (SSL_accept(connection) == 1) ++handshakes_;
  SSL_free(connection);
}

}  // namespace postrider::testing
