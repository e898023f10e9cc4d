#pragma once
/// \file
/// A TCP proxy on loopback that misbehaves on command. As a program: chaos_proxy_main.cpp.
///
/// A command is a line: the direction, then what becomes of it.
///
///   up | down | both     towards the server; towards the client; each of the two
///
///   pass                 forward at once, which is how it begins
///   delay MS             forward each piece after MS milliseconds
///   hold                 keep everything until `release`
///   release              forward what was held, and pass from now on
///   black-hole           read nothing any more: the sender's buffers fill
///   drop                 read and throw away: the sender sees nothing wrong
///   drop-after N         forward N more bytes, then drop
///   cut-after N          forward N more bytes, then end the whole connection
///   cut                  end (FIN) what is connected now
///   reset                break (RST) what is connected now, in both directions
///
/// Modes are for all connections, the present ones and those to come; `cut` and `reset` only for
/// the present ones. Other lines: `refuse` and `accept` for new connections, which are broken after
/// they were made; `leave` and `return`, which close the port so that none is made; `connections`
/// for the number of present ones.

#include <memory>
#include <string>
#include <thread>

#include "servers/loopback.hpp"

namespace postrider::testing {

/// The proxy itself.
class ChaosProxyServer {
 public:
  /// Listens on `port` (0: any) for `target_port`, and for commands at `control_path`.
  ChaosProxyServer(int port, int target_port, const std::string& control_path);
  ~ChaosProxyServer();
  ChaosProxyServer(const ChaosProxyServer&) = delete;
  ChaosProxyServer& operator=(const ChaosProxyServer&) = delete;

  [[nodiscard]] int port() const;
  /// Until the command `end` comes.
  void run();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

/// A proxy for one test, in a thread of its own, and the hand that steers it.
class ChaosProxy {
 public:
  explicit ChaosProxy(int target_port);
  ~ChaosProxy();
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;

  [[nodiscard]] int port() const { return server_.port(); }
  /// Returns when the command is in force; throws when it is none.
  std::string tell(const std::string& command);

 private:
  TemporaryFolder folder_{"proxy"};
  ChaosProxyServer server_;
  std::thread thread_;
};

}  // namespace postrider::testing
