// HTTP endpoints against the suite that defines a publisher.

#include <string>
#include <utility>

#include <postrider/publisher/http.hpp>
#include <postrider/testing/publisher_conformance.hpp>

#include "servers/chaos_proxy.hpp"
#include "servers/http_endpoint.hpp"

namespace postrider::testing {
namespace {

/// What a receiver does with %XX.
std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      decoded.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

struct HttpConfiguration {
  std::string network;  ///< a command for the proxy
  std::size_t connections = 8;
  bool is_signed = false;
};

/// An endpoint behind a proxy that can take it away.
class HttpHarness final : public PublisherHarness {
 public:
  explicit HttpHarness(HttpConfiguration configuration)
      : configuration_(std::move(configuration)), proxy_(endpoint_.port()) {
    if (!configuration_.network.empty()) proxy_.tell(configuration_.network);
  }

  std::unique_ptr<Publisher> open_publisher() override {
    HttpOptions options;
    options.url = "http://127.0.0.1:" + std::to_string(proxy_.port()) + "/hook";
    options.plain_http = true;
    options.allow = {"127.0.0.1"};
    options.connections = configuration_.connections;
    if (configuration_.is_signed) {
      options.secrets = {"whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="};
    }
    return make_http_publisher(options);
  }
  std::vector<Received> received() override {
    std::vector<Received> all;
    for (auto& request : endpoint_.requests()) {
      Received one;
      one.event_id = request.header("webhook-id");
      one.type = percent_decoded(request.header("postrider-type"));
      one.content_type = percent_decoded(request.header("Content-Type"));
      one.payload = std::move(request.body);
      for (const auto& [name, value] : request.headers)
        one.headers[percent_decoded(name)] = percent_decoded(value);
      all.push_back(std::move(one));
    }
    return all;
  }
  bool take_down() override {
    proxy_.tell("leave");
    proxy_.tell("both reset");
    return true;
  }
  bool bring_up() override {
    proxy_.tell("return");
    return true;
  }
  bool freeze() override {
    proxy_.tell("down hold");
    return true;
  }
  bool thaw() override {
    proxy_.tell("down release");
    return true;
  }

 private:
  const HttpConfiguration configuration_;
  HttpEndpoint endpoint_;
  ChaosProxy proxy_;
};

PublisherCase http_case(std::string name, HttpConfiguration configuration) {
  return {std::move(name),
          [configuration] { return std::make_unique<HttpHarness>(configuration); }};
}

INSTANTIATE_TEST_SUITE_P(Http, PublisherConformance,
                         ::testing::Values(http_case("plain", {}),
                                           http_case("signed_by_three_connections", {"", 3, true}),
                                           http_case("slow_network", {"both delay 1", 32, false})),
                         case_name);

}  // namespace
}  // namespace postrider::testing
