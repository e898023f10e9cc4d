// A request goes through: name, connection, handshake (https), write, header of the answer. The
// body of the answer is never read: the status says it all, and a body may have no end.
//
// A timer of our own bounds it, and not that of Beast's stream: no timer ends a look-up of a name,
// so the exchange is finished without it, and the look-up then finds that nobody waits any more.

#include "runner/http/http_exchange.hpp"

#include <csignal>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "base/mutex.hpp"
#include "runner/http/http_verdict.hpp"

namespace postrider::runner {

/// One request. Not in the unnamed namespace, as a member of a class of the header holds it.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void run() = 0;
  virtual void stop() = 0;
};

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr int http_1_1 = 11;
constexpr std::size_t most_header_bytes = 16U << 10U;
/// Interim answers (100, 103) before the one that counts.
constexpr int most_interim_answers = 8;

http::request<http::string_body> message_of(const HttpUrl& url, HttpRequest request) {
  http::request<http::string_body> message(http::verb::post, url.target, http_1_1);
  message.set(http::field::host, url.authority());
  message.set(http::field::user_agent, "postrider");
  for (const auto& [name, value] : request.headers)
    message.set(name, value);
  message.keep_alive(false);
  message.body() = std::move(request.body);
  message.prepare_payload();
  return message;
}

bool is_address(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

ssl::context make_tls_context(const std::string& ca_file) {
  ssl::context context(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(ssl::verify_peer);
  error_code ignored;  // Nothing is trusted then, and every handshake says so.
  if (ca_file.empty()) {
    context.set_default_verify_paths(ignored);
  } else {
    context.load_verify_file(ca_file, ignored);
  }
  return context;
}

/// It lives as long as an operation on it is pending. Used by the thread of its context only.
template <class Stream>
class StreamExchange final : public HttpExchange,
                             public std::enable_shared_from_this<StreamExchange<Stream>> {
 public:
  using OnEnd = std::function<void(AttemptEnd)>;

  StreamExchange(asio::io_context& context, const HttpSettings& settings, Stream stream,
                 HttpRequest request, OnEnd on_end)
      : settings_(settings),
        resolver_(context),
        timer_(context),
        stream_(std::move(stream)),
        request_(message_of(settings.url, std::move(request))),
        on_end_(std::move(on_end)) {}

  void run() override {
    limit_time(settings_.connect_timeout);
    resolver_.async_resolve(settings_.url.host, settings_.url.port,
                            when_still_wanted([this](const error_code& error,
                                                     const tcp::resolver::results_type& found) {
                              if (error) return fail(HttpFault::unavailable, error);
                              connect(found);
                            }));
  }

  void stop() override { finish(Interrupted{}); }

 private:
  /// Keeps this alive until the operation is over, and drops its answer when nobody waits for it.
  template <class Handler>
  auto when_still_wanted(Handler handler) {
    return [self = this->shared_from_this(), handler](const error_code& error, auto&&... rest) {
      if (!self->is_finished_) handler(error, rest...);
    };
  }

  void limit_time(milliseconds time) {
    if (time == milliseconds::zero()) {
      timer_.cancel();
      return;
    }
    timer_.expires_after(time);
    timer_.async_wait(when_still_wanted([this](const error_code& error) {
      if (!error) fail(HttpFault::http_timeout, beast::error::timeout);
    }));
  }

  void connect(const tcp::resolver::results_type& found) {
    beast::get_lowest_layer(stream_).async_connect(
        found, when_still_wanted([this](const error_code& error, const auto&... /*endpoint*/) {
          if (error) return fail(HttpFault::unavailable, error);
          secure();
        }));
  }

  void secure() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      const auto& host = settings_.url.host;
      stream_.set_verify_callback(ssl::host_name_verification(host));
      if (!is_address(host)) SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str());
      stream_.async_handshake(ssl::stream_base::client,
                              when_still_wanted([this](const error_code& error) {
                                if (error) return fail(HttpFault::tls_failed, error);
                                send();
                              }));
    } else {
      send();
    }
  }

  /// One that refuses a request early closes while we still write; its answer is there all the
  /// same, so a failed write is told by the read.
  void send() {
    limit_time(settings_.answer_timeout);
    http::async_write(stream_, request_,
                      when_still_wanted([this](const error_code&, std::size_t) { receive(); }));
  }

  void receive() {
    parser_.emplace();
    parser_->header_limit(most_header_bytes);
    parser_->body_limit(boost::none);  // It is not read, however long it says to be.
    http::async_read_header(
        stream_, buffer_, *parser_,
        when_still_wanted([this](const error_code& error, std::size_t) { on_answer(error); }));
  }

  void on_answer(const error_code& error) {
    if (error) return fail(fault_of(error), error);
    const auto& answer = parser_->get();
    const bool is_interim = answer.result_int() / 100 == 1;
    if (is_interim && ++interim_answers_ <= most_interim_answers) return receive();
    const auto retry_after = answer[http::field::retry_after];
    finish(judge_http(static_cast<int>(answer.result_int()),
                      {retry_after.data(), retry_after.size()}, system_clock().wall()));
  }

  static HttpFault fault_of(const error_code& error) {
    const bool is_cut =
        error == http::error::end_of_stream || error == http::error::partial_message;
    const bool is_of_http =
        error.category() == http::make_error_code(http::error::end_of_stream).category();
    return is_of_http && !is_cut ? HttpFault::bad_answer : HttpFault::connection_lost;
  }

  /// Names host and port; path and query may hold a secret.
  void fail(HttpFault fault, const error_code& error) {
    finish(JobOutcome::retry(to_string(fault),
                             fmt::format("{}: {}", settings_.url.authority(), error.message())));
  }

  void finish(AttemptEnd end) {
    if (std::exchange(is_finished_, true)) return;
    timer_.cancel();
    resolver_.cancel();
    beast::get_lowest_layer(stream_).close();
    on_end_(std::move(end));
  }

  const HttpSettings& settings_;
  tcp::resolver resolver_;
  asio::steady_timer timer_;
  Stream stream_;
  http::request<http::string_body> request_;
  OnEnd on_end_;
  beast::flat_buffer buffer_{most_header_bytes * 2};
  std::optional<http::response_parser<http::empty_body>> parser_;
  int interim_answers_ = 0;
  bool is_finished_ = false;
};

}  // namespace

