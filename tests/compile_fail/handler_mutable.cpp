// expect: callable as const
#include "compile_fail/handler_prelude.hpp"

// Several attempts would change `count` at once.
void bind(postrider::Handlers& handlers) {
  int count = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [count](postrider::DeliveryId) mutable { ++count; });
#else
  handlers.bind("ship_order", [count](postrider::DeliveryId) { static_cast<void>(count); });
#endif
}
