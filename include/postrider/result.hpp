#pragma once
/// \file
/// `Error` and `Result<T>`: how a call of Postrider says that it failed.
///
/// A call that can fail for a reason outside the program returns a `Result`. Exceptions appear only
/// at the application programmer's edge (the write side and handlers). An *outcome* of an attempt
/// is another thing; see outcome.hpp.
///
/// Thread safety: values; distinct objects may be used from distinct threads.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace postrider {

/// What went wrong. The set is closed: a caller may switch over it without a default.
enum class ErrorCode : std::uint8_t {
  invalid_argument,      ///< a value given by the caller breaks a documented rule
  limit_exceeded,        ///< a size or count is over its bound; the message holds both numbers
  config_invalid,        ///< the configuration cannot be used
  not_found,             ///< the named thing does not exist
  already_exists,        ///< the thing is there already and would have to be replaced
  key_reused,            ///< an idempotency key was used before with other content
  no_transaction,        ///< the call needs an open transaction of the caller
  unavailable,           ///< the database or destination cannot be reached
  timeout,               ///< the deadline passed
  busy,                  ///< a lock is held by somebody else
  conflict,              ///< a serialization failure or deadlock; repeat the whole transaction
  commit_unknown,        ///< the answer to COMMIT was lost: both results are possible
  auth_failed,           ///< credentials were refused
  permission_denied,     ///< the role lacks a right
  primary_not_writable,  ///< connected to a read-only server
  schema_mismatch,       ///< a table or column is missing, or a migration has not run
  storage_failed,        ///< disk full, I/O error, corruption
  protocol,              ///< the peer answered something that it should never answer
  unsupported,           ///< asked for something that this backend declares not to have
  internal,              ///< a defect of Postrider
};

/// The word used for `code` in logs, JSON and messages; the same as the enumerator.
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// What a caller may conclude from a failed call.
enum class Disposition : std::uint8_t {
  retry,     ///< nothing happened; the same call may succeed later
  in_doubt,  ///< it may have happened
  reject,    ///< this will never be accepted
  stop,      ///< configuration, schema, credentials or a defect: a person has to act
};

[[nodiscard]] std::string_view to_string(Disposition disposition) noexcept;

/// A failed call.
///
/// `message` is a sentence for a person and ends with what to do. It never holds a payload, a
/// secret or text of a third party that could hold one.
struct Error {
  ErrorCode code = ErrorCode::internal;
  Disposition disposition = Disposition::stop;
  std::string message;
  std::string origin;       ///< who said it: "sqlite", "postgres", "amqp", "config", …
  std::string native_code;  ///< that system's own code ("5", "40001", "404"); empty if none
};

/// One line for people: code, message and, when there is one, origin with native code.
[[nodiscard]] std::string describe(const Error& error);

/// The value of a call or the `Error` that prevented it.
///
/// Requires: `value()` only after `ok()`, `error()` only after `!ok()`; the opposite is a defect of
/// the caller, found in every build: it throws what no code of ours expects.
template <class T>
class [[nodiscard]] Result {
 public:
  // Not explicit: `return value;` and `return error;` are how a function answers.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

/// The same for a call that returns nothing. Default-constructed it means success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] Error& error() & { return error_.value(); }
  [[nodiscard]] const Error& error() const& { return error_.value(); }
  [[nodiscard]] Error&& error() && { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

}  // namespace postrider
