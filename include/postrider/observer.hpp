#pragma once
/// \file
/// The seam through which a relay tells what happens: `Observer`. Logs and metrics hang here.

#include <postrider/notice.hpp>

namespace postrider {

/// Thread safety: called by the relay's coordinating thread only.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Must not throw and should return at once: the relay waits for it.
  virtual void notice(const Notice& notice) = 0;
};

}  // namespace postrider
