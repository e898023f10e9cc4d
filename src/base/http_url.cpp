#include "base/http_url.hpp"

#include <algorithm>
#include <charconv>

namespace postrider {
namespace {

constexpr std::string_view plain_port = "80";
constexpr std::string_view tls_port = "443";
constexpr int last_port = 65'535;

Error bad_url(std::string message) {
  return {ErrorCode::config_invalid, Disposition::stop, std::move(message), "http", ""};
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_port(std::string_view text) {
  int number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  return fault == std::errc() && rest == end && number >= 1 && number <= last_port;
}

// What may stand in a request line: neither spaces nor controls, nor what is not ASCII.
bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

// host, host:port, [address] or [address]:port.
bool split_authority(std::string_view authority, HttpUrl& url) {
  std::string_view rest;
  if (take_prefix(authority, "[")) {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return false;
    url.host = authority.substr(0, end);
    rest = authority.substr(end + 1);
  } else {
    const auto end = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, end);
    rest = authority.substr(end);
  }
  if (url.host.empty()) return false;
  if (rest.empty()) return true;
  url.port = rest.substr(1);
  return rest.front() == ':' && is_port(url.port);
}

}  // namespace

std::string HttpUrl::authority() const {
  const auto name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (tls ? tls_port : plain_port) ? name : name + ":" + port;
}

Result<HttpUrl> parse_http_url(std::string_view text) {
  HttpUrl url;
  url.tls = take_prefix(text, "https://");
  if (!url.tls && !take_prefix(text, "http://")) {
    return bad_url("The URL does not begin with http:// or https://; write it with one of them.");
  }
  url.port = url.tls ? tls_port : plain_port;
  if (!is_printable(text)) {
    return bad_url("The URL holds a space or what is not ASCII; encode it with %.");
  }
  text = text.substr(0, text.find('#'));  // A fragment is for the client alone.
  const auto end = std::min(text.find_first_of("/?"), text.size());
  const auto authority = text.substr(0, end);
  if (authority.find('@') != std::string_view::npos) {
    return bad_url("The URL holds user or password; give them in a header Authorization.");
  }
  if (!split_authority(authority, url)) {
    return bad_url("The URL has no host, or no port from 1 to 65535; correct it.");
  }
  url.target = text.substr(end);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

}  // namespace postrider
