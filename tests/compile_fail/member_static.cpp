// expect: names provided for structured binding
#include <postrider/typed_event.hpp>

struct Event {
  int id = 0;
  static inline int count = 0;
};
#ifdef POSTRIDER_EXPECT_FAILURE
POSTRIDER_EVENT(Event, "event", id, count)
#else
POSTRIDER_EVENT(Event, "event", id)
#endif
