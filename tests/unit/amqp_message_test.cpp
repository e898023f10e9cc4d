#include "publisher/amqp/amqp_message.hpp"

#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/publisher/amqp.hpp>

#include "broker/amqp/amqp_url.hpp"

namespace postrider::amqp {
namespace {

constexpr std::size_t frame_max = 131072;

Message message_with(const std::function<void(Event&)>& change) {
  auto event = std::make_shared<Event>();
  event->seq = Seq(1);
  event->type = "order.placed";
  event->content_type = "application/json";
  change(*event);
  return {AttemptId(1), event, DispatchId(), std::chrono::seconds(1)};
}

Result<OutgoingMessage> prepared(const std::function<void(Event&)>& change,
                                 std::string_view routing_key = "{type}",
                                 std::size_t most = frame_max) {
  const auto key = EventTemplate::parse("The routing key", routing_key);
  return prepare(message_with(change), key.value(), most, Instant());
}

TEST(AmqpMessage, CarriesKeyHeadersAndExpiry) {
  const auto message = prepared([](Event& event) { event.headers = {{"tenant", "north"}}; });
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->routing_key, "order.placed");
  EXPECT_EQ(message->headers, (Headers{{"postrider-seq", "1"}, {"tenant", "north"}}));
  EXPECT_EQ(message->expires_at, Instant(std::chrono::seconds(1)));
}

// F83: the broker would answer each of these by closing the connection, and everything with it.
TEST(AmqpMessage, F83_FieldsThatDoNotFitAreRejectedBeforeTheyLeave) {
  const std::string longest(255, 'n');
  const std::string too_long(256, 'n');
  const struct {
    std::string_view field;
    std::function<void(Event&, const std::string&)> set;
  } rows[] = {
      {"The event's type", [](Event& event, const auto& text) { event.type = text; }},
      {"The content type", [](Event& event, const auto& text) { event.content_type = text; }},
      {"A header's name",
       [](Event& event, const auto& text) {
         event.headers = {{text, "v"}};
       }},
  };
  for (const auto& row : rows) {
    EXPECT_TRUE(prepared([&](Event& event) { row.set(event, longest); }, "key").ok()) << row.field;
    const auto rejected = prepared([&](Event& event) { row.set(event, too_long); }, "key");
    ASSERT_FALSE(rejected.ok()) << row.field;
    EXPECT_EQ(rejected.error().disposition, Disposition::reject);
    EXPECT_EQ(rejected.error().code, ErrorCode::limit_exceeded);
    EXPECT_TRUE(rejected.error().message.starts_with(row.field)) << rejected.error().message;
  }
}

TEST(AmqpMessage, F83_ARoutingKeyOver255BytesIsRejected) {
  const auto rejected = prepared(
      [](Event& event) {
        event.headers = {{"h", std::string(256, 'k')}};
      },
      "{header:h}");
  ASSERT_FALSE(rejected.ok());
  EXPECT_TRUE(rejected.error().message.starts_with("The routing key has 256 bytes"));
}

TEST(AmqpMessage, F83_HeadersThatFillTheFrameExactlyPassAndOneByteMoreIsRejected) {
  const auto with_value = [](std::size_t bytes) {
    return [bytes](Event& event) { event.headers = {{"h", std::string(bytes, 'v')}}; };
  };
  const auto empty = prepared(with_value(0));
  ASSERT_TRUE(empty.ok());
  const std::size_t room = frame_max - header_frame_bytes(empty.value());
  EXPECT_TRUE(prepared(with_value(room)).ok());
  const auto rejected = prepared(with_value(room + 1));
  ASSERT_FALSE(rejected.ok());
  EXPECT_EQ(rejected.error().code, ErrorCode::limit_exceeded);
}

TEST(AmqpMessage, APayloadOverTheLimitIsRejected) {
  const auto rejected =
      prepared([](Event& event) { event.payload.resize(EventLimits::most_payload_bytes + 1); });
  ASSERT_FALSE(rejected.ok());
  EXPECT_TRUE(rejected.error().message.starts_with("The payload has 67108865 bytes"));
}

TEST(AmqpUrl, HasDefaultsAndDecodesNames) {
  const auto plain = parse_url("amqp://localhost");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "localhost");
  EXPECT_EQ(plain->port, 5672);
  EXPECT_EQ(plain->vhost, "/");
  EXPECT_EQ(plain->user, "guest");
  EXPECT_FALSE(plain->tls);

