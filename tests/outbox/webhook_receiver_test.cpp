// A receiver of webhooks as docs/learn/receiving-webhooks.md has it, behind a real publisher.

#include <postrider/sqlite.hpp>
#include <postrider/webhook.hpp>

#include "backends/http_sender.hpp"
#include "outbox/inbox_builders.hpp"
#include "outbox/outbox_builders.hpp"
#include "servers/child_process.hpp"
#include "servers/http_endpoint.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {
namespace {

class WebhookReceiver : public ::testing::Test {
 protected:
  // [receiver]
  /// The status to answer with.
  int receive(const SeenRequest& request) {
    const WebhookHeaders headers{request.header("webhook-id"), request.header("webhook-timestamp"),
                                 request.header("webhook-signature")};
    if (!keys_.verify(headers, request.body, system_clock().wall())) return 401;

    NewEvent content;
    content.payload = request.body;
    const InboxMessage message{"billing", "shop", headers.id, content_hash(content)};
    const auto received = transaction(shop_.handle(), [&] {
      return inbox_.process(shop_.handle(), message, [&] { shop_.insert_order(); });
    });
    return received ? 204 : 503;
  }
  // [receiver]

  HttpOptions options(std::vector<std::string> secrets) {
    auto made = loopback_options(endpoint_.url());
    made.secrets = std::move(secrets);
    made.connections = 1;  // one request at a time uses the database
    return made;
  }

  Shop shop_;
  SqliteInbox inbox_;
  WebhookKeys keys_ = WebhookKeys::parse(std::vector<std::string>{old_secret}).value();
  HttpEndpoint endpoint_{[this](const SeenRequest& request, std::size_t before) {
    auto reply = Reply::of(receive(request));
    reply.cut = before == 0;
    return reply;
  }};
};

TEST_F(WebhookReceiver, WT_10_a_message_whose_answer_was_lost_has_one_effect) {
  HttpSender sender(options({old_secret}));

  EXPECT_EQ(words_of(sender.send(http_event(1))), "unknown connection_lost");
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");
  EXPECT_EQ(words_of(sender.send(http_event(1))), "confirmed");

  EXPECT_EQ(shop_.orders(), "1");
}

TEST_F(WebhookReceiver, What_another_secret_has_signed_is_not_even_looked_at) {
  HttpSender sender(options({new_secret}));
  (void)sender.send(http_event(1));

  EXPECT_EQ(words_of(sender.send(http_event(2))), "refused http_401");

  EXPECT_EQ(shop_.orders(), "0");
}

TEST_F(WebhookReceiver, The_lines_for_Python_verify_what_is_sent) {
  HttpSender sender(options({new_secret, old_secret}));
  (void)sender.send(http_event(1));
  const auto request = endpoint_.requests().at(0);

  TemporaryFolder folder("python");
  ChildProcess python(
      {"/usr/bin/python3", POSTRIDER_TEST_SOURCE_DIR "/tests/outbox/verify_webhook.py", old_secret,
       request.header("webhook-id"), request.header("webhook-timestamp"),
       request.header("webhook-signature"), request.body},
      {}, folder.file("output"));

  EXPECT_EQ(python.wait(http_patience), 0);
}

}  // namespace
}  // namespace postrider::testing
