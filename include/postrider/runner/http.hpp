#pragma once
/// \file
/// Jobs as requests to an HTTP endpoint: one POST per attempt, with the event as JSON and the ids
/// as headers. The status is the answer: 2xx done, 408, 409, 425, 429 and 5xx retry, all others
/// fail. Source of the contract: docs/operate/jobs-exec-http.md.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <postrider/job_runner.hpp>

namespace postrider {

struct HttpRunnerOptions {
  static constexpr std::size_t most_slots = 1000;
  static constexpr milliseconds most_connect_timeout = std::chrono::minutes(5);

  /// http:// or https://, without user and password: they belong into a header.
  std::string url;
  std::size_t slots = 10;  ///< attempts at once, 1 to `most_slots`; each has a connection
  /// For name, connection and TLS together; 1 ms to `most_connect_timeout`.
  milliseconds connect_timeout{10'000};
  /// From the connection to the status; 0: until the job's own deadline.
  milliseconds answer_timeout{0};
  /// Sent with every request: Authorization and the like. Those that a runner sets are refused.
  std::map<std::string, std::string> headers;
  /// PEM file of the authorities that may vouch for the endpoint; empty: the system's.
  std::string ca_file;
};

/// Every fault of `options` at once, one sentence each; empty when they can be used.
[[nodiscard]] std::vector<std::string> validate(const HttpRunnerOptions& options);

/// Runs every job by one endpoint. A stop request closes the connection, and that is all that can
/// be done from here: the endpoint may go on, and a retry may meet it.
///
/// Requires: valid options.
[[nodiscard]] std::unique_ptr<JobRunner> make_http_runner(HttpRunnerOptions options);

}  // namespace postrider
