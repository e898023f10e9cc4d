// expect: Event::map has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  std::map<int, int> map;
};
POSTRIDER_EVENT(Event, "event", id, map)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
