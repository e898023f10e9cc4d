// The keeper's hand-over to a real RabbitMQ: what is refused, and what is an outage.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/operations.hpp>
#include <postrider/publisher/amqp.hpp>
#include <postrider/relay.hpp>
#include <postrider/testing/memory_store.hpp>

#include "servers/chaos_proxy.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_server.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {
namespace {

using Status = DeliveryStatus;
using namespace std::chrono_literals;

constexpr milliseconds patience{30'000};

class NoticeList final : public Observer {
 public:
  void notice(const Notice& notice) override { notices.push_back(notice); }
  [[nodiscard]] int count(NoticeKind kind) const {
    int found = 0;
    for (const auto& notice : notices)
      found += notice.kind == kind ? 1 : 0;
    return found;
  }
  std::vector<Notice> notices;
};

class KeeperBroker : public ::testing::Test {
 protected:
  void SetUp() override {
    need_rabbitmq();
    if (IsSkipped() || HasFailure()) return;
    server_ = &shared_rabbitmq();
    JobPolicy policy;
    policy.job = "print";
    policy.queue = "work";
    route_ = job_route("print", {"order.placed"}, policy);
    route_.retry_delays = {1h};
  }
  void TearDown() override {
    if (server_ != nullptr && declared_) session().delete_queue(queue_);
  }

  [[nodiscard]] RabbitmqSession session() const { return RabbitmqSession(server_->ports().amqp); }
  void declare(const QueueArguments& arguments) {
    session().declare_queue(queue_, arguments);
    declared_ = true;
  }
  /// Events of which each becomes a job, and one pass of a relay that hands them to the broker.
  void hand_over(std::size_t orders, int port) {
    std::vector<NewEvent> events(orders);
    for (auto& event : events) {
      event.type = "order.placed";
      event.payload = "{}";
    }
    ASSERT_TRUE(make_memory_store(database_)->add(events, Deadline::after(patience)));
    AmqpOptions to;
    to.url = "amqp://127.0.0.1:" + std::to_string(port);
    to.routing_key = queue_;
    route_.destination = to.url;
    std::vector<RouteBinding> routes;
    routes.push_back({route_, make_amqp_publisher(to)});
    Relay relay(make_memory_store(database_), std::move(routes), {}, system_clock(), *random_,
                notices_, nullptr, make_memory_job_store(database_));
    const auto report = relay.run_once();
    ASSERT_TRUE(report) << describe(report.error());
  }
  std::vector<Delivery> jobs(Status status) {
    const auto page =
        make_memory_operations(database_)->deliveries({}, std::nullopt, Deadline::after(patience));
    EXPECT_TRUE(page) << describe(page.error());
    std::vector<Delivery> found;
    for (const auto& listed : page->deliveries)
      if (listed.delivery.status == status) found.push_back(listed.delivery);
    return found;
  }

  const std::string queue_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Rabbitmq* server_ = nullptr;
  bool declared_ = false;
  std::shared_ptr<MemoryDatabase> database_ = make_memory_database();
  std::unique_ptr<Random> random_ = seeded_random(3);
  NoticeList notices_;
  Route route_;
};

TEST_F(KeeperBroker, R_203_of_ten_tasks_the_refused_one_waits_for_its_delay_and_nine_are_out) {
  declare({{"x-max-length", "9"}, {"x-overflow", "reject-publish"}});
  hand_over(10, server_->ports().amqp);
  EXPECT_EQ(session().ready(queue_), 9U);
  EXPECT_EQ(jobs(Status::dispatched).size(), 9U);
  const auto refused = jobs(Status::pending);
  ASSERT_EQ(refused.size(), 1U) << "at once, and not at the deadline of its result";
  EXPECT_EQ(refused[0].attempts, 1);
  EXPECT_EQ(notices_.count(NoticeKind::retry_scheduled), 1);
  EXPECT_EQ(notices_.count(NoticeKind::route_paused), 0) << "it concerns that delivery alone";
}

TEST_F(KeeperBroker, R_203_a_queue_that_is_missing_uses_an_attempt_of_each_task_and_says_why) {
  hand_over(2, server_->ports().amqp);
  const auto refused = jobs(Status::pending);
  ASSERT_EQ(refused.size(), 2U);
  for (const auto& job : refused) {
    EXPECT_EQ(job.attempts, 1);
    EXPECT_EQ(job.failure_code, job_code::send_refused);
    EXPECT_NE(job.failure_detail.find("unroutable"), std::string::npos) << job.failure_detail;
  }
}

TEST_F(KeeperBroker, A_broker_out_of_reach_is_an_outage_that_uses_no_attempt) {
  ChaosProxy proxy(server_->ports().amqp);
  proxy.tell("refuse");
  hand_over(3, proxy.port());
  const auto waiting = jobs(Status::pending);
  ASSERT_EQ(waiting.size(), 3U);
  for (const auto& job : waiting)
    EXPECT_EQ(job.attempts, 0);
  EXPECT_EQ(notices_.count(NoticeKind::route_paused), 1);
}

}  // namespace
}  // namespace postrider::testing
