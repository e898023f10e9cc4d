// The examples' own destination against the suite that defines a publisher: what a reader copies is
// held to what our backends are held to.
#include <condition_variable>
#include <mutex>
#include <thread>

#include <postrider/testing/publisher_conformance.hpp>

#include "common/http.hpp"
#include "common/http_publisher.hpp"

namespace postrider::testing {
namespace {

/// A service that keeps what it is sent.
class HttpHarness final : public PublisherHarness {
 public:
  HttpHarness() { bring_up(); }
  ~HttpHarness() override {
    thaw();
    take_down();
  }

  std::unique_ptr<Publisher> open_publisher() override {
    examples::HttpPublisherOptions options;
    options.port = port_;
    return examples::make_http_publisher(options);
  }

  std::vector<Received> received() override {
    const std::lock_guard lock(mutex_);
    return received_;
  }

  bool take_down() override {
    if (server_) server_->stop();
    thread_ = {};
    server_.reset();
    return true;
  }

  bool bring_up() override {
    examples::HttpServerOptions options;
    options.port = port_;
    options.most_body_bytes = examples::most_http_payload_bytes;
    server_ = std::make_unique<examples::HttpServer>(
        options, [this](const auto& request) { return take(request); });
    port_ = server_->port();
    thread_ = std::jthread([this] { server_->run(); });
    return true;
  }

  bool freeze() override {
    const std::lock_guard lock(mutex_);
    frozen_ = true;
    return true;
  }

  bool thaw() override {
    const std::lock_guard lock(mutex_);
    frozen_ = false;
    thawed_.notify_all();
    return true;
  }

 private:
  examples::HttpResponse take(const examples::HttpRequest& request) {
    std::unique_lock lock(mutex_);
    thawed_.wait(lock, [this] { return !frozen_; });
    const auto event = examples::event_of(request);
    if (!event) return {422, "{}", {}};
    const auto& sent = event.value();
    received_.push_back(
        {sent.id.value().to_string(), sent.type, sent.payload, sent.content_type, sent.headers});
    return {200, "{}", {}};
  }

  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable thawed_;
  bool frozen_ = false;
  std::vector<Received> received_;
  std::unique_ptr<examples::HttpServer> server_;
  std::jthread thread_;
};

INSTANTIATE_TEST_SUITE_P(HttpExample, PublisherConformance,
                         ::testing::Values(PublisherCase{
                             "loopback", [] { return std::make_unique<HttpHarness>(); }}),
                         case_name);

}  // namespace
}  // namespace postrider::testing
