// expect: Event::maybe has a type that an event cannot hold
#include "compile_fail/field_prelude.hpp"

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  std::optional<std::optional<int>> maybe;
};
POSTRIDER_EVENT(Event, "event", id, maybe)
#else
};
POSTRIDER_EVENT(Event, "event", id)
#endif
