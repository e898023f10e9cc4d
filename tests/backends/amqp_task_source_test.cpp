// A queue of a real RabbitMQ as source of tasks, and everything that happens to its connection.
#include <postrider/consumer/amqp.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <postrider/publisher/amqp.hpp>

#include "core/job_keeper.hpp"
#include "servers/chaos_proxy.hpp"
#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_server.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Far more than anything here takes; only a fault waits for so long.
constexpr milliseconds patience{30'000};
constexpr std::size_t prefetch = 10;

Deadline soon() {
  return Deadline::after(patience);
}

Uuid numbered(std::uint8_t kind, std::uint8_t number) {
  return Uuid({kind, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, number});
}
DispatchId dispatch_id(std::uint8_t number) {
  return DispatchId(numbered(3, number));
}

Task task_numbered(std::uint8_t number) {
  Task task;
  task.job.job = "ship_order";
  task.job.event_id = EventId(numbered(1, number));
  task.job.delivery_id = DeliveryId(numbered(2, number));
  task.dispatch_id = dispatch_id(number);
  return task;
}

std::string body_of(std::uint8_t number) {
  return core::task_message(task_numbered(number), AttemptId(1), patience).event->payload;
}

class AmqpTaskSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    need_rabbitmq();
    if (IsSkipped() || HasFailure()) return;
    server_ = &shared_rabbitmq();
    session().declare_queue(name_ + ".dead");
    session().declare_queue(
        name_, {{"x-dead-letter-exchange", ""}, {"x-dead-letter-routing-key", name_ + ".dead"}});
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->start();
    session().delete_queue(name_);
    session().delete_queue(name_ + ".dead");
  }

  [[nodiscard]] RabbitmqSession session() const { return RabbitmqSession(server_->ports().amqp); }
  [[nodiscard]] AmqpSourceOptions options(const std::string& url) const {
    AmqpSourceOptions options;
    options.url = url;
    options.queue = name_;
    return options;
  }
  [[nodiscard]] AmqpSourceOptions options() const { return options(server_->url()); }
  [[nodiscard]] AmqpSourceOptions options(const ChaosProxy& proxy) const {
    return options("amqp://127.0.0.1:" + std::to_string(proxy.port()));
  }
  [[nodiscard]] std::unique_ptr<TaskSource> open(const AmqpSourceOptions& options,
                                                 std::size_t most = prefetch) const {
    auto source = make_amqp_task_source(options);
    const auto opened = source->open(most, soon());
    EXPECT_TRUE(opened) << describe(opened.error());
    return source;
  }
  [[nodiscard]] std::unique_ptr<TaskSource> open() const { return open(options()); }
  /// The error of an `open` that is expected to fail.
  [[nodiscard]] static Error refusal(const AmqpSourceOptions& options) {
    const auto opened = make_amqp_task_source(options)->open(prefetch, soon());
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }

  void send(const std::vector<std::uint8_t>& numbers) {
    auto to = session();
    for (const auto number : numbers)
      to.send(name_, "ship_order", body_of(number));
  }
  /// Tickets until there are so many, or patience ends.
  static std::vector<Ticket> take(TaskSource& source, std::size_t number) {
    std::vector<Ticket> tickets;
    const auto until = soon();
    while (tickets.size() < number && !until.passed()) {
      auto batch = source.poll(until);
      if (!batch) {
        ADD_FAILURE() << describe(batch.error());
        break;
      }
      for (auto& ticket : batch->tickets)
        tickets.push_back(std::move(ticket));
    }
    EXPECT_EQ(tickets.size(), number);
    return tickets;
  }
  static void acknowledge(TaskSource& source, const Ticket& ticket) {
    const auto done = source.acknowledge(std::array{ticket.tag});
    EXPECT_TRUE(done) << describe(done.error());
  }
  /// What polling comes to once the connection is gone.
  static Error loss(TaskSource& source) {
    const auto until = soon();
    while (!until.passed()) {
      const auto batch = source.poll(until);
      if (!batch) return batch.error();
    }
    ADD_FAILURE() << "the loss was never noticed";
    return {};
  }

  const std::string name_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Rabbitmq* server_ = nullptr;
};

