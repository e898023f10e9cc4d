#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace postrider {

void assertion_failed(const char* expectation, const char* file, int line) noexcept {
  std::fprintf(stderr, "postrider: defect: expected %s at %s:%d. Please report this line.\n",
               expectation, file, line);
  std::abort();
}

}  // namespace postrider
