#pragma once
/// \file
/// Requests and the statuses that answer them. Boost.Beast and OpenSSL stay inside the .cpp file.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/job.hpp>

#include "base/http_url.hpp"

namespace postrider::runner {

struct HttpRequest {
  DispatchId id;
  std::map<std::string, std::string> headers;
  std::string body;
};

struct HttpSettings {
  HttpUrl url;
  milliseconds connect_timeout{0};
  milliseconds answer_timeout{0};  ///< 0: none
  std::string ca_file;
};

/// Runs requests beside each other, by one thread. Thread safety: any thread.
class HttpExchanges {
 public:
  /// Called once for each request, by that thread; after `close` by the caller's.
  using OnEnd = std::function<void(const DispatchId&, AttemptEnd)>;

  HttpExchanges(HttpSettings settings, OnEnd on_end);
  ~HttpExchanges();
  HttpExchanges(const HttpExchanges&) = delete;
  HttpExchanges& operator=(const HttpExchanges&) = delete;

  /// Blocking: never.
  void start(HttpRequest request);
  /// Closes the connection; the request ends as interrupted.
  void stop(const DispatchId& id);
  /// Stops everything. Idempotent.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether a file holds certificates of authorities in PEM.
[[nodiscard]] bool is_ca_file(const std::string& path);

}  // namespace postrider::runner
