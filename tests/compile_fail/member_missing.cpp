// expect: structured binding
#include <postrider/typed_event.hpp>

struct Event {
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
  int forgotten = 0;
#endif
};
POSTRIDER_EVENT(Event, "event", id)
