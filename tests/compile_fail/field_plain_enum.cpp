// expect: Event::loose has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  Loose loose;
};
POSTRIDER_EVENT(Event, "event", id, loose)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
