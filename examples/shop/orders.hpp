#pragma once
/// \file
/// The business of the shop: what an order is and what may become of it. Each function takes part
/// in the transaction that its caller has open, and writes the event beside the change.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "common/database.hpp"

namespace examples::shop {

struct Order {
  std::int64_t id = 0;
  std::string item;
  std::int64_t quantity = 0;
  std::int64_t total_cents = 0;
  std::string status;  ///< "placed", "paid", "shipped"
};

/// The shop says no, for a reason of its business. It goes through the transaction, which rolls
/// back, to whoever answers the client.
class Refusal : public std::runtime_error {
 public:
  enum class Reason : std::uint8_t { unknown_order, unknown_item, sold_out, wrong_status };

  Refusal(Reason reason, const std::string& message)
      : std::runtime_error(message), reason_(reason) {}
  [[nodiscard]] Reason reason() const noexcept { return reason_; }

 private:
  Reason reason_;
};

/// Tables, and a few things to sell. Does nothing when they are there.
void create_shop_tables(Database& database);

// Require an open transaction, except `find_order`. Throw `Refusal`, and `DatabaseError`.
Order place_order(Database& database, const std::string& item, std::int64_t quantity);
Order pay_order(Database& database, std::int64_t id);
Order ship_order(Database& database, std::int64_t id);

[[nodiscard]] std::optional<Order> find_order(Database& database, std::int64_t id);

}  // namespace examples::shop
