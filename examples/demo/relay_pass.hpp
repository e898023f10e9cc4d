#pragma once
/// \file
/// The relay of the demo: made for one pass, as `postrider relay` is. All that it has to remember
/// stands in the database.

#include <string>

#include <postrider/relay_values.hpp>
#include <postrider/testing/memory_publisher.hpp>

namespace examples::demo {

/// What carries the shop's events to the delivery service.
struct RelayPass {
  std::string shop_database;
  int delivery_port = 0;
  /// What goes wrong on the network in this pass, by number of the attempt. With `lost_ack` the
  /// request is made, and its answer is withheld from the relay.
  postrider::testing::FaultScript faults;
  postrider::milliseconds retry_delay{300};
};

/// Throws when the database cannot be used.
[[nodiscard]] postrider::PassReport run_relay_once(const RelayPass& pass);

}  // namespace examples::demo
