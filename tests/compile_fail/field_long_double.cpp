// expect: Event::number has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  long double number;
};
POSTRIDER_EVENT(Event, "event", id, number)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