class HttpExchanges::Impl {
 public:
  Impl(HttpSettings settings, OnEnd on_end)
      : settings_(std::move(settings)),
        on_end_(std::move(on_end)),
        tls_(make_tls_context(settings_.ca_file)),
        thread_([this] { run(); }) {}
  ~Impl() { close(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start(HttpRequest request) {
    const auto id = request.id;
    if (!post_start(std::move(request))) on_end_(id, Interrupted{});
  }

  void stop(const DispatchId& id) {
    asio::post(context_, [this, id] { stop_one(id); });
  }

  void close() {
    {
      const MutexLock lock(mutex_);
      if (!std::exchange(is_closed_, true)) asio::post(context_, [this] { stop_all(); });
    }
    const MutexLock lock(close_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, nullptr);
    context_.run();
  }

  /// False after the end. With the mutex, so that nothing is posted behind the end and lost.
  bool post_start(HttpRequest request) {
    auto held = std::make_shared<HttpRequest>(std::move(request));
    const MutexLock lock(mutex_);
    if (!is_closed_) asio::post(context_, [this, held] { launch(std::move(*held)); });
    return !is_closed_;
  }

  void launch(HttpRequest request) {
    const auto id = request.id;
    auto on_end = [this, id](AttemptEnd end) {
      running_.erase(id);
      on_end_(id, std::move(end));
    };
    const auto exchange = make_exchange(std::move(request), std::move(on_end));
    running_.emplace(id, exchange);
    exchange->run();
  }

  std::shared_ptr<HttpExchange> make_exchange(HttpRequest request,
                                              std::function<void(AttemptEnd)> on_end) {
    if (settings_.url.tls) {
      return std::make_shared<StreamExchange<TlsStream>>(
          context_, settings_, TlsStream(context_, tls_), std::move(request), std::move(on_end));
    }
    return std::make_shared<StreamExchange<PlainStream>>(context_, settings_, PlainStream(context_),
                                                         std::move(request), std::move(on_end));
  }

  void stop_one(const DispatchId& id) {
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    const auto exchange = found->second;  // `stop` takes it out of the map
    exchange->stop();
  }

  /// A look-up of a name may still be pending: it is not waited for here.
  void stop_all() {
    while (!running_.empty())
      stop_one(DispatchId(running_.begin()->first));
    context_.stop();
  }

  const HttpSettings settings_;
  const OnEnd on_end_;
  ssl::context tls_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::map<DispatchId, std::shared_ptr<HttpExchange>> running_;
  Mutex mutex_;
  bool is_closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  Mutex close_mutex_;
  std::thread thread_ POSTRIDER_GUARDED_BY(close_mutex_);
};

HttpExchanges::HttpExchanges(HttpSettings settings, OnEnd on_end)
    : impl_(std::make_unique<Impl>(std::move(settings), std::move(on_end))) {}

HttpExchanges::~HttpExchanges() = default;

void HttpExchanges::start(HttpRequest request) {
  impl_->start(std::move(request));
}

void HttpExchanges::stop(const DispatchId& id) {
  impl_->stop(id);
}

void HttpExchanges::close() {
  impl_->close();
}

bool is_ca_file(const std::string& path) {
  ssl::context context(ssl::context::tls_client);
  error_code error;
  context.load_verify_file(path, error);
  return !error;
}

}  // namespace postrider::runner
