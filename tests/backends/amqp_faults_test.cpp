// Faults of a real RabbitMQ, of the network to it, and of TLS.

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/amqp_sender.hpp"
#include "servers/chaos_proxy.hpp"
#include "servers/rabbitmq_session.hpp"
#include "servers/test_authority.hpp"
#include "servers/tls_listener.hpp"

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// An exchange and a queue of its own for each test, bound to each other.
class AmqpFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    need_rabbitmq();
    if (IsSkipped() || HasFailure()) return;
    server_ = &shared_rabbitmq();
    RabbitmqSession session(server_->ports().amqp);
    session.declare_exchange(name_);
    session.declare_queue(name_);
    session.bind(name_, name_, "#");
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->thaw();
    server_->start();
    RabbitmqSession session(server_->ports().amqp);
    session.delete_queue(name_);
    session.delete_exchange(name_);
  }

  [[nodiscard]] AmqpOptions options(const std::string& url) const {
    AmqpOptions options;
    options.url = url;
    options.exchange = name_;
    return options;
  }
  [[nodiscard]] AmqpOptions options() const { return options(server_->url()); }
  [[nodiscard]] AmqpOptions options(const ChaosProxy& proxy) const {
    return options("amqp://127.0.0.1:" + std::to_string(proxy.port()));
  }
  [[nodiscard]] AmqpOptions tls_options() const {
    auto with_tls = options(server_->tls_url());
    with_tls.ca_file = server_->ca_file();
    return with_tls;
  }
  [[nodiscard]] std::vector<std::string> take_ids() const {
    std::vector<std::string> ids;
    for (const auto& message : RabbitmqSession(server_->ports().amqp).take_all(name_)) {
      ids.push_back(message.message_id);
    }
    return ids;
  }

  const std::string name_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Rabbitmq* server_ = nullptr;
};

