#include "broker/amqp/amqp_errors.hpp"

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace postrider::amqp {
namespace {

constexpr auto login = ErrorSource::login;
constexpr auto broker = ErrorSource::broker;
constexpr auto consumer = ErrorSource::consumer;
constexpr auto library = ErrorSource::library;

/// One row per row of the table; numbers instead of names, so that a wrong name there is seen here.
const struct {
  ErrorSource source;
  int native_code;
  ErrorCode code;
  Disposition disposition;
  std::string_view word;
  OutcomeKind outcome;
} expectations[] = {
    {login, 403, ErrorCode::auth_failed, Disposition::stop, "auth_failed",
     OutcomeKind::unavailable},
    {login, 530, ErrorCode::config_invalid, Disposition::stop, "vhost_refused",
     OutcomeKind::unavailable},
    {login, 402, ErrorCode::config_invalid, Disposition::stop, "vhost_refused",
     OutcomeKind::unavailable},
    {login, 320, ErrorCode::unavailable, Disposition::retry, "connection_forced",
     OutcomeKind::unavailable},
    {login, 506, ErrorCode::unavailable, Disposition::retry, "resource_error",
     OutcomeKind::unavailable},
    {login, 541, ErrorCode::unavailable, Disposition::retry, "internal_error",
     OutcomeKind::unavailable},

    {broker, 311, ErrorCode::limit_exceeded, Disposition::reject, "content_too_large",
     OutcomeKind::rejected},
    {broker, 312, ErrorCode::not_found, Disposition::reject, "unroutable", OutcomeKind::rejected},
    {broker, 313, ErrorCode::not_found, Disposition::retry, "no_consumers",
     OutcomeKind::unavailable},
    {broker, 320, ErrorCode::unavailable, Disposition::retry, "connection_forced",
     OutcomeKind::unavailable},
    {broker, 402, ErrorCode::config_invalid, Disposition::stop, "vhost_refused",
     OutcomeKind::unavailable},
    {broker, 403, ErrorCode::permission_denied, Disposition::stop, "permission_denied",
     OutcomeKind::unavailable},
    {broker, 404, ErrorCode::not_found, Disposition::retry, "exchange_missing",
     OutcomeKind::unavailable},
    {broker, 405, ErrorCode::busy, Disposition::retry, "resource_locked", OutcomeKind::unavailable},
    {broker, 406, ErrorCode::invalid_argument, Disposition::reject, "precondition_failed",
     OutcomeKind::rejected},
    {broker, 501, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {broker, 502, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {broker, 503, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {broker, 504, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {broker, 505, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {broker, 506, ErrorCode::unavailable, Disposition::retry, "resource_error",
     OutcomeKind::unavailable},
    {broker, 530, ErrorCode::permission_denied, Disposition::stop, "not_allowed",
     OutcomeKind::unavailable},
    {broker, 540, ErrorCode::unsupported, Disposition::stop, "not_implemented",
     OutcomeKind::unavailable},
    {broker, 541, ErrorCode::unavailable, Disposition::in_doubt, "internal_error",
     OutcomeKind::unknown},

    {consumer, 403, ErrorCode::permission_denied, Disposition::stop, "permission_denied",
     OutcomeKind::unavailable},
    {consumer, 404, ErrorCode::not_found, Disposition::stop, "queue_missing",
     OutcomeKind::unavailable},
    {consumer, 405, ErrorCode::busy, Disposition::retry, "resource_locked",
     OutcomeKind::unavailable},
    {consumer, 406, ErrorCode::unavailable, Disposition::retry, "unacknowledged_too_long",
     OutcomeKind::unavailable},

    {library, -0x01, ErrorCode::internal, Disposition::retry, "no_memory",
     OutcomeKind::unavailable},
    {library, -0x02, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {library, -0x03, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {library, -0x04, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {library, -0x05, ErrorCode::unavailable, Disposition::retry, "host_not_found",
     OutcomeKind::unavailable},
    {library, -0x06, ErrorCode::unsupported, Disposition::stop, "wrong_protocol",
     OutcomeKind::unavailable},
    {library, -0x07, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     OutcomeKind::unavailable},
    {library, -0x08, ErrorCode::config_invalid, Disposition::stop, "url_invalid",
     OutcomeKind::unavailable},
    {library, -0x09, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     OutcomeKind::unavailable},
    {library, -0x0A, ErrorCode::internal, Disposition::stop, "internal", OutcomeKind::unavailable},
    {library, -0x0B, ErrorCode::limit_exceeded, Disposition::reject, "headers_too_large",
     OutcomeKind::rejected},
    {library, -0x0C, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {library, -0x0D, ErrorCode::timeout, Disposition::retry, "timeout", OutcomeKind::unavailable},
    {library, -0x0E, ErrorCode::internal, Disposition::retry, "internal", OutcomeKind::unavailable},
    {library, -0x0F, ErrorCode::unavailable, Disposition::retry, "heartbeat_lost",
     OutcomeKind::unavailable},
    {library, -0x10, ErrorCode::protocol, Disposition::in_doubt, "protocol_error",
     OutcomeKind::unknown},
    {library, -0x11, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     OutcomeKind::unavailable},
    {library, -0x12, ErrorCode::internal, Disposition::stop, "internal", OutcomeKind::unavailable},
    {library, -0x13, ErrorCode::unsupported, Disposition::stop, "auth_unsupported",
     OutcomeKind::unavailable},
    {library, -0x14, ErrorCode::unsupported, Disposition::stop, "unsupported",
     OutcomeKind::unavailable},
    {library, -0x100, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     OutcomeKind::unavailable},
    {library, -0x101, ErrorCode::internal, Disposition::stop, "internal", OutcomeKind::unavailable},
    {library, -0x200, ErrorCode::unavailable, Disposition::retry, "connection_lost",
     OutcomeKind::unavailable},
    {library, -0x201, ErrorCode::auth_failed, Disposition::stop, "tls_wrong_host",
     OutcomeKind::unavailable},
    {library, -0x202, ErrorCode::auth_failed, Disposition::stop, "tls_untrusted",
     OutcomeKind::unavailable},
    {library, -0x203, ErrorCode::protocol, Disposition::retry, "tls_failed",
     OutcomeKind::unavailable},
    {library, -0x204, ErrorCode::internal, Disposition::stop, "internal", OutcomeKind::unavailable},
};

TEST(AmqpErrors, EveryNativeCodeMeansWhatTheTableSays) {
  for (const auto& row : expectations) {
    const std::string native = std::to_string(row.native_code);
    const auto error = native_error(row.source, row.native_code);
    EXPECT_EQ(error.code, row.code) << native;
    EXPECT_EQ(error.disposition, row.disposition) << native;
    EXPECT_EQ(error.origin, "amqp") << native;
    EXPECT_EQ(error.native_code, native);
    const auto outcome = native_outcome(row.source, row.native_code);
    EXPECT_EQ(outcome.kind, row.outcome) << native;
    EXPECT_EQ(outcome.code, row.word) << native;
  }
}

TEST(AmqpErrors, NoRowIsWithoutItsExpectation) {
  std::set<std::pair<ErrorSource, int>> expected;
  for (const auto& row : expectations)
    expected.emplace(row.source, row.native_code);
  std::set<std::pair<ErrorSource, int>> rows;
  for (const auto& row : error_rows()) {
    EXPECT_TRUE(rows.emplace(row.source, row.native_code).second) << row.native_code << " twice";
  }
  EXPECT_EQ(rows, expected);
}

TEST(AmqpErrors, EverySentenceFitsIntoAnOutcomeAndIsOne) {
  for (const auto& row : error_rows()) {
    EXPECT_LE(row.sentence.size(), Outcome::detail_bytes) << row.sentence;
    EXPECT_TRUE(row.sentence.ends_with('.')) << row.sentence;
  }
}

TEST(AmqpErrors, AnUnknownCodeIsInDoubt) {
  for (const auto source : {login, broker, library}) {
    const auto error = native_error(source, 777);
    EXPECT_EQ(error.code, ErrorCode::protocol);
    EXPECT_EQ(error.disposition, Disposition::in_doubt);
    EXPECT_EQ(error.native_code, "777");
    EXPECT_EQ(native_outcome(source, 777).kind, OutcomeKind::unknown);
  }
}

TEST(AmqpErrors, LoginFallsBackToTheGeneralMeaning) {
  EXPECT_EQ(native_error(login, 501).code, ErrorCode::protocol);
}

}  // namespace
}  // namespace postrider::amqp
