// expect: the types of its parameters are written out
#include "compile_fail/handler_prelude.hpp"

// `auto` says nothing of what is needed.
void bind(postrider::Handlers& handlers) {
#ifdef POSTRIDER_EXPECT_FAILURE
  handlers.bind("ship_order", [](const auto& /*event*/) {});
#else
  handlers.bind("ship_order", [](const postrider::Event& /*event*/) {});
#endif
}
