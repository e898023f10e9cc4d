#include <unistd.h>

#include <atomic>
#include <string>

#include <postrider/publisher/amqp.hpp>

#include "scenarios/world.hpp"
#include "servers/rabbitmq_server.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::scenarios {
namespace {

/// An exchange and a queue of its own on the shared server.
class RabbitmqDestination final : public testing::PublisherHarness {
 public:
  RabbitmqDestination() : session_(testing::shared_rabbitmq().ports().amqp) {
    session_.declare_exchange(name_);
    session_.declare_queue(name_, {});
    session_.bind(name_, name_, "#");
  }
  ~RabbitmqDestination() override {
    session_.delete_queue(name_);
    session_.delete_exchange(name_);
  }

  std::unique_ptr<Publisher> open_publisher() override {
    AmqpOptions options;
    options.url = "amqp://127.0.0.1:" + std::to_string(testing::shared_rabbitmq().ports().amqp);
    options.exchange = name_;
    return make_amqp_publisher(options);
  }
  std::vector<testing::Received> received() override {
    for (auto& message : session_.take_all(name_)) {
      testing::Received one;
      one.event_id = message.message_id;
      received_.push_back(std::move(one));
    }
    return received_;
  }
  bool take_down() override { return false; }
  bool bring_up() override { return false; }

 private:
  static std::string fresh_name() {
    static std::atomic<int> last = 0;
    return "scenario-" + std::to_string(getpid()) + "-" + std::to_string(++last);
  }

  const std::string name_ = fresh_name();
  testing::RabbitmqSession session_;
  std::vector<testing::Received> received_;
};

}  // namespace

std::unique_ptr<testing::PublisherHarness> rabbitmq_destination() {
  return std::make_unique<RabbitmqDestination>();
}

}  // namespace postrider::scenarios
