// expect: no member of Event is listed
#include <postrider/typed_event.hpp>

struct Event {
#ifdef POSTRIDER_EXPECT_FAILURE
  int id = 0;
#endif
};
POSTRIDER_EVENT(Event, "event")