  const auto full = parse_url("amqps://a%40b:p%2Fw@[::1]:5000/my%2Fvhost");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->user, "a@b");
  EXPECT_EQ(full->password, "p/w");
  EXPECT_EQ(full->host, "::1");
  EXPECT_EQ(full->port, 5000);
  EXPECT_EQ(full->vhost, "my/vhost");
  EXPECT_TRUE(full->tls);

  EXPECT_EQ(parse_url("amqps://h")->port, 5671);
  EXPECT_EQ(parse_url("amqp://h/")->vhost, "/");
}

TEST(AmqpUrl, RefusesWhatItCannotReadWithoutQuotingIt) {
  for (const char* url : {"", "http://h", "amqp://u:secret@h:port/v", "amqp://h/v?heartbeat=5",
                          "amqp://u:secret@h:99999999/v", "amqp://u:secret@h:1/a/b"}) {
    const auto parsed = parse_url(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.error().code, ErrorCode::config_invalid) << url;
    EXPECT_EQ(parsed.error().message.find("secret"), std::string::npos);
  }
}

TEST(AmqpOptions, AreValidByDefault) {
  AmqpOptions options;
  options.url = "amqp://localhost";
  EXPECT_TRUE(validate(options).empty());
}

TEST(AmqpOptions, AllFaultsAreNamedAtOnceWithoutThePassword) {
  AmqpOptions options;
  options.url = "amqp://u:secret@localhost";
  options.exchange = std::string(256, 'x');
  options.routing_key = "{nonsense}";
  options.ca_file = "ca.pem";
  options.certificate_file = "client.pem";
  options.window = 0;
  options.heartbeat = std::chrono::milliseconds(999);
  options.connect_timeout = std::chrono::hours(1);
  const auto faults = validate(options);
  EXPECT_EQ(faults.size(), 7U);
  for (const auto& fault : faults)
    EXPECT_EQ(fault.find("secret"), std::string::npos) << fault;

  options = AmqpOptions{};
  options.url = "amqp:secret";
  EXPECT_EQ(validate(options).size(), 1U);
}

TEST(AmqpTraits, ThePageForUsersTellsThemAsTheyAre) {
  AmqpOptions options;
  options.url = "amqp://localhost";
  const auto traits = make_amqp_publisher(options)->traits();
  std::ifstream file(POSTRIDER_TEST_SOURCE_DIR "/docs/brokers/rabbitmq.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const auto yes_or_no = [](bool value) { return std::string(value ? "yes" : "no"); };
  const std::pair<std::string, std::string> rows[] = {
      {"name", "`" + std::string(traits.name) + "`"},
      {"window", std::to_string(traits.window)},
      {"most_payload_bytes", std::to_string(traits.most_payload_bytes)},
      {"confirms", yes_or_no(traits.confirms)},
      {"durable", yes_or_no(traits.durable)},
      {"detects_unroutable", yes_or_no(traits.detects_unroutable)},
      {"keeps_headers", yes_or_no(traits.keeps_headers)},
  };
  for (const auto& [name, value] : rows) {
    const auto row = "\n| `" + name + "` | " + value + " |\n";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(AmqpOptions, AFaultyPublisherSaysSoAtSubmitAndTakesNothing) {
  AmqpOptions options;
  options.url = "amqp://localhost";
  options.window = 0;
  const auto publisher = make_amqp_publisher(options);
  const std::vector<Message> messages = {message_with([](Event&) {})};
  const auto submitted = publisher->submit(messages, Deadline::after(std::chrono::seconds(1)));
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().code, ErrorCode::config_invalid);
  EXPECT_EQ(submitted.error().disposition, Disposition::stop);
  EXPECT_TRUE(publisher->poll(Deadline::after(std::chrono::milliseconds(0))).empty());
}

}  // namespace
}  // namespace postrider::amqp
