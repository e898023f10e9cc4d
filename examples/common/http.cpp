#include "common/http.hpp"

#include <algorithm>
#include <cctype>
#include <deque>
#include <iostream>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace examples {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using postrider::Disposition;
using postrider::Error;
using postrider::ErrorCode;

constexpr int http_1_1 = 11;
constexpr std::size_t drained_at_once = 4096;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

template <class Fields>
HttpHeaders headers_of(const Fields& fields) {
  HttpHeaders headers;
  for (const auto& field : fields)
    headers[lower_case(field.name_string())] = std::string(field.value());
  return headers;
}

HttpRequest request_of(const http::request<http::string_body>& message) {
  return {std::string(message.method_string()), std::string(message.target()), headers_of(message),
          message.body()};
}

http::response<http::string_body> message_of(const HttpResponse& response, bool keep_alive) {
  http::response<http::string_body> message(static_cast<http::status>(response.status), http_1_1);
  message.set(http::field::content_type, "application/json");
  for (const auto& [name, value] : response.headers)
    message.set(name, value);
  message.keep_alive(keep_alive);
  message.body() = response.body;
  message.prepare_payload();
  return message;
}

HttpResponse refusal(int status, const std::string& message) {
  return {status, R"({"error":"unreadable_request","message":")" + message + "\"}\n", {}};
}

/// What to answer to bytes that are no request; none when nobody waits for an answer.
std::optional<HttpResponse> refusal_of(const beast::error_code& error) {
  if (error == http::error::body_limit) return refusal(413, "The body is too large.");
  if (error == http::error::header_limit) return refusal(431, "The headers are too large.");
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error.category() == http::make_error_code(http::error::bad_version).category()) {
    return refusal(400, "This is not HTTP/1.1.");
  }
  return {};
}

HttpResponse answer(const HttpServer::Handler& handler, const HttpRequest& request) {
  try {
    return handler(request);
  } catch (const std::exception& error) {
    std::cerr << request.method << ' ' << request.target << ": " << error.what() << std::endl;
    return {500, "{\"error\":\"internal\",\"message\":\"The server could not do it.\"}\n", {}};
  }
}

/// One connection. It lives as long as an operation on it is pending.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpServerOptions& options, const HttpServer::Handler& handler,
          std::function<void()> ended)
      : stream_(std::move(socket)),
        options_(options),
        handler_(handler),
        ended_(std::move(ended)) {}
  ~Session() { ended_(); }

  void read() {
    parser_.emplace();
    parser_->body_limit(options_.most_body_bytes);
    stream_.expires_after(options_.patience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       self->on_read(error);
                     });
  }

 private:
  void on_read(const beast::error_code& error) {
    if (!error) {
      const auto& message = parser_->get();
      return write(answer(handler_, request_of(message)), message.keep_alive());
    }
    if (const auto refusal = refusal_of(error)) write(*refusal, false);
  }

  void write(const HttpResponse& response, bool keep_alive) {
    response_ = message_of(response, keep_alive);
    stream_.expires_after(options_.patience);
    http::async_write(
        stream_, response_,
        [self = shared_from_this(), keep_alive](beast::error_code error, std::size_t) {
          if (error) return;
          if (keep_alive) return self->read();
          self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
          self->drain();
        });
  }

  /// Reads what still comes, for as long as the patience for the answer lasts: a socket that is
  /// closed before takes the answer back with a reset.
  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(drained_at_once),
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (!error) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  const HttpServerOptions& options_;
  const HttpServer::Handler& handler_;
  std::function<void()> ended_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

/// Runs one asynchronous operation to its end.
template <class Start>
beast::error_code complete(asio::io_context& context, Start start) {
  beast::error_code result;
  start([&result](const beast::error_code& error, auto&&...) { result = error; });
  context.restart();
  context.run();
  return result;
}

Error no_connection(int port, const beast::error_code& error) {
  return {ErrorCode::unavailable, Disposition::retry,
          "Nobody answers at 127.0.0.1:" + std::to_string(port) + ". Start the service.", "http",
          std::to_string(error.value())};
}

Error no_answer(const beast::error_code& error) {
  const bool late = error == beast::error::timeout;
  return {
      late ? ErrorCode::timeout : ErrorCode::protocol, Disposition::in_doubt,
      late ? "No answer came in time. Send it again." : "The connection was cut. Send it again.",
      "http", std::to_string(error.value())};
}

http::request<http::string_body> message_of(const HttpRequest& request) {
  http::request<http::string_body> message;
  message.version(http_1_1);
  message.method_string(request.method);
  message.target(request.target);
  message.set(http::field::host, "127.0.0.1");
  for (const auto& [name, value] : request.headers)
    message.set(name, value);
  message.keep_alive(false);
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, Handler handler)
      : options_(options),
        handler_(std::move(handler)),
        acceptor_(context_, {asio::ip::address_v4::loopback(),
                             static_cast<asio::ip::port_type>(options.port)}) {
    accept();
  }
  /// Sessions that are left end here, while what they call is still there.
  ~Impl() { stopping_ = true; }

  int port() const { return acceptor_.local_endpoint().port(); }

  void run() {
    asio::signal_set signals(context_, SIGINT, SIGTERM);
    signals.async_wait([this](const beast::error_code& error, int) {
      if (!error) context_.stop();
    });
    context_.run();
  }

  void stop() {
    asio::post(context_, [this] { context_.stop(); });
  }

 private:
  void accept() {
    accepting_ = true;
    acceptor_.async_accept([this](const beast::error_code& error, tcp::socket socket) {
      accepting_ = false;
      if (!error) {
        ++sessions_;
        std::make_shared<Session>(std::move(socket), options_, handler_, [this] {
          on_ended();
        })->read();
      }
      if (sessions_ < options_.most_connections) accept();
    });
  }

  void on_ended() {
    --sessions_;
    if (!stopping_ && !accepting_) accept();
  }

  const HttpServerOptions options_;
  const Handler handler_;
  std::size_t sessions_ = 0;
  bool accepting_ = false;
  bool stopping_ = false;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
};

HttpServer::HttpServer(const HttpServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return impl_->port();
}

void HttpServer::run() {
  impl_->run();
}

void HttpServer::stop() {
  impl_->stop();
}

postrider::Result<HttpResponse> send_http(int port, const HttpRequest& request,
                                          postrider::Deadline deadline) {
  asio::io_context context(1);
  beast::tcp_stream stream(context);
  stream.expires_after(deadline.remaining());
  const tcp::endpoint server(asio::ip::address_v4::loopback(),
                             static_cast<asio::ip::port_type>(port));
  if (const auto error =
          complete(context, [&](auto done) { stream.async_connect(server, std::move(done)); })) {
    return no_connection(port, error);
  }
  const auto message = message_of(request);
  if (const auto error = complete(
          context, [&](auto done) { http::async_write(stream, message, std::move(done)); })) {
    return no_answer(error);
  }
  beast::flat_buffer buffer;
  http::response<http::string_body> response;
  if (const auto error = complete(context, [&](auto done) {
        http::async_read(stream, buffer, response, std::move(done));
      })) {
    return no_answer(error);
  }
  return HttpResponse{static_cast<int>(response.result_int()), response.body(),
                      headers_of(response)};
}

}  // namespace examples
