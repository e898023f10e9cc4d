// expect: a handler cannot ask for this parameter
#include "compile_fail/handler_prelude.hpp"

// A copy of a service would be another service.
void bind(postrider::Handlers& handlers) {
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [](Mailer) {});
#else
  handlers.bind("ship_order", [](Mailer&) {});
#endif
}
