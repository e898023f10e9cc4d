#pragma once
/// \file
/// Wakes a thread that waits in poll(2), beside its socket.

namespace postrider {

/// Rings until it is silenced. Thread safety: any thread.
class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() noexcept;
  void silence() noexcept;
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace postrider
