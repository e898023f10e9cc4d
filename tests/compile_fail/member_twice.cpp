// expect: (redeclaration|conflicting declaration|redefinition)
#include <postrider/typed_event.hpp>

struct Event {
  int id = 0;
  int other = 0;
};
#ifdef POSTRIDER_EXPECT_FAILURE
POSTRIDER_EVENT(Event, "event", id, id)
#else
POSTRIDER_EVENT(Event, "event", id, other)
#endif