TEST_F(AmqpTaskSourceTest, R_174_what_a_relay_sends_comes_as_a_ticket) {
  AmqpOptions to;
  to.url = server_->url();
  to.routing_key = name_;
  const auto publisher = make_amqp_publisher(to);
  const auto message = core::task_message(task_numbered(7), AttemptId(1), patience);
  ASSERT_TRUE(publisher->submit(std::array{message}, soon()));
  const auto source = open();

  const auto tickets = take(*source, 1);

  ASSERT_EQ(tickets.size(), 1U);
  EXPECT_EQ(tickets[0].job, "ship_order");
  EXPECT_EQ(tickets[0].delivery_id, task_numbered(7).job.delivery_id);
  EXPECT_EQ(tickets[0].dispatch_id, dispatch_id(7));
  EXPECT_FALSE(tickets[0].redelivered);
  (void)publisher->close(soon());
}

TEST_F(AmqpTaskSourceTest, No_more_are_unacknowledged_than_the_prefetch_allows) {
  send({1, 2, 3, 4, 5});
  const auto source = open(options(), 2);
  const auto first = take(*source, 2);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(session().ready(name_), 3U) << "the others may go elsewhere";
  acknowledge(*source, first[1]);
  const auto next = take(*source, 1);
  EXPECT_EQ(next.at(0).dispatch_id, dispatch_id(3));
  EXPECT_EQ(session().ready(name_), 2U);
}

TEST_F(AmqpTaskSourceTest, What_was_acknowledged_is_gone_and_the_rest_comes_again_after_close) {
  send({1, 2, 3});
  const auto source = open();
  const auto tickets = take(*source, 3);
  ASSERT_EQ(tickets.size(), 3U);
  acknowledge(*source, tickets[1]);
  source->close(soon());

  const auto again = take(*open(), 2);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].dispatch_id, dispatch_id(1));
  EXPECT_EQ(again[1].dispatch_id, dispatch_id(3));
  EXPECT_TRUE(again[0].redelivered);
}

TEST_F(AmqpTaskSourceTest, R_205_what_is_no_task_is_rejected_for_good_and_named_once) {
  {
    auto to = session();
    to.send(name_, "ship_order", "not JSON");
    to.send(name_, "ship_order", "nor is this");
    to.send(name_, "no job!", body_of(1));
    to.send(name_, "ship_order", std::string(300'000, 'x'));  // in several frames
    to.send(name_, "ship_order", body_of(2));
  }
  const auto source = open();
  std::vector<Ticket> tickets;
  std::map<std::string, std::size_t> refused;
  const auto until = soon();
  while (tickets.empty() && !until.passed()) {
    auto batch = source->poll(until);
    ASSERT_TRUE(batch) << describe(batch.error());
    for (const auto& each : batch->refused)
      refused[each.reason] += each.count;
    tickets = std::move(batch->tickets);
  }
  ASSERT_EQ(tickets.size(), 1U);
  EXPECT_EQ(tickets[0].dispatch_id, dispatch_id(2));
  EXPECT_EQ(refused.size(), 3U);
  EXPECT_EQ(refused["its body is no JSON object, or names a member twice"], 2U);
  source->close(soon());
  EXPECT_EQ(session().take_all(name_ + ".dead").size(), 4U) << "dead letters of the queue";
  EXPECT_EQ(session().ready(name_), 1U) << "nothing else was put back";
}

TEST_F(AmqpTaskSourceTest, A_queue_that_does_not_exist_is_named_and_not_created) {
  auto missing = options();
  missing.queue = name_ + ".missing";
  const auto error = refusal(missing);
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.disposition, Disposition::stop);
  EXPECT_THAT(error.message, HasSubstr("declare it"));
  EXPECT_THAT(server_->control({"list_queues", "name"}), Not(HasSubstr(missing.queue)));
}

TEST_F(AmqpTaskSourceTest, A_user_who_may_not_read_or_log_in_is_told_so_without_the_password) {
  server_->control({"add_user", "writer", "s3cr3t"});
  server_->control({"set_permissions", "writer", "", ".*", ""});
  const auto at = "@127.0.0.1:" + std::to_string(server_->ports().amqp);
  const auto forbidden = refusal(options("amqp://writer:s3cr3t" + at));
  EXPECT_EQ(forbidden.code, ErrorCode::permission_denied);
  EXPECT_EQ(forbidden.disposition, Disposition::stop);
  EXPECT_THAT(forbidden.message, HasSubstr("read permission"));
  EXPECT_THAT(describe(forbidden), Not(HasSubstr("s3cr3t")));
  const auto stranger = refusal(options("amqp://guest:s3cr3t" + at));
  EXPECT_EQ(stranger.code, ErrorCode::auth_failed);
  EXPECT_THAT(describe(stranger), Not(HasSubstr("s3cr3t")));
  server_->control({"delete_user", "writer"});
}

TEST_F(AmqpTaskSourceTest, After_a_lost_connection_tickets_come_again_and_old_tags_do_nothing) {
  send({1, 2});
  ChaosProxy proxy(server_->ports().amqp);
  const auto source = open(options(proxy));
  const auto before = take(*source, 2);
  ASSERT_EQ(before.size(), 2U);
  proxy.tell("both reset");
  EXPECT_EQ(loss(*source).disposition, Disposition::retry);
  EXPECT_FALSE(source->poll(soon())) << "until it is opened again";
  EXPECT_FALSE(source->acknowledge(std::array{before[0].tag}));

  ASSERT_TRUE(source->open(prefetch, soon()));
  const auto again = take(*source, 2);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].dispatch_id, before[0].dispatch_id);
  EXPECT_TRUE(again[0].redelivered);
  EXPECT_GT(again[0].tag.connection, before[0].tag.connection);
  acknowledge(*source, before[0]);  // has the number of one that is not acknowledged
  acknowledge(*source, again[1]);
  source->close(soon());
  const auto left = take(*open(), 1);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].dispatch_id, dispatch_id(1));
}

