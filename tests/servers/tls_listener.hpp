#pragma once
/// \file
/// A listener that only shakes hands, with whatever certificate and version of TLS a test wants.

#include <atomic>
#include <thread>

#include "servers/test_authority.hpp"

namespace postrider::testing {

/// Thread safety: any thread.
class TlsListener {
 public:
  enum class Versions { all, old_only };  ///< `old_only`: nothing above TLS 1.1
  explicit TlsListener(const CertificateFiles& files, Versions versions = Versions::all);
  ~TlsListener();
  TlsListener(const TlsListener&) = delete;
  TlsListener& operator=(const TlsListener&) = delete;

  [[nodiscard]] int port() const { return port_; }
  /// Bytes that came before a handshake was done, which is where a client that fell back to plain
  /// text would show: an AMQP greeting.
  [[nodiscard]] bool saw_plain_text() const { return saw_plain_text_; }
  [[nodiscard]] int handshakes() const { return handshakes_; }

 private:
  void run();
  void serve(int client);

  int port_ = 0;
  int listener_;
  void* context_;  ///< SSL_CTX
  std::atomic<bool> saw_plain_text_{false};
  std::atomic<int> handshakes_{0};
  std::thread thread_;
};

}  // namespace postrider::testing
