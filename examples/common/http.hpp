#pragma once
/// \file
/// HTTP/1.1 on the loopback interface, as small as services need it here: a server, and one request
/// of a client. Boost.Beast stays inside http.cpp.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

namespace examples {

using HttpHeaders = std::map<std::string, std::string>;  ///< names in lower case

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  HttpHeaders headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string body;  ///< JSON
  HttpHeaders headers;
};

struct HttpServerOptions {
  int port = 0;                                ///< 0: any that is free
  std::size_t most_body_bytes = 64U << 10U;    ///< more is answered with 413
  std::size_t most_connections = 64;           ///< further ones wait to be accepted
  std::chrono::milliseconds patience{10'000};  ///< for a request to arrive, and for an answer to go
};

/// A server on 127.0.0.1 with one thread: that of `run`, which calls the handler for one request at
/// a time. A slow client holds up nobody.
///
/// A request that cannot be read is answered here: 400, 413, 431. An exception of the handler is
/// answered with 500, and told on standard error.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens. Throws when the port is taken.
  HttpServer(const HttpServerOptions& options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  /// Until SIGINT, SIGTERM or `stop`.
  void run();
  /// Thread safety: any thread.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sends one request to 127.0.0.1, over a connection of its own.
///
/// Errors: `unavailable` (retry) when no connection came about, so that nothing has arrived;
///   `timeout` and `protocol` (both in doubt) when the request may have arrived and no answer came.
postrider::Result<HttpResponse> send_http(int port, const HttpRequest& request,
                                          postrider::Deadline deadline);

}  // namespace examples
