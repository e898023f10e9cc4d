#include "cli/exit_code.hpp"

namespace postrider::cli {

ExitCode exit_code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::limit_exceeded:
    case ErrorCode::already_exists:
    case ErrorCode::key_reused:
      return ExitCode::data;
    case ErrorCode::not_found:  // the database; a missing dead letter is the command's own answer
    case ErrorCode::unavailable:
    case ErrorCode::primary_not_writable:
      return ExitCode::unavailable;
    case ErrorCode::timeout:
    case ErrorCode::busy:
    case ErrorCode::conflict:
    case ErrorCode::commit_unknown:
      return ExitCode::temporary;
    case ErrorCode::auth_failed:
    case ErrorCode::permission_denied:
      return ExitCode::permission;
    case ErrorCode::config_invalid:
    case ErrorCode::schema_mismatch:
    case ErrorCode::unsupported:
      return ExitCode::config;
    case ErrorCode::storage_failed:
      return ExitCode::io;
    case ErrorCode::no_transaction:
    case ErrorCode::protocol:
    case ErrorCode::internal:
      return ExitCode::software;
  }
  return ExitCode::software;
}

}  // namespace postrider::cli
