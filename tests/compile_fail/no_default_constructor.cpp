// expect: Event needs a default constructor
#include <postrider/typed_event.hpp>

struct Event {
#ifdef POSTRIDER_EXPECT_FAILURE
  explicit Event(int number) : id(number) {}
#endif
  int id = 0;
};
POSTRIDER_EVENT(Event, "event", id)
