// What is a task, and why something is none.
#include "consumer/amqp/task_message.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <postrider/consumer/amqp.hpp>

#include "core/job_keeper.hpp"

namespace postrider::amqp {
namespace {

const std::string event_id = "018f0000-0000-7000-8000-000000000001";
const std::string delivery_id = "018f0000-0000-7000-8000-000000000002";
const std::string dispatch_id = "018f0000-0000-7000-8000-000000000003";

std::string task(const std::string& event, const std::string& delivery,
                 const std::string& dispatch) {
  return R"({"outbox_event_id":")" + event + R"(","outbox_delivery_id":")" + delivery +
         R"(","outbox_dispatch_id":")" + dispatch + R"(","outbox_last_attempt":false})";
}
std::string good_task() {
  return task(event_id, delivery_id, dispatch_id);
}

TEST(TaskMessage, R_174_what_the_keeper_writes_is_read_back) {
  Task written;
  written.job.job = "ship_order";
  written.job.event_id = EventId(Uuid::parse(event_id).value());
  written.job.delivery_id = DeliveryId(Uuid::parse(delivery_id).value());
  written.dispatch_id = DispatchId(Uuid::parse(dispatch_id).value());
  const auto message = core::task_message(written, AttemptId(1), milliseconds(1000));
  EXPECT_EQ(message.event->payload,
            R"({"outbox_event_id":")" + event_id + R"(","outbox_delivery_id":")" + delivery_id +
                R"(","outbox_dispatch_id":")" + dispatch_id + R"(","outbox_last_attempt":true})")
      << "what workers of others rely on";
  const auto ticket = read_task(message.event->type, message.event->payload);
  ASSERT_TRUE(ticket) << describe(ticket.error());
  EXPECT_EQ(ticket->job, "ship_order");
  EXPECT_EQ(ticket->delivery_id, written.job.delivery_id);
  EXPECT_EQ(ticket->dispatch_id, written.dispatch_id);
}

TEST(TaskMessage, Members_of_a_newer_relay_are_passed_over) {
  const auto body =
      R"({"more":[1,{"outbox_dispatch_id":"x"},null,"y"],"n":-1.5e3,)" + good_task().substr(1);
  const auto ticket = read_task("ship_order", body);
  ASSERT_TRUE(ticket) << describe(ticket.error());
  EXPECT_EQ(ticket->dispatch_id.value().to_string(), dispatch_id);
}

TEST(TaskMessage, What_is_no_task_is_refused_for_a_reason_that_quotes_nothing) {
  const std::string secret = "s3cr3t";
  const struct {
    std::string type;
    std::string body;
    std::string reason;
  } rows[] = {
      {"ship_order", "", "no JSON object"},
      {"ship_order", secret, "no JSON object"},
      {"ship_order", "\"" + secret + "\"", "no JSON object"},
      {"ship_order", "[1]", "no JSON object"},
      {"ship_order", good_task() + good_task(), "no JSON object"},
      {"ship_order", good_task().substr(0, 60), "no JSON object"},
      {"ship_order", std::string("{\"a\":\"\0\"}", 9), "no JSON object"},
      {"ship_order", "{}", "outbox_event_id is missing"},
      {"ship_order", task(secret, delivery_id, dispatch_id), "outbox_event_id is missing or is no"},
      {"ship_order", task(event_id, "", dispatch_id), "outbox_delivery_id"},
      {"ship_order", task(event_id, delivery_id, dispatch_id.substr(1)), "outbox_dispatch_id"},
      {"ship_order", R"({"outbox_event_id":1})", "outbox_event_id"},
      {"ship_order", R"({"outbox_event_id":"a","outbox_event_id":"b"})", "names a member twice"},
      {"ship_order", R"({"x":{"outbox_event_id":")" + event_id + "\"}}", "outbox_event_id"},
      {"", good_task(), "'type'"},
      {"ship order " + secret, good_task(), "'type'"},
      {std::string(65, 'a'), good_task(), "'type'"},
      {"ship_order", std::string(most_task_bytes + 1, ' '), "more than 4096 bytes"},
      {"ship_order", std::string(2000, '[') + std::string(2000, ']'), "no JSON object"},
      {"ship_order", "{\"a\":" + std::string(2000, '['), "no JSON object"},
  };
  for (const auto& row : rows) {
    const auto ticket = read_task(row.type, row.body);
    ASSERT_FALSE(ticket) << row.body;
    EXPECT_EQ(ticket.error().disposition, Disposition::reject);
    EXPECT_NE(ticket.error().message.find(row.reason), std::string::npos)
        << ticket.error().message << " for " << row.body;
    EXPECT_EQ(ticket.error().message.find(secret), std::string::npos);
  }
}

TEST(AmqpSourceOptions, Every_fault_is_told_and_the_password_is_not) {
  AmqpSourceOptions options;
  options.url = "amqp://guest:s3cr3t@host:port";
  options.heartbeat = milliseconds(1);
  options.connect_timeout = milliseconds(0);
  std::string all;
  for (const auto& fault : validate(options))
    all += fault + "\n";
  for (const auto* part : {"URL", "queue has 0 bytes", "heartbeat is 1 ms", "connect_timeout is 0"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
  EXPECT_EQ(all.find("s3cr3t"), std::string::npos);

  options = {};
  options.url = "amqp://host";
  options.queue = "shipping";
  EXPECT_TRUE(validate(options).empty());
  options.certificate_file = "cert.pem";
  EXPECT_EQ(validate(options).size(), 2U) << "no key, and no TLS";
}

}  // namespace
}  // namespace postrider::amqp
