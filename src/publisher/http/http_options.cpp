#include "publisher/http/http_options.hpp"

#include <postrider/route.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/http_url.hpp"

namespace postrider {
namespace http {
namespace {

class Checker {
 public:
  explicit Checker(const HttpOptions& options) : options_(options) {}

  std::vector<std::string> run() {
    check_url();
    check_parts();
    check_tls();
    check_bounds();
    return std::move(faults_);
  }

 private:
  template <class Value>
  bool take(const Result<Value>& result) {
    if (!result) faults_.push_back(result.error().message);
    return result.ok();
  }

  void check_url() {
    const auto url = parse_http_url(options_.url);
    if (!take(url)) return;
    tls_ = url->tls;
    if (!tls_ && !options_.plain_http) {
      faults_.emplace_back(
          "http:// sends payloads for everybody to read; write https://, or set plain_http = "
          "true.");
    }
    const auto guard = AddressGuard::make(options_.allow);
    if (!take(guard) || !options_.proxy.empty()) return;
    const auto address = address_of(url->host);
    if (address && !guard->allows(*address)) {
      faults_.push_back(fmt::format(
          "{} is no public address; write another URL, or name it in allow.", url->host));
    }
  }

  void check_parts() {
    (void)take(WebhookKeys::parse(options_.secrets));
    (void)take(StatusTable::make(options_.statuses));
    for (const auto& header : options_.headers)
      (void)take(fixed_line(header));
    if ((options_.format == HttpFormat::cloudevents) == options_.source.empty()) {
      faults_.emplace_back(
          "format = \"cloudevents\" and source belong together; set both or neither.");
    }
    if (options_.proxy.empty()) return;
    const auto proxy = parse_http_url(options_.proxy);
    if (!proxy || proxy->tls || proxy->target != "/") {
      faults_.emplace_back("proxy cannot be used; write http://host:port.");
    }
  }

  void check_tls() {
    const bool certificate = !options_.certificate_file.empty();
    if (certificate != !options_.key_file.empty()) {
      faults_.emplace_back("certificate_file and key_file belong together; set both or neither.");
    }
    if (!tls_ && (certificate || !options_.ca_file.empty())) {
      faults_.emplace_back(
          "Certificates are given but the URL asks for no TLS; write https:// or remove them.");
    }
  }

  void check_bounds() {
    check_count("window", options_.window, 1, Route::most_window);
    check_count("connections", options_.connections, 1, HttpOptions::most_connections);
    check_count("rate", options_.rate, 0, HttpOptions::most_rate);
    check_time("connect_timeout", options_.connect_timeout, milliseconds(1),
               HttpOptions::most_connect_timeout);
    check_time("most_retry_after", options_.most_retry_after, milliseconds(1'000),
               HttpOptions::longest_pause);
    check_time("gone_after", options_.gone_after, milliseconds(0), HttpOptions::longest_pause);
  }

  void check_count(std::string_view name, std::size_t value, std::size_t least, std::size_t most) {
    if (value >= least && value <= most) return;
    faults_.push_back(fmt::format("{} is {}; set {} to {}.", name, value, least, most));
  }

  void check_time(std::string_view name, milliseconds value, milliseconds least,
                  milliseconds most) {
    if (value >= least && value <= most) return;
    faults_.push_back(fmt::format("{} is {} ms; set {} to {} ms.", name, value.count(),
                                  least.count(), most.count()));
  }

  const HttpOptions& options_;
  bool tls_ = true;  // until the URL says otherwise
  std::vector<std::string> faults_;
};

}  // namespace

Error options_error(const std::vector<std::string>& faults) {
  return {ErrorCode::config_invalid, Disposition::stop, fmt::format("{}", fmt::join(faults, " ")),
          "config", ""};
}

Result<RequestSettings> settings_of(HttpOptions options) {
  if (const auto faults = validate(options); !faults.empty()) return options_error(faults);
  HeaderSettings headers;
  headers.idempotency_key = options.idempotency_key;
  if (options.format == HttpFormat::cloudevents) headers.cloudevents_source = options.source;
  for (const auto& header : options.headers)
    headers.fixed.push_back(fixed_line(header).value());
  RequestSettings settings{{},
                           parse_http_url(options.url)->authority(),
                           AddressGuard::make(options.allow).value(),
                           StatusTable::make(options.statuses).value(),
                           std::move(headers),
                           WebhookKeys::parse(options.secrets).value()};
  settings.options = std::move(options);
  return settings;
}

}  // namespace http

std::vector<std::string> validate(const HttpOptions& options) {
  return http::Checker(options).run();
}

}  // namespace postrider
