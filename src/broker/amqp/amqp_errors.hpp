#pragma once
/// \file
/// The one table of what RabbitMQ and rabbitmq-c answer, and what it means to us.

#include <cstdint>
#include <span>
#include <string_view>

#include <postrider/outcome.hpp>
#include <postrider/result.hpp>

namespace postrider::amqp {

/// Who said a number: the same reply code means other things at login than on a channel.
enum class ErrorSource : std::uint8_t {
  login,     ///< reply code of a connection.close during login
  broker,    ///< reply code of a channel.close, basic.return or a later connection.close
  consumer,  ///< the same on a channel that reads a queue, where it differs
  library,   ///< status of rabbitmq-c, negative
};

struct ErrorRow {
  ErrorSource source;
  int native_code;
  ErrorCode code;
  Disposition disposition;
  std::string_view word;      ///< reason code of an outcome
  std::string_view sentence;  ///< for people; ends with what to do
};

/// All rows, for tests and documents.
[[nodiscard]] std::span<const ErrorRow> error_rows() noexcept;

/// The row of `native_code`. A code that is not in the table is `protocol` and `in_doubt`: it may
/// have happened.
[[nodiscard]] const ErrorRow& find_error(ErrorSource source, int native_code) noexcept;

/// The same as an error with origin "amqp". `broker` texts are not quoted: they may hold anything.
[[nodiscard]] Error native_error(ErrorSource source, int native_code);

/// What became of a message that surely did not get past the broker because of `native_code`.
[[nodiscard]] Outcome native_outcome(ErrorSource source, int native_code);

}  // namespace postrider::amqp
