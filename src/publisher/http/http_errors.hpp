#pragma once
/// \file
/// libcurl's codes. The phase decides: what failed before a request was handed to a connection was
/// surely not taken, what failed behind that may have been.

#include <span>
#include <string_view>

#include <curl/curl.h>

#include <postrider/outcome.hpp>

namespace postrider::http {

enum class Fault : std::uint8_t {
  not_sent,    ///< belongs before the request; behind it: the connection was lost
  cut,         ///< the connection ended
  silent,      ///< no answer in time
  bad_answer,  ///< what was answered is no HTTP, or more of it than is read
};

struct ErrorRow {
  CURLcode native_code;
  Fault fault;
  std::string_view word;      ///< code of the outcome while nothing was sent
  std::string_view sentence;  ///< follows the endpoint's host and port
};

[[nodiscard]] std::span<const ErrorRow> error_rows() noexcept;
/// A row that is in doubt for codes that are not in the table.
[[nodiscard]] const ErrorRow& find_error(CURLcode native_code) noexcept;

/// The outcome of a request without a status. `sent`: a connection had it, at least in part.
[[nodiscard]] Outcome fault_outcome(CURLcode native_code, bool sent, std::string_view authority);

}  // namespace postrider::http
