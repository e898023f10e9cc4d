#include <postrider/webhook.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/digest.hpp"

namespace postrider {
namespace {

constexpr std::string_view secret_prefix = "whsec_";
constexpr std::string_view scheme = "v1,";
/// Signatures that are looked at: a header full of them must not cost more than that.
constexpr std::size_t most_signatures = 32;

Error bad_secret(std::size_t number) {
  return {ErrorCode::invalid_argument, Disposition::stop,
          fmt::format("Secret number {} is not whsec_ and the base64 of {} to {} bytes; make one "
                      "with: echo whsec_$(openssl rand -base64 32)",
                      number, WebhookKeys::least_key_bytes, WebhookKeys::most_key_bytes),
          "webhook", ""};
}

Error refused(std::string message) {
  return {ErrorCode::auth_failed, Disposition::reject, std::move(message), "webhook", ""};
}

std::string signature_of(std::string_view key, std::string_view id, std::string_view timestamp,
                         std::string_view body) {
  const auto digest = hmac_sha256(key, {id, ".", timestamp, ".", body});
  const std::string_view bytes(reinterpret_cast<const char*>(digest.data()), digest.size());
  return std::string(scheme) + encode_base64(bytes);
}

std::optional<std::chrono::seconds> parse_timestamp(std::string_view text) {
  std::int64_t seconds = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, seconds);
  if (fault != std::errc() || rest != end || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

std::vector<std::string_view> split_signatures(std::string_view text) {
  std::vector<std::string_view> signatures;
  while (!text.empty() && signatures.size() < most_signatures) {
    const auto one = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.starts_with(scheme)) signatures.push_back(one);
  }
  return signatures;
}

}  // namespace

Result<WebhookKeys> WebhookKeys::parse(std::span<const std::string> secrets) {
  if (secrets.size() > most_keys) {
    return Error{ErrorCode::limit_exceeded, Disposition::stop,
                 fmt::format("{} secrets are given; at most {} can be. Remove those that no "
                             "receiver needs any more.",
                             secrets.size(), most_keys),
                 "webhook", ""};
  }
  WebhookKeys keys;
  for (const auto& secret : secrets) {
    auto key = secret.starts_with(secret_prefix)
                   ? decode_base64(std::string_view(secret).substr(secret_prefix.size()))
                   : std::nullopt;
    if (!key || key->size() < least_key_bytes || key->size() > most_key_bytes) {
      return bad_secret(keys.keys_.size() + 1);
    }
    keys.keys_.push_back(std::move(*key));
  }
  return keys;
}

std::string WebhookKeys::sign(std::string_view id, std::chrono::seconds at,
                              std::string_view body) const {
  const auto timestamp = std::to_string(at.count());
  std::string all;
  for (const auto& key : keys_) {
    all += (all.empty() ? "" : " ") + signature_of(key, id, timestamp, body);
  }
  return all;
}

Result<void> WebhookKeys::verify(const WebhookHeaders& headers, std::string_view body,
                                 Timestamp now, std::chrono::seconds tolerance) const {
  const auto at = parse_timestamp(headers.timestamp);
  if (!at) return refused("webhook-timestamp is no number of seconds; refuse the request.");
  const auto here = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
  if (*at < here - tolerance || *at > here + tolerance) {
    return refused(
        "webhook-timestamp is too far from this clock; refuse the request, and compare the clocks "
        "if this repeats.");
  }
  const auto given = split_signatures(headers.signature);
  bool valid = false;
  for (const auto& key : keys_) {
    const auto expected = signature_of(key, headers.id, headers.timestamp, body);
    for (const auto signature : given)
      valid |= equal_in_constant_time(signature, expected);
  }
  if (!valid) {
    return refused(
        "No signature fits; refuse the request. Check that the secret is the sender's, and that "
        "the body is verified as it came.");
  }
  return {};
}

}  // namespace postrider
