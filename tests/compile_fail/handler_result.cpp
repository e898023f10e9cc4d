// expect: a handler returns nothing, a postrider::JobOutcome or a postrider::Result<void>
#include "compile_fail/handler_prelude.hpp"

// Whether true is good or bad is a guess.
void bind(postrider::Handlers& handlers) {
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [](postrider::DeliveryId) { return true; });
#else
  handlers.bind("ship_order", [](postrider::DeliveryId) { return postrider::JobOutcome::done(); });
#endif
}
