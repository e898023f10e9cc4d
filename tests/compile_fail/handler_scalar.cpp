// expect: a handler cannot ask for this parameter
#include "compile_fail/handler_prelude.hpp"

// a bool may be anything; the flag has a type of its own.
void bind(postrider::Handlers& handlers) {
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [](postrider::DeliveryId, bool /*last_attempt*/) {});
#else
  handlers.bind("ship_order", [](postrider::DeliveryId, postrider::LastAttempt) {});
#endif
}
