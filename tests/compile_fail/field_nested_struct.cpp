// expect: Event::plain has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  Plain plain;
};
POSTRIDER_EVENT(Event, "event", id, plain)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
