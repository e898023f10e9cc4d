#pragma once
/// \file
/// A RabbitMQ for tests: free ports on loopback, its own epmd, cookie, home, certificates and
/// database, all in one folder.
///
/// It takes six seconds to start, so tests share one. Under CTest each test is a process of its
/// own; there a supervisor (rabbitmq_supervisor.cpp) holds the server for all of them, and they
/// reach it through a socket in its folder. A test program that is started by hand has its own.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "servers/child_process.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {

/// Thread safety: one thread at a time. Functions that cannot do what they say throw.
class Rabbitmq {
 public:
  struct Ports {
    int amqp = 0;
    int amqps = 0;
  };

  virtual ~Rabbitmq() = default;
  /// Waits until it takes connections.
  virtual void start() = 0;
  /// Ends it in good order; what is durable comes back with `start`.
  virtual void stop() = 0;
  virtual void kill() = 0;
  /// The connections stay, and nothing answers.
  virtual void freeze() = 0;
  virtual void thaw() = 0;
  [[nodiscard]] virtual bool running() = 0;
  /// rabbitmqctl with these arguments, none of which holds a tab; its output. Takes half a second.
  virtual std::string control(const std::vector<std::string>& arguments) = 0;
  [[nodiscard]] virtual Ports ports() const = 0;
  [[nodiscard]] virtual const std::string& folder() const = 0;

  void restart() {
    stop();
    start();
  }
  /// The memory alarm blocks every connection that publishes.
  void raise_memory_alarm() { control({"set_vm_memory_high_watermark", "absolute", "1"}); }
  void clear_memory_alarm() { control({"set_vm_memory_high_watermark", "0.6"}); }

  /// What tests have left on the server, one line each: queues and exchanges. Requires: it runs.
  [[nodiscard]] std::vector<std::string> leftovers();

  [[nodiscard]] std::string url() const;
  /// By the name that stands in the server's certificate.
  [[nodiscard]] std::string tls_url() const;
  /// The authority that signed it.
  [[nodiscard]] std::string ca_file() const { return folder() + "/ca.pem"; }
};

/// Empty when a RabbitMQ can be started here, else why not.
[[nodiscard]] std::string why_no_rabbitmq();

/// A server below `folder`, which must exist; it is gone when the object is.
[[nodiscard]] std::unique_ptr<Rabbitmq> start_rabbitmq(const std::string& folder);

/// The server that a supervisor holds in `folder`.
[[nodiscard]] std::unique_ptr<Rabbitmq> attach_to_rabbitmq(const std::string& folder);

/// The server that all tests of this program share, running. POSTRIDER_TEST_RABBITMQ names the
/// folder of a supervised one; without it one is started at the first call, and ends with the
/// program. Requires: `why_no_rabbitmq` is empty.
[[nodiscard]] Rabbitmq& shared_rabbitmq();

/// The socket of the supervisor of `folder`.
[[nodiscard]] inline std::string supervisor_socket(const std::string& folder) {
  return folder + "/control";
}

}  // namespace postrider::testing
