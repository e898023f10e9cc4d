// expect: abstract
#include "compile_fail/handler_prelude.hpp"

// a handler is a concrete type.
struct ShipOrder {
  void operator()(postrider::DeliveryId) const {}
  virtual ~ShipOrder() = default;
#ifdef POSTRIDER_EXPECT_FAILURE
  virtual void ship() = 0;
#endif
};
void bind(postrider::Handlers& handlers, const ShipOrder& handler) {
  handlers.bind<ShipOrder>("ship_order", handler);
}
