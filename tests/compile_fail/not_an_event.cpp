// expect: (no matching function|constraints not satisfied)
#include <postrider/typed_event.hpp>

struct Part {
  int id = 0;
};
#ifdef POSTRIDER_EXPECT_FAILURE
POSTRIDER_STRUCT(Part, id)
#else
POSTRIDER_EVENT(Part, "part", id)
#endif

bool is_written() {
  return postrider::make_event(Part{1}).ok();
}
