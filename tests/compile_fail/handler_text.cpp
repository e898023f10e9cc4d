// expect: a handler cannot ask for this parameter
#include "compile_fail/handler_prelude.hpp"

// a text is no service, although its type is a class.
void bind(postrider::Handlers& handlers) {
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [](const std::string& /*order_id*/) {});
#else
  handlers.bind("ship_order", [](const postrider::Event&) {});
#endif
}
