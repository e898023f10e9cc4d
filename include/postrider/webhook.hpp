#pragma once
/// \file
/// Signatures of webhooks, for who sends and for who receives: `WebhookKeys`.
///
/// A receiver verifies before it looks at the body, and on the bytes as they came: JSON that was
/// parsed and written again is another text. Then it claims the id in its inbox (inbox.hpp), as the
/// same message may come again under the same id.
///
/// Source of the scheme: Standard Webhooks 1.0.0, its symmetric half (`v1`).
/// Thread safety: const functions from any thread.

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// The three headers that belong to a signature, as they came.
struct WebhookHeaders {
  std::string id;         ///< `webhook-id`: the same in every repetition
  std::string timestamp;  ///< `webhook-timestamp`: seconds since 1970, of the attempt
  std::string signature;  ///< `webhook-signature`: "v1,BASE64", several divided by spaces
};

/// One secret, or several while they are being replaced.
class WebhookKeys {
 public:
  static constexpr std::size_t most_keys = 8;
  static constexpr std::size_t least_key_bytes = 24;
  static constexpr std::size_t most_key_bytes = 64;
  static constexpr std::chrono::seconds default_tolerance{300};

  /// No keys: signs nothing, and takes nothing for signed.
  WebhookKeys() = default;

  /// Each secret is "whsec_" and the key in base64, which has 24 to 64 bytes.
  ///
  /// Errors: `invalid_argument` with the number of the secret, which is not quoted;
  ///   `limit_exceeded` for more than `most_keys`.
  [[nodiscard]] static Result<WebhookKeys> parse(std::span<const std::string> secrets);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }

  /// The value of `webhook-signature`: a signature by each key, in the order of the secrets.
  ///
  /// Requires: `id` holds no full stop, which divides it from what follows; `at` is what
  ///   `webhook-timestamp` says.
  [[nodiscard]] std::string sign(std::string_view id, std::chrono::seconds at,
                                 std::string_view body) const;

  /// Succeeds when one of the signatures was made by one of the keys over exactly these bytes, not
  /// longer than `tolerance` before or after `now`. Takes no longer for a signature that is nearly
  /// right.
  ///
  /// Errors: `auth_failed`. Answer with 401 or 400, and do not tell the sender which one it was.
  [[nodiscard]] Result<void> verify(const WebhookHeaders& headers, std::string_view body,
                                    Timestamp now,
                                    std::chrono::seconds tolerance = default_tolerance) const;

 private:
  std::vector<std::string> keys_;  // bytes
};

}  // namespace postrider
