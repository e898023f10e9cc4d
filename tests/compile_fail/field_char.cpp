// expect: Event::letter has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  char letter;
};
POSTRIDER_EVENT(Event, "event", id, letter)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
