#pragma once
/// \file
/// The inbox: delivery at least once becomes an effect exactly once.
///
/// A receiver writes the message's identity into a table of its own database in the transaction of
/// the effect, and acknowledges the message after the commit. The primary key of that table lets
/// one of two deliveries through; the other finds the receipt.
///
///     BEGIN
///       process(…, handler)     insert (consumer, source, message id)
///         inserted              → handler writes the effect        → processed
///         was there             → handler is not called            → duplicate
///         was there, other hash → error `conflict`
///     COMMIT, then acknowledge; after an error: ROLLBACK and do not acknowledge
///
/// A process that dies before the commit leaves neither receipt nor effect, so the redelivery does
/// it; one that dies behind it leaves both, so the redelivery is a duplicate.
///
/// `SqliteInbox` stands in postrider/sqlite.hpp, `PostgresInbox` in postrider/libpq.hpp,
/// `PqxxInbox` in postrider/pqxx.hpp.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <postrider/content_hash.hpp>
#include <postrider/result.hpp>
#include <postrider/schema.hpp>

namespace postrider {

/// Which message it is, to whom. Each text has 1 to 255 bytes.
struct InboxMessage {
  std::string consumer;      ///< whose effect: two consumers of one database each do their own
  std::string source;        ///< whose ids these are: the sending service or its outbox
  std::string message_id;    ///< the event's id, the same on every delivery
  ContentHash content_hash;  ///< of what was delivered; see `content_hash`
};

/// Tells whether `message` may be recorded. Errors: as of `check` of an event.
[[nodiscard]] Result<void> check(const InboxMessage& message);

enum class InboxResult : std::uint8_t {
  processed,  ///< the handler ran; commit, then acknowledge
  duplicate,  ///< it ran before; acknowledge
};

[[nodiscard]] std::string_view to_string(InboxResult result) noexcept;

/// The error of a message id that comes with other content than before: somebody reuses ids, or a
/// message was changed on its way. Set it aside for a person; never acknowledge it away.
[[nodiscard]] Error other_content(std::string_view origin);

/// Claims with `inbox` and calls the handler when the claim was the first: with the handle, or
/// without arguments. It may return nothing or a `Result<void>`.
///
/// Errors: those of the claim, and the handler's. After any error, and when the handler throws,
///   which goes on to the caller, the caller rolls its transaction back.
template <class Inbox, class Handle, class Handler>
Result<InboxResult> process_in(const Inbox& inbox, Handle&& handle, const InboxMessage& message,
                               Handler&& handler) {
  auto claimed = inbox.claim(handle, message);
  if (!claimed || *claimed == InboxResult::duplicate) return claimed;
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<Handler, Handle>) {
      return std::invoke(std::forward<Handler>(handler), handle);
    } else {
      return std::invoke(std::forward<Handler>(handler));
    }
  };
  using Returned = std::invoke_result_t<decltype(call)>;
  static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, Result<void>>,
                "a handler of the inbox returns nothing or a postrider::Result<void>");
  if constexpr (std::is_void_v<Returned>) {
    call();
  } else {
    if (auto handled = call(); !handled) return std::move(handled).error();
  }
  return claimed;
}

}  // namespace postrider
