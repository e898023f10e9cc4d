// expect: Event::text has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  const char* text;
};
POSTRIDER_EVENT(Event, "event", id, text)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
