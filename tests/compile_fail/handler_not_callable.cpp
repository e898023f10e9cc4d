// expect: a handler is a function
#include "compile_fail/handler_prelude.hpp"

// a type without an entry point.
struct ShipOrder {
#ifndef POSTRIDER_EXPECT_FAILURE
  void operator()(postrider::DeliveryId) const {}
#endif
};
void bind(postrider::Handlers& handlers) {
  handlers.bind("ship_order", ShipOrder());
}
