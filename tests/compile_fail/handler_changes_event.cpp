// expect: a handler cannot ask for this parameter
#include "compile_fail/handler_prelude.hpp"

// An event is immutable.
#ifdef POSTRIDER_EXPECT_FAILURE
void ship(postrider::Event& /*event*/) {}
#else
void ship(const postrider::Event& /*event*/) {}
#endif
void bind(postrider::Handlers& handlers) {
  handlers.bind("ship_order", &ship);
}
