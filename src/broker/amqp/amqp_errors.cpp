#include "broker/amqp/amqp_errors.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "broker/amqp/amqp_client.hpp"

namespace postrider::amqp {
namespace {

using enum ErrorCode;
using enum Disposition;
constexpr auto login = ErrorSource::login;
constexpr auto broker = ErrorSource::broker;
constexpr auto consumer = ErrorSource::consumer;
constexpr auto library = ErrorSource::library;

constexpr auto rows = std::to_array<ErrorRow>({
    {login, AMQP_ACCESS_REFUSED, auth_failed, stop, "auth_failed",
     "RabbitMQ refused the user or password; check the credentials of the destination."},
    {login, AMQP_NOT_ALLOWED, config_invalid, stop, "vhost_refused",
     "RabbitMQ does not let this user into the virtual host; check that it exists and that the "
     "user "
     "has permissions there."},
    {login, AMQP_INVALID_PATH, config_invalid, stop, "vhost_refused",
     "RabbitMQ has no such virtual host; check the path of the destination's URL."},
    {login, AMQP_CONNECTION_FORCED, ErrorCode::unavailable, Disposition::retry, "connection_forced",
     "RabbitMQ is shutting down or starting; wait until it is up."},
    {login, AMQP_RESOURCE_ERROR, ErrorCode::unavailable, Disposition::retry, "resource_error",
     "RabbitMQ lacks a resource for another connection; look at its limits and log."},
    {login, AMQP_INTERNAL_ERROR, ErrorCode::unavailable, Disposition::retry, "internal_error",
     "RabbitMQ had an internal error during login; look at its log."},

    {broker, AMQP_CONTENT_TOO_LARGE, limit_exceeded, reject, "content_too_large",
     "RabbitMQ does not take a message of this size; write less or raise its max_message_size."},
    {broker, AMQP_NO_ROUTE, not_found, reject, "unroutable",
     "No queue is bound for this routing key; bind one, then retry."},
    {broker, AMQP_NO_CONSUMERS, not_found, Disposition::retry, "no_consumers",
     "No consumer took the message at once; start one."},
    {broker, AMQP_CONNECTION_FORCED, ErrorCode::unavailable, Disposition::retry,
     "connection_forced",
     "RabbitMQ or its administrator closed the connection; look at its log if this repeats."},
    {broker, AMQP_INVALID_PATH, config_invalid, stop, "vhost_refused",
     "RabbitMQ has no such virtual host any more; check the path of the destination's URL."},
    {broker, AMQP_ACCESS_REFUSED, permission_denied, stop, "permission_denied",
     "The user may not write to this exchange; grant it the write permission."},
    {broker, AMQP_NOT_FOUND, not_found, Disposition::retry, "exchange_missing",
     "The exchange does not exist; declare it, or correct the destination."},
    {broker, AMQP_RESOURCE_LOCKED, busy, Disposition::retry, "resource_locked",
     "RabbitMQ holds the resource for another connection; find out which one uses it exclusively."},
    {broker, AMQP_PRECONDITION_FAILED, invalid_argument, reject, "precondition_failed",
     "RabbitMQ does not accept this message, most often for its size; compare it with the broker's "
     "max_message_size and look at the broker's log."},
    {broker, AMQP_FRAME_ERROR, protocol, in_doubt, "protocol_error",
     "RabbitMQ could not read a frame; look for a proxy that alters the stream."},
    {broker, AMQP_SYNTAX_ERROR, protocol, in_doubt, "protocol_error",
     "RabbitMQ found a field that it cannot read; look at its log."},
    {broker, AMQP_COMMAND_INVALID, protocol, in_doubt, "protocol_error",
     "RabbitMQ did not expect this method now; look at its log."},
    {broker, AMQP_CHANNEL_ERROR, protocol, in_doubt, "protocol_error",
     "RabbitMQ considers the channel as closed; look at its log."},
    {broker, AMQP_UNEXPECTED_FRAME, protocol, in_doubt, "protocol_error",
     "RabbitMQ did not expect this frame now; look at its log."},
    {broker, AMQP_RESOURCE_ERROR, ErrorCode::unavailable, Disposition::retry, "resource_error",
     "RabbitMQ lacks a resource; look at its limits and log."},
    {broker, AMQP_NOT_ALLOWED, permission_denied, stop, "not_allowed",
     "RabbitMQ forbids this by policy; look at its log."},
    {broker, AMQP_NOT_IMPLEMENTED, unsupported, stop, "not_implemented",
     "This broker lacks a feature that Postrider needs; use RabbitMQ 3.8 or later."},
    {broker, AMQP_INTERNAL_ERROR, ErrorCode::unavailable, in_doubt, "internal_error",
     "RabbitMQ had an internal error; look at its log."},

    {consumer, AMQP_ACCESS_REFUSED, permission_denied, stop, "permission_denied",
     "The user may not read this queue; grant it the read permission."},
    {consumer, AMQP_NOT_FOUND, not_found, stop, "queue_missing",
     "RabbitMQ has no such queue, and Postrider creates none; declare it, or correct its name."},
    {consumer, AMQP_RESOURCE_LOCKED, busy, Disposition::retry, "resource_locked",
     "Another consumer has the queue for itself alone; find out which one reads it exclusively."},
    {consumer, AMQP_PRECONDITION_FAILED, ErrorCode::unavailable, Disposition::retry,
     "unacknowledged_too_long",
     "RabbitMQ closed the channel, most often because a job ran for longer than its "
     "consumer_timeout; raise it above the longest timeout of these jobs."},

    {library, AMQP_STATUS_NO_MEMORY, internal, Disposition::retry, "no_memory",
     "There is no memory for the connection; give the process more, or make the window smaller."},
    {library, AMQP_STATUS_BAD_AMQP_DATA, protocol, in_doubt, "protocol_error",
     "The broker sent what is not AMQP; check that the URL names an AMQP port."},
    {library, AMQP_STATUS_UNKNOWN_CLASS, protocol, in_doubt, "protocol_error",
     "The broker sent an unknown AMQP class; check that the URL names an AMQP 0-9-1 port."},
    {library, AMQP_STATUS_UNKNOWN_METHOD, protocol, in_doubt, "protocol_error",
     "The broker sent an unknown AMQP method; check that the URL names an AMQP 0-9-1 port."},
    {library, AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED, ErrorCode::unavailable, Disposition::retry,
     "host_not_found", "The broker's host name does not resolve; check the URL and the DNS."},
    {library, AMQP_STATUS_INCOMPATIBLE_AMQP_VERSION, unsupported, stop, "wrong_protocol",
     "The server speaks another version of AMQP; Postrider needs 0-9-1."},
    {library, AMQP_STATUS_CONNECTION_CLOSED, ErrorCode::unavailable, Disposition::retry,
     "connection_lost", "The broker ended the connection; look at its log if this repeats."},
    {library, AMQP_STATUS_BAD_URL, config_invalid, stop, "url_invalid",
     "The URL cannot be read; write amqp://user:password@host:port/vhost."},
    {library, AMQP_STATUS_SOCKET_ERROR, ErrorCode::unavailable, Disposition::retry,
     "connection_lost",
     "The broker cannot be reached; check that it runs at the URL's host and port."},
    {library, AMQP_STATUS_INVALID_PARAMETER, internal, stop, "internal",
     "rabbitmq-c refused a parameter; report this as a defect of Postrider."},
    {library, AMQP_STATUS_TABLE_TOO_BIG, limit_exceeded, reject, "headers_too_large",
     "The headers do not fit into one frame; write fewer or shorter ones."},
    {library, AMQP_STATUS_WRONG_METHOD, protocol, in_doubt, "protocol_error",
     "The broker answered with another method than asked for; look at its log."},
    {library, AMQP_STATUS_TIMEOUT, timeout, Disposition::retry, "timeout",
     "The broker did not answer in time; check the network, or raise connect_timeout."},
    {library, AMQP_STATUS_TIMER_FAILURE, internal, Disposition::retry, "internal",
     "The system's timer failed; look at the system's log."},
    {library, AMQP_STATUS_HEARTBEAT_TIMEOUT, ErrorCode::unavailable, Disposition::retry,
     "heartbeat_lost", "The broker sent nothing for two heartbeats; check the network between."},
    {library, AMQP_STATUS_UNEXPECTED_STATE, protocol, in_doubt, "protocol_error",
     "The connection is in a state that should not be; look at the broker's log."},
    {library, AMQP_STATUS_SOCKET_CLOSED, ErrorCode::unavailable, Disposition::retry,
     "connection_lost",
     "The connection is closed; nothing to do, it is opened again when it is needed."},
    {library, AMQP_STATUS_SOCKET_INUSE, internal, stop, "internal",
     "A socket was opened twice; report this as a defect of Postrider."},
    {library, AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD, unsupported, stop, "auth_unsupported",
     "The broker does not offer login by user and password (PLAIN); enable it there."},
    {library, AMQP_STATUS_UNSUPPORTED, unsupported, stop, "unsupported",
     "rabbitmq-c was built without something that is needed; use a build with TLS."},
    {library, AMQP_STATUS_TCP_ERROR, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     "The network connection broke; check that the broker runs and can be reached."},
    {library, AMQP_STATUS_TCP_SOCKETLIB_INIT_ERROR, internal, stop, "internal",
     "The socket library did not start; look at the system's log."},
    {library, AMQP_STATUS_SSL_ERROR, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     "The TLS connection broke; look at the broker's log if this repeats."},
    {library, AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED, auth_failed, stop, "tls_wrong_host",
     "The broker's certificate is for another host; use the host name that stands in it."},
    {library, AMQP_STATUS_SSL_PEER_VERIFY_FAILED, auth_failed, stop, "tls_untrusted",
     "The broker's certificate is not trusted; set ca_file to the authority that signed it."},
    {library, AMQP_STATUS_SSL_CONNECTION_FAILED, protocol, Disposition::retry, "tls_failed",
     "The TLS handshake failed; check that the URL names the broker's TLS port, and that both "
     "sides "
     "have a TLS version in common (1.2 or later)."},
    {library, AMQP_STATUS_SSL_SET_ENGINE_FAILED, internal, stop, "internal",
     "The TLS engine cannot be used; report this as a defect of Postrider."},
});

constexpr ErrorRow unknown_row = {
    broker,
    0,
    protocol,
    in_doubt,
    "unknown_code",
    "RabbitMQ answered with a code that Postrider does not know; look at the broker's log."};

}  // namespace

std::span<const ErrorRow> error_rows() noexcept {
  return rows;
}

const ErrorRow& find_error(ErrorSource source, int native_code) noexcept {
  const auto find = [native_code](ErrorSource in) {
    return std::find_if(rows.begin(), rows.end(), [=](const ErrorRow& row) {
      return row.source == in && row.native_code == native_code;
    });
  };
  auto row = find(source);
  // What has no meaning of its own at login, or to a consumer, has its general one.
  if (row == rows.end() && source != ErrorSource::library) row = find(ErrorSource::broker);
  return row == rows.end() ? unknown_row : *row;
}

Error native_error(ErrorSource source, int native_code) {
  const auto& row = find_error(source, native_code);
  return {row.code, row.disposition, std::string(row.sentence), "amqp",
          std::to_string(native_code)};
}

Outcome native_outcome(ErrorSource source, int native_code) {
  const auto& row = find_error(source, native_code);
  switch (row.disposition) {
    case Disposition::reject:
      return Outcome::rejected(row.word, row.sentence);
    case Disposition::in_doubt:
      return Outcome::unknown(row.word, row.sentence);
    case Disposition::retry:
    case Disposition::stop:
      return Outcome::unavailable(row.word, row.sentence);
  }
  return Outcome::unknown(row.word, row.sentence);
}

}  // namespace postrider::amqp