TEST_F(AmqpTaskSourceTest, A_broker_that_restarts_gives_its_tasks_out_again) {
  send({1, 2});
  const auto source = open();
  ASSERT_EQ(take(*source, 2).size(), 2U);
  server_->stop();
  EXPECT_EQ(loss(*source).disposition, Disposition::retry);
  const auto down = source->open(prefetch, soon());
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().disposition, Disposition::retry) << describe(down.error());
  server_->start();
  ASSERT_TRUE(source->open(prefetch, soon()));
  EXPECT_EQ(take(*source, 2).size(), 2U);
}

TEST_F(AmqpTaskSourceTest, F71_a_black_hole_is_noticed_by_the_heartbeat) {
  ChaosProxy proxy(server_->ports().amqp);
  auto with_heartbeat = options(proxy);
  with_heartbeat.heartbeat = std::chrono::seconds(1);
  const auto source = open(with_heartbeat);
  proxy.tell("both black-hole");
  EXPECT_EQ(loss(*source).disposition, Disposition::retry);
}

TEST_F(AmqpTaskSourceTest, A_queue_that_is_deleted_ends_the_connection_with_its_reason) {
  const auto source = open();
  session().delete_queue(name_);
  EXPECT_THAT(loss(*source).message, HasSubstr("no such queue"));
  session().declare_queue(name_);
  EXPECT_TRUE(source->open(prefetch, soon()));
}

TEST_F(AmqpTaskSourceTest, After_a_cancel_nothing_new_comes_and_what_was_given_is_acknowledged) {
  send({1});
  const auto source = open();
  const auto given = take(*source, 1);
  ASSERT_EQ(given.size(), 1U);
  ASSERT_TRUE(source->cancel(soon()));
  ASSERT_TRUE(source->cancel(soon())) << "twice is once";
  send({2});
  const auto batch = source->poll(Deadline::after(milliseconds(100)));
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->tickets, IsEmpty());
  acknowledge(*source, given[0]);
  source->close(soon());
  source->close(soon());
  const auto left = take(*open(), 1);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].dispatch_id, dispatch_id(2));
}

TEST_F(AmqpTaskSourceTest, A_poll_ends_when_it_is_woken_or_cut) {
  const auto source = open();
  source->wake();
  EXPECT_TRUE(source->poll(soon())) << "woken before it began";
  std::thread waker([&] { source->wake(); });
  EXPECT_TRUE(source->poll(soon()));
  waker.join();
  std::thread cutter([&] { source->cut(); });
  (void)loss(*source);
  cutter.join();
  EXPECT_FALSE(source->open(prefetch, soon())) << "a later connection is cut as well";
}

TEST_F(AmqpTaskSourceTest, F74_tls_with_a_trusted_certificate_delivers_and_without_it_refuses) {
  send({1});
  auto with_tls = options(server_->tls_url());
  EXPECT_EQ(refusal(with_tls).code, ErrorCode::auth_failed);
  with_tls.ca_file = server_->ca_file();
  EXPECT_EQ(take(*open(with_tls), 1).size(), 1U);
}

}  // namespace
}  // namespace postrider::testing
