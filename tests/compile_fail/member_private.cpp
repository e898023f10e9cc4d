// expect: cannot decompose
#include <postrider/typed_event.hpp>

class Event {
 public:
  int id = 0;
#ifdef POSTRIDER_EXPECT_FAILURE
 private:
  int hidden = 0;
#endif
};
POSTRIDER_EVENT(Event, "event", id)
