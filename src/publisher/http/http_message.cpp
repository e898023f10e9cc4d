#include "publisher/http/http_message.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/http_fields.hpp"
#include "base/timestamp_text.hpp"
#include "publisher/common/message_limits.hpp"
#include "publisher/common/transport_headers.hpp"

namespace postrider::http {
namespace {

constexpr std::string_view type_header = "postrider-type";
constexpr std::string_view reserved_prefix = "postrider-header-";

constexpr std::array reserved_prefixes{std::string_view("postrider-"), std::string_view("webhook-"),
                                       std::string_view("proxy-"), std::string_view("sec-")};
// Those of the connection and of the request's form, and those by which a sender shows who it is:
// an event must not speak in the route's name.
constexpr std::array<std::string_view, 21> reserved_names{"accept-encoding",
                                                          "authorization",
                                                          "connection",
                                                          "content-encoding",
                                                          "content-length",
                                                          "content-type",
                                                          "cookie",
                                                          "date",
                                                          "expect",
                                                          "forwarded",
                                                          "host",
                                                          "idempotency-key",
                                                          "keep-alive",
                                                          "te",
                                                          "trailer",
                                                          "transfer-encoding",
                                                          "upgrade",
                                                          "user-agent",
                                                          "via",
                                                          "x-forwarded-for",
                                                          "x-forwarded-host"};
// What a route may set although an event may not.
constexpr std::array<std::string_view, 2> names_of_routes{"authorization", "cookie"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Plain>
std::string percent_encoded(std::string_view text, Plain is_plain) {
  std::string encoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i], i)) {
      encoded.push_back(text[i]);
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(text[i]));
    }
  }
  return encoded;
}

std::string line(std::string_view name, std::string_view value) {
  return value.empty() ? std::string(name) + ";" : fmt::format("{}: {}", name, value);
}

std::size_t bytes_of(const HeaderLines& lines) {
  std::size_t bytes = 0;
  for (const auto& one : lines)
    bytes += one.size() + 2;
  return bytes;
}

/// More is encoded than elsewhere: also blanks and quotes. Source: CloudEvents 1.0.2, HTTP binding.
std::string attribute(std::string_view value) {
  return percent_encoded(
      value, [](char c, std::size_t) { return c > ' ' && c < '\x7f' && c != '%' && c != '"'; });
}

void add_cloudevents(const Event& event, const std::string& source, HeaderLines& lines) {
  lines.push_back(line("ce-specversion", "1.0"));
  lines.push_back(line("ce-id", event.id.value().to_string()));
  lines.push_back(line("ce-source", attribute(source)));
  lines.push_back(line("ce-type", attribute(event.type)));
  lines.push_back(line("ce-time", timestamp_text(event.created_at)));
  // Sequences are compared as texts, so they all have the length of the largest.
  lines.push_back(line("ce-sequence", fmt::format("{:019}", event.seq.value())));
  if (!event.aggregate) return;
  const auto key = attribute(aggregate_key(*event.aggregate));
  lines.push_back(line("ce-subject", key));
  lines.push_back(line("ce-partitionkey", key));
}

bool is_ours(std::string_view name) {
  return name == publisher::seq_header || name == publisher::aggregate_type_header ||
         name == publisher::aggregate_id_header;
}

}  // namespace

bool is_reserved(std::string_view name) {
  const auto lower = lower_case(name);
  return contains(reserved_names, lower) ||
         std::any_of(reserved_prefixes.begin(), reserved_prefixes.end(),
                     [&](std::string_view prefix) { return lower.starts_with(prefix); });
}

bool is_of_cloudevents(std::string_view name) {
  return lower_case(name).starts_with("ce-");
}

std::string encoded_value(std::string_view value) {
  return percent_encoded(value, [&](char c, std::size_t at) {
    const bool edge = at == 0 || at + 1 == value.size();  // where a receiver drops blanks
    return c > ' ' ? c < '\x7f' && c != '%' : c == ' ' && !edge;
  });
}

std::string encoded_name(std::string_view name) {
  auto encoded = percent_encoded(name, [](char c, std::size_t) {
    return c != '%' && is_http_token({&c, 1});
  });
  if (is_reserved(encoded)) encoded.insert(0, reserved_prefix);
  return encoded;
}

Result<HeaderLines> header_lines(const Event& event, const HeaderSettings& settings) {
  HeaderLines lines = settings.fixed;
  // No `Expect`: it costs a round trip, and many servers ignore it.
  lines.emplace_back("Expect:");
  lines.push_back(event.content_type.empty()
                      ? "Content-Type:"
                      : line("Content-Type", encoded_value(event.content_type)));
  lines.push_back(line(type_header, encoded_value(event.type)));
  if (settings.idempotency_key) {
    lines.push_back(line("Idempotency-Key", event.id.value().to_string()));
  }
  const bool cloudevents = !settings.cloudevents_source.empty();
  if (cloudevents) add_cloudevents(event, settings.cloudevents_source, lines);
  for (const auto& [name, value] : publisher::transport_headers(event)) {
    auto sent_name = is_ours(name) ? name : encoded_name(name);
    if (cloudevents && is_of_cloudevents(name)) sent_name.insert(0, reserved_prefix);
    lines.push_back(line(sent_name, encoded_value(value)));
  }
  if (auto fits = publisher::check_bytes("The request's header", bytes_of(lines),
                                         most_request_header_bytes);
      !fits) {
    return std::move(fits).error();
  }
  return lines;
}

HeaderLines signature_lines(const Event& event, const WebhookKeys& keys, std::chrono::seconds at) {
  const auto id = event.id.value().to_string();
  HeaderLines lines{line("webhook-id", id), line("webhook-timestamp", std::to_string(at.count()))};
  if (!keys.empty()) lines.push_back(line("webhook-signature", keys.sign(id, at, event.payload)));
  return lines;
}

Result<std::string> fixed_line(std::string_view text) {
  const auto refuse = [](std::string message) {
    return Error{ErrorCode::config_invalid, Disposition::stop, std::move(message), "http", ""};
  };
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  if (colon == std::string_view::npos || !is_http_token(name)) {
    return refuse("headers has an entry that is no \"Name: value\"; correct it.");
  }
  auto value = text.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (!is_http_field_value(value)) {
    return refuse(
        fmt::format("headers has a value of {} that HTTP does not allow; correct it.", name));
  }
  if (is_reserved(name) && !contains(names_of_routes, lower_case(name))) {
    return refuse(fmt::format("headers has {}, which is set for every request; remove it.", name));
  }
  return line(name, value);
}

}  // namespace postrider::http
