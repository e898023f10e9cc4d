#pragma once
#include <cstdint>
#include <string>

namespace postrider::runner {

/// Tells a SIGKILL of the kernel's out-of-memory killer from other ones, by the counter of our
/// control group. Where there is none, nothing is ever called out of memory.
///
/// Thread safety: one thread at a time.
class OomWatch {
 public:
  /// `folder`: of the control group; empty: the one that this process is in.
  explicit OomWatch(const std::string& folder);

  /// The state at the start of a process.
  struct Mark {
    std::uint64_t kills = 0;
    std::uint64_t explained = 0;
  };
  [[nodiscard]] Mark mark() const;

  /// Whether a process that ran since `mark` and died of SIGKILL was killed for memory. Each kill
  /// of the counter explains one death.
  [[nodiscard]] bool explains_death(const Mark& mark);

 private:
  [[nodiscard]] std::uint64_t kills() const;

  std::string file_;
  std::uint64_t explained_ = 0;
};

}  // namespace postrider::runner
