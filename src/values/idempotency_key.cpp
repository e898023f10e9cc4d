#include <postrider/outbox.hpp>

#include "values/name_check.hpp"

namespace postrider {

Result<void> check(const IdempotencyKey& key) {
  constexpr std::size_t most_bytes = EventLimits().name_bytes;
  if (auto checked = check_name("the scope of the idempotency key", key.scope, most_bytes);
      !checked) {
    return checked;
  }
  return check_name("the idempotency key", key.key, most_bytes);
}

}  // namespace postrider