TEST_F(AmqpFaults, AMessageArrivesWithEverythingThatBelongsToIt) {
  AmqpSender sender(options());
  const auto event = make_event(42);
  event->headers = {{"tenant", "north"}, {"empty", ""}};
  event->payload = std::string("\0\xff{", 3);
  EXPECT_EQ(sender.send(event), Outcome::confirmed());
  const auto messages = RabbitmqSession(server_->ports().amqp).take_all(name_);
  ASSERT_EQ(messages.size(), 1U);
  const auto& message = messages[0];
  EXPECT_EQ(message.message_id, id_of(*event));
  EXPECT_EQ(message.type, "order.placed");
  EXPECT_EQ(message.routing_key, "order.placed");
  EXPECT_EQ(message.content_type, "application/json");
  EXPECT_EQ(message.app_id, "postrider");
  EXPECT_EQ(message.body, event->payload);
  EXPECT_EQ(message.timestamp_s, 1'700'000'000U);
  EXPECT_EQ(message.delivery_mode, 2);
  EXPECT_THAT(message.headers,
              ::testing::UnorderedElementsAre(std::pair("tenant", "north"), std::pair("empty", ""),
                                              std::pair("postrider-seq", "42"),
                                              std::pair("postrider-aggregate-type", "order"),
                                              std::pair("postrider-aggregate-id", "1")));
}

TEST_F(AmqpFaults, TheDefaultExchangeLeadsToTheQueueOfThatName) {
  auto to_queue = options();
  to_queue.exchange = "";
  to_queue.routing_key = name_;
  AmqpSender sender(to_queue);
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  EXPECT_EQ(take_ids().size(), 1U);
}

TEST_F(AmqpFaults, F65_a_broker_that_is_down_is_unavailable_and_is_found_when_it_is_up) {
  ChaosProxy proxy(server_->ports().amqp);
  proxy.tell("refuse");
  AmqpSender sender(options(proxy));
  for (int attempt = 0; attempt < 3; ++attempt) {
    sender.add(make_event(1));
    const auto submitted = sender.submit();
    ASSERT_FALSE(submitted.ok());
    EXPECT_EQ(submitted.error().disposition, Disposition::retry);
    EXPECT_EQ(submitted.error().code, ErrorCode::unavailable);
  }
  EXPECT_THAT(sender.outcomes(), IsEmpty());
  proxy.tell("accept");
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F66_nothing_is_lost_and_the_order_stays_when_the_broker_restarts_under_load) {
  constexpr std::uint32_t count = 300;
  AmqpSender sender(options());
  std::uint32_t number = 0;
  bool killed = false;
  // One after the other, as a relay sends events of one aggregate.
  while (number < count) {
    if (number == count / 2 && !std::exchange(killed, true)) {
      sender.add(make_event(number + 1));
      ASSERT_TRUE(sender.submit().ok());
      server_->kill();
      sender.await_all();
      server_->start();
    }
    if (sender.send(make_event(number + 1)).kind == OutcomeKind::confirmed) ++number;
  }
  std::vector<std::string> first_occurrences;
  std::set<std::string> seen;
  for (const auto& id : take_ids()) {
    if (seen.insert(id).second) first_occurrences.push_back(id);
  }
  std::vector<std::string> sent;
  for (std::uint32_t i = 1; i <= count; ++i)
    sent.push_back(id_of(*make_event(i)));
  EXPECT_EQ(first_occurrences, sent);
}

TEST_F(AmqpFaults,
       F67_a_lost_ack_is_unknown_and_the_repetition_has_the_same_id_on_a_new_connection) {
  ChaosProxy proxy(server_->ports().amqp);
  AmqpSender sender(options(proxy));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("down drop");
  const auto outcome = sender.send(make_event(2), milliseconds(500));
  EXPECT_EQ(outcome.kind, OutcomeKind::unknown);
  EXPECT_EQ(outcome.code, "timeout");
  proxy.tell("down pass");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
  EXPECT_EQ(proxy.tell("connections"), "1");
  EXPECT_THAT(take_ids(),
              ElementsAre(id_of(*make_event(1)), id_of(*make_event(2)), id_of(*make_event(2))));
}

TEST_F(AmqpFaults, F68_an_ack_that_comes_after_the_timeout_is_nobodys) {
  ChaosProxy proxy(server_->ports().amqp);
  AmqpSender sender(options(proxy));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("down hold");
  const auto expiring = sender.add(make_event(2), milliseconds(300));
  const auto patient = sender.add(make_event(3));
  ASSERT_TRUE(sender.submit().ok());
  sender.await(2);
  EXPECT_EQ(sender.of(expiring).code, "timeout");
  EXPECT_FALSE(sender.has(patient));
  proxy.tell("down release");
  sender.await_all();  // AmqpSender fails the test when an attempt has a second outcome.
  EXPECT_EQ(sender.of(patient), Outcome::confirmed());
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F71_a_black_hole_is_noticed_by_the_heartbeat) {
  ChaosProxy proxy(server_->ports().amqp);
  auto with_heartbeat = options(proxy);
  with_heartbeat.heartbeat = seconds(1);
  AmqpSender sender(with_heartbeat);
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("both black-hole");
  Outcome outcome;
  // Two heartbeats of a second are the bound; five times that on a busy machine.
  EXPECT_LT(duration_of([&] { outcome = sender.send(make_event(2), seconds(60)); }), seconds(10));
  EXPECT_TRUE(outcome.connection_lost);
  proxy.tell("both pass");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F71_an_idle_connection_lives_although_nobody_polls) {
  ChaosProxy proxy(server_->ports().amqp);
  auto with_heartbeat = options(proxy);
  with_heartbeat.heartbeat = seconds(1);
  AmqpSender sender(with_heartbeat);
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  // The broker ends a connection that is silent for two heartbeats. Nothing can be awaited here but
  // that time itself.
  std::this_thread::sleep_for(milliseconds(4'500));
  EXPECT_EQ(proxy.tell("connections"), "1");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F71_a_frozen_broker_costs_no_more_than_the_deadline) {
  server_->freeze();
  AmqpSender sender(options());
  sender.add(make_event(1));
  Result<void> submitted;
  EXPECT_LT(duration_of([&] { submitted = sender.submit(milliseconds(300)); }), seconds(3));
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().disposition, Disposition::retry);
  EXPECT_LT(duration_of([&] { sender.close(milliseconds(100)); }), seconds(3));
  server_->thaw();
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
}

TEST_F(AmqpFaults, A_reset_connection_is_lost_for_everything_in_flight) {
  ChaosProxy proxy(server_->ports().amqp);
  AmqpSender sender(options(proxy));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  proxy.tell("down hold");
  sender.add(make_event(2));
  sender.add(make_event(3));
  ASSERT_TRUE(sender.submit().ok());
  sender.poll(milliseconds(100));
  proxy.tell("both reset");
  sender.await_all();
  EXPECT_TRUE(sender.of(2).connection_lost);
  EXPECT_TRUE(sender.of(3).connection_lost);
  proxy.tell("down pass");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F76_revoked_credentials_are_a_named_state) {
  server_->control({"add_user", "courier", "first"});
  server_->control({"set_permissions", "courier", "", ".*", ""});
  const auto url = "amqp://courier:first@127.0.0.1:" + std::to_string(server_->ports().amqp);
  AmqpSender sender(options(url));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  server_->control({"delete_user", "courier"});

  // The broker cuts its connections a moment later; until then a message may still be confirmed.
  Result<void> submitted;
  for (const auto give_up = Deadline::after(patience); submitted.ok() && !give_up.passed();) {
    sender.add(make_event(2));
    submitted = sender.submit();
    if (submitted.ok()) sender.poll(milliseconds(100));
  }
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().code, ErrorCode::auth_failed);
  EXPECT_EQ(submitted.error().disposition, Disposition::stop);
  EXPECT_EQ(submitted.error().message.find("first"), std::string::npos);
}

TEST_F(AmqpFaults, F76_a_wrong_password_and_an_unknown_virtual_host_are_told_apart) {
  const auto port = std::to_string(server_->ports().amqp);
  const struct {
    std::string url;
    ErrorCode code;
  } rows[] = {
      {"amqp://guest:wrong@127.0.0.1:" + port, ErrorCode::auth_failed},
      {"amqp://127.0.0.1:" + port + "/no-such-vhost", ErrorCode::config_invalid},
  };
  for (const auto& row : rows) {
    AmqpSender sender(options(row.url));
    sender.add(make_event(1));
    const auto submitted = sender.submit();
    ASSERT_FALSE(submitted.ok()) << row.url;
    EXPECT_EQ(submitted.error().code, row.code) << describe(submitted.error());
    EXPECT_EQ(submitted.error().disposition, Disposition::stop);
  }
}

TEST_F(AmqpFaults, F77_an_unroutable_message_is_returned_and_arrives_when_a_queue_is_bound) {
  RabbitmqSession session(server_->ports().amqp);
  session.unbind(name_, name_, "#");
  AmqpSender failing(options());
  const auto outcome = failing.send(make_event(1));
  EXPECT_EQ(outcome.kind, OutcomeKind::rejected);
  EXPECT_EQ(outcome.code, "unroutable");

  auto retrying = options();
  retrying.unroutable = Unroutable::retry;
  EXPECT_EQ(AmqpSender(retrying).send(make_event(1)).kind, OutcomeKind::refused);

  session.bind(name_, name_, "#");
  EXPECT_EQ(failing.send(make_event(1)), Outcome::confirmed());
  EXPECT_THAT(take_ids(), ElementsAre(id_of(*make_event(1))));
}

TEST_F(AmqpFaults, F77_in_a_window_only_the_unroutable_ones_are_returned) {
  RabbitmqSession session(server_->ports().amqp);
  session.unbind(name_, name_, "#");
  session.bind(name_, name_, "order.*");
  AmqpSender sender(options());
  for (std::uint32_t number = 1; number <= 100; ++number) {
    const auto event = make_event(number, number % 2 == 0 ? "order.placed" : "nobody.cares");
    event->payload.assign(3'000, 'x');  // Returns are longer than one read.
    sender.add(event);
  }
  ASSERT_TRUE(sender.submit().ok());
  sender.await_all();
  for (const auto& [attempt, outcome] : sender.outcomes()) {
    EXPECT_EQ(outcome.code, attempt % 2 == 0 ? "" : "unroutable") << attempt;
  }
  EXPECT_EQ(take_ids().size(), 50U);
}

TEST_F(AmqpFaults, F81_a_memory_alarm_delays_and_blocks_no_call) {
  AmqpSender sender(options());
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  server_->raise_memory_alarm();
  const auto large = make_event(2);
  large->payload.assign(4U << 20U, 'x');
  for (int i = 0; i < 10; ++i)
    sender.add(large, seconds(2));
  EXPECT_LT(duration_of([&] { ASSERT_TRUE(sender.submit().ok()); }), seconds(2));
  EXPECT_LT(duration_of([&] { sender.poll(milliseconds(100)); }), seconds(1));
  EXPECT_LT(duration_of([&] { sender.await_all(); }), seconds(10));
  for (std::uint64_t attempt = 2; attempt <= 11; ++attempt) {
    const auto kind = sender.of(attempt).kind;
    EXPECT_TRUE(kind == OutcomeKind::unknown || kind == OutcomeKind::unavailable) << attempt;
  }
  EXPECT_LT(duration_of([&] { sender.close(milliseconds(500)); }), seconds(3));
  server_->clear_memory_alarm();
  EXPECT_EQ(sender.send(make_event(3)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F81_after_the_alarm_the_blocked_messages_go_out_on_the_same_connection) {
  ChaosProxy proxy(server_->ports().amqp);
  AmqpSender sender(options(proxy));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  server_->raise_memory_alarm();
  sender.add(make_event(2), seconds(60));
  ASSERT_TRUE(sender.submit().ok());
  sender.poll(milliseconds(300));
  sender.add(make_event(3), seconds(60));
  ASSERT_TRUE(sender.submit().ok());
  sender.poll(milliseconds(300));
  server_->clear_memory_alarm();
  sender.await_all();
  EXPECT_EQ(sender.of(2), Outcome::confirmed());
  EXPECT_EQ(sender.of(3), Outcome::confirmed());
  EXPECT_EQ(proxy.tell("connections"), "1");
  EXPECT_EQ(take_ids().size(), 3U);
}

TEST_F(AmqpFaults, F82_a_missing_exchange_is_named_before_anything_is_sent) {
  auto wrong = options();
  wrong.exchange = "no-such-exchange";
  AmqpSender sender(wrong);
  for (int attempt = 0; attempt < 2; ++attempt) {
    sender.add(make_event(1));
    const auto submitted = sender.submit();
    ASSERT_FALSE(submitted.ok());
    EXPECT_EQ(submitted.error().code, ErrorCode::not_found);
    EXPECT_EQ(submitted.error().native_code, "404");
    EXPECT_EQ(submitted.error().disposition, Disposition::retry);
  }
}

TEST_F(AmqpFaults, F82_an_exchange_that_is_deleted_is_missed_and_found_again) {
  RabbitmqSession session(server_->ports().amqp);
  AmqpSender sender(options());
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  session.delete_exchange(name_);
  const auto outcome = sender.send(make_event(2));
  EXPECT_EQ(outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(outcome.code, "exchange_missing");
  session.declare_exchange(name_);
  session.bind(name_, name_, "#");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F82_an_oversized_message_alone_is_rejected_and_others_are_not_lost) {
  AmqpSender sender(options());
  const auto oversized = make_event(1);
  oversized->payload.assign(17U << 20U, 'x');  // The test server takes 16 MiB.
  const auto outcome = sender.send(oversized);
  EXPECT_EQ(outcome.kind, OutcomeKind::rejected);
  EXPECT_EQ(outcome.code, "precondition_failed");
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, F82_a_user_without_permission_is_told_so) {
  server_->control({"add_user", "reader", "secret"});
  server_->control({"set_permissions", "reader", "", "", ".*"});
  AmqpSender sender(
      options("amqp://reader:secret@127.0.0.1:" + std::to_string(server_->ports().amqp)));
  const auto outcome = sender.send(make_event(1));
  EXPECT_EQ(outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(outcome.code, "permission_denied");
  server_->control({"delete_user", "reader"});
}

TEST_F(AmqpFaults, F83_fields_that_do_not_fit_are_rejected_and_the_connection_lives) {
  ChaosProxy proxy(server_->ports().amqp);
  AmqpSender sender(options(proxy));
  const auto long_type = make_event(1, std::string(256, 't'));
  const auto long_header = make_event(2);
  long_header->headers = {{"h", std::string(140'000, 'v')}};
  const auto full_header = make_event(3);
  full_header->headers = {{"h", std::string(130'000, 'v')}};
  sender.add(long_type);
  sender.add(long_header);
  sender.add(full_header);
  ASSERT_TRUE(sender.submit().ok());
  sender.await_all();
  EXPECT_EQ(sender.of(1).kind, OutcomeKind::rejected);
  EXPECT_EQ(sender.of(2).kind, OutcomeKind::rejected);
  EXPECT_EQ(sender.of(2).code, "limit_exceeded");
  EXPECT_EQ(sender.of(3), Outcome::confirmed());
  EXPECT_EQ(proxy.tell("connections"), "1");
}

TEST_F(AmqpFaults, F84_a_full_queue_that_rejects_refuses_for_a_while) {
  RabbitmqSession session(server_->ports().amqp);
  session.delete_queue(name_);
  session.declare_queue(name_, {{"x-max-length", "1"}, {"x-overflow", "reject-publish"}});
  session.bind(name_, name_, "#");
  AmqpSender sender(options());
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  const auto outcome = sender.send(make_event(2));
  EXPECT_EQ(outcome.kind, OutcomeKind::refused);
  EXPECT_EQ(outcome.code, "nacked");
  EXPECT_EQ(session.take_all(name_).size(), 1U);
  EXPECT_EQ(sender.send(make_event(2)), Outcome::confirmed());
}

TEST_F(AmqpFaults, AnAdministratorWhoClosesTheConnectionLosesNothing) {
  AmqpSender sender(options());
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  server_->control({"close_all_connections", "test"});
  // The news may come before or after the next message is written.
  auto outcome = sender.send(make_event(2));
  if (outcome.kind == OutcomeKind::unknown) {
    EXPECT_TRUE(outcome.connection_lost);
    outcome = sender.send(make_event(2));
  }
  EXPECT_EQ(outcome, Outcome::confirmed());
}

TEST_F(AmqpFaults, F74_tls_with_a_trusted_certificate_delivers) {
  AmqpSender sender(tls_options());
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
  EXPECT_EQ(take_ids().size(), 1U);
}

TEST_F(AmqpFaults, F74_a_client_certificate_is_shown_and_one_of_strangers_is_refused) {
  auto known = tls_options();
  known.certificate_file = server_->folder() + "/client-cert.pem";
  known.key_file = server_->folder() + "/client-key.pem";
  EXPECT_EQ(AmqpSender(known).send(make_event(1)), Outcome::confirmed());

  const TemporaryFolder folder("tls");
  TestAuthority strangers(folder.path(), "strangers");
  const auto files = strangers.issue("client", {});
  auto unknown = tls_options();
  unknown.certificate_file = files.certificate_file;
  unknown.key_file = files.key_file;
  AmqpSender sender(unknown);
  sender.add(make_event(2));
  EXPECT_FALSE(sender.submit().ok());
}

TEST_F(AmqpFaults, F74_tls_to_a_plain_port_fails_and_never_falls_back) {
  auto plain_port = tls_options();
  plain_port.url = "amqps://127.0.0.1:" + std::to_string(server_->ports().amqp);
  AmqpSender sender(plain_port);
  sender.add(make_event(1));
  const auto submitted = sender.submit();
  ASSERT_FALSE(submitted.ok());
  EXPECT_NE(submitted.error().message.find("TLS"), std::string::npos) << submitted.error().message;
  EXPECT_THAT(take_ids(), IsEmpty());
}

TEST_F(AmqpFaults, F74_a_new_authority_is_read_at_the_next_connection) {
  const TemporaryFolder folder("tls");
  const TestAuthority strangers(folder.path(), "strangers");
  auto with_copy = tls_options();
  std::ifstream wrong(strangers.ca_file());
  with_copy.ca_file =
      folder.write("trusted.pem", std::string(std::istreambuf_iterator<char>(wrong), {}));
  AmqpSender sender(with_copy);
  sender.add(make_event(1));
  const auto refused = sender.submit();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::auth_failed);

  std::ifstream right(server_->ca_file());
  folder.write("trusted.pem", std::string(std::istreambuf_iterator<char>(right), {}));
  EXPECT_EQ(sender.send(make_event(1)), Outcome::confirmed());
}

/// The error of a submit to `listener` by the name "localhost", or by address.
Error refusal_of(const TlsListener& listener, const std::string& ca_file,
                 const std::string& host = "localhost") {
  AmqpOptions options;
  options.url = "amqps://" + host + ":" + std::to_string(listener.port());
  options.ca_file = ca_file;
  AmqpSender sender(options);
  sender.add(make_event(1));
  const auto submitted = sender.submit();
  EXPECT_FALSE(submitted.ok());
  EXPECT_FALSE(listener.saw_plain_text());
  return submitted.ok() ? Error{} : submitted.error();
}

TEST(AmqpTlsFaults, F74_each_bad_certificate_is_refused_with_its_reason) {
  const TemporaryFolder folder("tls");
  TestAuthority authority(folder.path(), "ca");
  const TestAuthority strangers(folder.path(), "strangers");
  const CertificateWish good{{"localhost"}, {}};
  const CertificateWish expired{{"localhost"}, {}, -7200, -3600};
  const CertificateWish early{{"localhost"}, {}, 3600, 7200};
  const CertificateWish other_host{{"elsewhere.example"}, {"127.0.0.9"}};
  const struct {
    std::string name;
    CertificateWish wish;
    std::string ca_file;
    std::string host;
    std::string_view reason;
  } rows[] = {
      {"expired", expired, authority.ca_file(), "localhost", "has expired"},
      {"early", early, authority.ca_file(), "localhost", "is not valid yet"},
      {"host", other_host, authority.ca_file(), "localhost", "is for another host"},
      {"address", good, authority.ca_file(), "127.0.0.1", "is for another host"},
      {"address2", other_host, authority.ca_file(), "127.0.0.1", "is for another host"},
      {"unknown", good, strangers.ca_file(), "localhost", "is not trusted"},
      {"system", good, "", "localhost", "is not trusted"},
  };
  for (const auto& row : rows) {
    const TlsListener listener(authority.issue(row.name, row.wish));
    const auto error = refusal_of(listener, row.ca_file, row.host);
    EXPECT_EQ(error.code, ErrorCode::auth_failed) << row.name;
    EXPECT_EQ(error.disposition, Disposition::stop) << row.name;
    EXPECT_NE(error.message.find(row.reason), std::string::npos) << row.name << error.message;
    EXPECT_EQ(listener.handshakes(), 0) << row.name;
  }
}

TEST(AmqpTlsFaults, F74_a_certificate_for_the_address_is_accepted) {
  const TemporaryFolder folder("tls");
  TestAuthority authority(folder.path(), "ca");
  const CertificateWish wish{{}, {"127.0.0.1"}};
  const TlsListener listener(authority.issue("address", wish));
  // The listener ends the connection after the handshake, so the login fails, and not the TLS.
  const auto error = refusal_of(listener, authority.ca_file(), "127.0.0.1");
  EXPECT_EQ(error.disposition, Disposition::retry) << error.message;
  EXPECT_EQ(listener.handshakes(), 1);
}

TEST(AmqpTlsFaults, F74_a_server_with_nothing_newer_than_tls_1_1_is_refused) {
  const TemporaryFolder folder("tls");
  TestAuthority authority(folder.path(), "ca");
  const CertificateWish wish{{"localhost"}, {}};
  const TlsListener listener(authority.issue("old", wish), TlsListener::Versions::old_only);
  const auto error = refusal_of(listener, authority.ca_file());
  EXPECT_NE(error.message.find("TLS handshake failed"), std::string::npos) << error.message;
  EXPECT_EQ(listener.handshakes(), 0);
}

TEST(AmqpTlsFaults, F74_a_file_that_is_missing_is_a_fault_of_the_configuration) {
  const TemporaryFolder folder("tls");
  TestAuthority authority(folder.path(), "ca");
  const TlsListener listener(authority.issue("server", {{"localhost"}, {}}));
  EXPECT_EQ(refusal_of(listener, folder.file("missing.pem")).code, ErrorCode::config_invalid);
}

}  // namespace
}  // namespace postrider::testing
