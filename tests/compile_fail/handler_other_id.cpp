// expect: a handler cannot ask for this parameter
#include "compile_fail/handler_prelude.hpp"

// an id that is none of the task's.
void bind(postrider::Handlers& handlers) {
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [](const postrider::WorkerId&) {});
#else
  handlers.bind("ship_order", [](const postrider::DispatchId&) {});
#endif
}
