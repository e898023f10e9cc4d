// expect: Event::call has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  std::function<void()> call;
};
POSTRIDER_EVENT(Event, "event", id, call)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
