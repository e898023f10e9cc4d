// expect: the name of an event has 1 to 255 printable ASCII characters
#include <postrider/typed_event.hpp>

struct Event {
  int id = 0;
};
#ifdef POSTRIDER_EXPECT_FAILURE
POSTRIDER_EVENT(Event, "order placed", id)
#else
POSTRIDER_EVENT(Event, "order.placed", id)
#endif
