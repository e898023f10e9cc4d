// RabbitMQ against the suite that defines a publisher.

#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include <postrider/publisher/amqp.hpp>
#include <postrider/testing/publisher_conformance.hpp>

#include "servers/chaos_proxy.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_server.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {
namespace {

/// How one configuration differs from the others.
struct Configuration {
  QueueArguments queue;
  bool tls;
  std::string network;  ///< a command for the proxy
};

/// An exchange and a queue of its own on the shared server, behind a proxy that can take it away.
class AmqpHarness final : public PublisherHarness {
 public:
  explicit AmqpHarness(Configuration configuration)
      : configuration_(std::move(configuration)),
        server_(shared_rabbitmq()),
        proxy_(configuration_.tls ? server_.ports().amqps : server_.ports().amqp),
        session_(server_.ports().amqp) {
    session_.declare_exchange(name_);
    session_.declare_queue(name_, configuration_.queue);
    session_.bind(name_, name_, "#");
    if (!configuration_.network.empty()) proxy_.tell(configuration_.network);
  }
  ~AmqpHarness() override {
    session_.delete_queue(name_);
    session_.delete_exchange(name_);
  }

  std::unique_ptr<Publisher> open_publisher() override {
    AmqpOptions options;
    options.url = (configuration_.tls ? "amqps://localhost:" : "amqp://127.0.0.1:") +
                  std::to_string(proxy_.port());
    options.exchange = name_;
    if (configuration_.tls) options.ca_file = server_.ca_file();
    return make_amqp_publisher(options);
  }
  std::vector<Received> received() override {
    for (auto& message : session_.take_all(name_)) {
      received_.push_back({message.message_id, message.type, message.body, message.content_type,
                           Headers(message.headers.begin(), message.headers.end())});
    }
    return received_;
  }
  bool take_down() override {
    proxy_.tell("refuse");
    proxy_.tell("both reset");
    return true;
  }
  bool bring_up() override {
    proxy_.tell("accept");
    return true;
  }
  bool freeze() override {
    proxy_.tell("down hold");
    return true;
  }
  bool thaw() override {
    proxy_.tell("down release");
    return true;
  }

 private:
  static std::string fresh_name() {
    static std::atomic<int> last = 0;
    return "conformance-" + std::to_string(getpid()) + "-" + std::to_string(++last);
  }

  const Configuration configuration_;
  const std::string name_ = fresh_name();
  Rabbitmq& server_;
  ChaosProxy proxy_;
  RabbitmqSession session_;
  std::vector<Received> received_;
};

PublisherCase amqp_case(std::string name, Configuration configuration) {
  return {std::move(name),
          [configuration = std::move(configuration)]() -> std::unique_ptr<PublisherHarness> {
            need_rabbitmq();
            if (::testing::Test::IsSkipped() || ::testing::Test::HasFailure()) return nullptr;
            return std::make_unique<AmqpHarness>(configuration);
          }};
}

INSTANTIATE_TEST_SUITE_P(Amqp, PublisherConformance,
                         ::testing::Values(amqp_case("classic_queue", {{}, false, ""}),
                                           amqp_case("quorum_queue",
                                                     {{{"x-queue-type", "quorum"}}, false, ""}),
                                           amqp_case("tls", {{}, true, ""}),
                                           amqp_case("slow_network", {{}, false, "both delay 20"})),
                         case_name);

}  // namespace
}  // namespace postrider::testing
