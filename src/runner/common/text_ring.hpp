#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace postrider::runner {

/// The last bytes of a text of any length.
class TextRing {
 public:
  explicit TextRing(std::size_t most) : most_(most) {}

  void add(std::string_view text) {
    bytes_ += text.size();
    text = text.substr(text.size() - std::min(text.size(), most_));
    const auto put = std::min(text.size(), most_ - ring_.size());
    ring_.append(text.substr(0, put));
    for (const char c : text.substr(put)) {
      ring_[next_] = c;
      next_ = (next_ + 1) % most_;
    }
  }

  /// Oldest byte first.
  [[nodiscard]] std::string last() const { return ring_.substr(next_) + ring_.substr(0, next_); }
  /// All that was ever added.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t most_;
  std::string ring_;      // grows up to `most_`, then is written around
  std::size_t next_ = 0;  // the oldest byte, once the ring is full
  std::uint64_t bytes_ = 0;
};

}  // namespace postrider::runner
