#include "base/bell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace postrider {

Bell::Bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Out of descriptors, like out of memory: there is no publisher then.
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Bell::~Bell() {
  close(descriptor_);
}

void Bell::ring() noexcept {
  const eventfd_t one = 1;
  // It can fail only when the counter is full, and then the bell rings already.
  (void)eventfd_write(descriptor_, one);
}

void Bell::silence() noexcept {
  eventfd_t count = 0;
  (void)eventfd_read(descriptor_, &count);
}

}  // namespace postrider
