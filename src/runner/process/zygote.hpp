#pragma once
/// \file
/// The process that forks the children of a worker, and tells it how they end.
///
/// Its end of the control socket is the only thing that keeps it alive: when the worker closes the
/// other one, or dies, it kills all children and goes.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <postrider/result.hpp>

#include "base/descriptor.hpp"

namespace postrider::runner {

/// What the zygote says, in one packet each.
struct ZygoteNews {
  enum class Kind : std::int32_t { child_started, child_ended };
  Kind kind = Kind::child_started;
  std::uint32_t slot = 0;
  std::int32_t pid = 0;
  std::int32_t signal = 0;     ///< of `child_ended`
  std::int32_t exit_code = 0;  ///< with signal 0
};

class Zygote {
 public:
  /// Runs in a child until its worker is gone; gets the slot's socket.
  using ChildMain = std::function<void(Descriptor socket)>;

  /// Forks it. Requires: this process has one thread. Errors: `unavailable`.
  [[nodiscard]] static Result<Zygote> start(std::size_t slots, const ChildMain& child_main);

  Zygote(Zygote&& other) noexcept
      : control_(std::move(other.control_)), pid_(std::exchange(other.pid_, -1)) {}
  Zygote& operator=(Zygote&&) = delete;
  ~Zygote();

  /// Readable when `receive` has something.
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  struct Received {
    ZygoteNews news;
    Descriptor socket;  ///< of `child_started`
  };
  /// Empty when there is nothing now. Error: the zygote is gone.
  [[nodiscard]] Result<std::optional<Received>> receive();
  /// Kills that child of a slot with its process group; its end is told as any other. Nothing when
  /// another child has taken its place.
  void kill(std::uint32_t slot, pid_t child) noexcept;
  /// Ends it with all children, and waits. Idempotent.
  void close();

 private:
  Zygote(Descriptor control, pid_t pid) : control_(std::move(control)), pid_(pid) {}

  Descriptor control_;
  pid_t pid_ = -1;
};

}  // namespace postrider::runner
