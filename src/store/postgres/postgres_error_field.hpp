#pragma once
/// \file
/// Reads one field of an error that the server answered.
///
/// Ownership: what is returned is the result's.

#include <libpq-fe.h>

#include <string_view>

namespace postrider::store::postgres {

/// `code` is one of PG_DIAG_…; empty when the server did not tell it.
[[nodiscard]] inline std::string_view error_field(const pg_result* result, int code) {
  const char* const text = PQresultErrorField(result, code);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace postrider::store::postgres
