#include <postrider/result.hpp>

#include <fmt/format.h>

namespace postrider {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::limit_exceeded:
      return "limit_exceeded";
    case ErrorCode::config_invalid:
      return "config_invalid";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::key_reused:
      return "key_reused";
    case ErrorCode::no_transaction:
      return "no_transaction";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::commit_unknown:
      return "commit_unknown";
    case ErrorCode::auth_failed:
      return "auth_failed";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::primary_not_writable:
      return "primary_not_writable";
    case ErrorCode::schema_mismatch:
      return "schema_mismatch";
    case ErrorCode::storage_failed:
      return "storage_failed";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

std::string_view to_string(Disposition disposition) noexcept {
  switch (disposition) {
    case Disposition::retry:
      return "retry";
    case Disposition::in_doubt:
      return "in_doubt";
    case Disposition::reject:
      return "reject";
    case Disposition::stop:
      return "stop";
  }
  return "stop";
}

std::string describe(const Error& error) {
  if (error.native_code.empty()) return fmt::format("{}: {}", to_string(error.code), error.message);
  return fmt::format("{}: {} [{} {}]", to_string(error.code), error.message, error.origin,
                     error.native_code);
}

}  // namespace postrider
