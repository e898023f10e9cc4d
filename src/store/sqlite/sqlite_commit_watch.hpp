#pragma once
/// \file
/// Tells when somebody has written to a database: a watch on its write-ahead log.
///
/// Every commit in WAL mode writes the log before it can be seen, also one of another process. The
/// kernel notes that write while nobody is looking, so what happens between two waits ends the
/// second one at once. The event comes *before* the commit can be seen: whoever was woken has to
/// look in a writing transaction, which waits for the writer.
///
/// Bound: one inotify instance per object that has waited, one watch in it.

#include <cstdint>
#include <optional>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

#include "base/bell.hpp"
#include "base/descriptor.hpp"

namespace postrider::store::sqlite {

class SqliteCommitWatch {
 public:
  /// Watches `log`; what was written before is not told of. True: it is watched from now on, and
  /// the caller has to look once more for what came before. False: it was watched already, or
  /// cannot be, see `works`.
  bool arm(const std::string& log);
  [[nodiscard]] bool works() const noexcept { return watch_ >= 0; }

  enum class Woken : std::uint8_t { by_write, by_wake, by_deadline };
  Woken wait(milliseconds patience);

  /// Thread safety: any thread.
  void wake() noexcept { bell_.ring(); }

 private:
  bool take_events();

  Bell bell_;
  Descriptor inotify_;
  int watch_ = -1;
};

}  // namespace postrider::store::sqlite
