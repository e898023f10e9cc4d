// expect: Event::either has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  std::variant<int, bool> either;
};
POSTRIDER_EVENT(Event, "event", id, either)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
