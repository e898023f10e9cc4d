#pragma once
/// \file
/// What stands in the two databases, laid side by side.

#include <cstdint>
#include <string>
#include <vector>

#include "common/database.hpp"
#include "common/text_table.hpp"

namespace examples::demo {

/// An event that the shop has written.
struct Written {
  std::int64_t seq = 0;
  std::string id;
  std::string order;
  std::string type;
};

/// One order in both databases; each list holds event types in their order, "placed, paid".
struct OrderBooks {
  std::string order;
  std::string written;  ///< by the shop
  std::string arrived;  ///< copies, repeats included
  std::string effects;  ///< of the delivery service
  std::int64_t parcels = 0;
};

class Books {
 public:
  /// Requires: both databases have their tables.
  Books(const std::string& shop_path, const std::string& delivery_path)
      : shop_(shop_path), delivery_(delivery_path) {}

  /// What the relay still has to deliver, in order.
  std::vector<Written> waiting();
  /// What became of each copy of the event that has arrived: "processed" or "duplicate".
  std::vector<std::string> copies_of(const std::string& event_id);
  std::vector<OrderBooks> orders();

  /// Attempts that the deliveries have used up so far.
  std::int64_t attempts() {
    return shop_.number("SELECT coalesce(sum(attempts), 0) FROM outbox_deliveries");
  }
  /// Whether others were told of an order that does not exist.
  bool announced_what_is_not_there();
  /// How many copies have arrived beyond the first of each event.
  std::int64_t repeats();

 private:
  Database shop_;
  Database delivery_;
};

}  // namespace examples::demo
