#pragma once
/// \file
/// What a worker and the children that run its handlers say to each other, over a stream socket
/// between them. Both ends are forks of one program, so there is one format and no version.
///
///   frame = length of the rest (4 bytes) | kind (1 byte) | fields, one after the other
///   field = number (8 bytes) | text (4 bytes of length, bytes); byte order of the machine
///
/// A child may have been damaged by its handler: what comes from it is checked like foreign input.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/result.hpp>

namespace postrider::runner {

/// A task holds one event with its headers.
inline constexpr std::size_t most_frame_bytes_to_child =
    EventLimits::most_payload_bytes + (8U << 20U);
/// A checkpoint, and texts that are cut.
inline constexpr std::size_t most_frame_bytes_from_child = 1U << 20U;

/// The attempt is to stop.
struct StopFrame {
  DispatchId dispatch_id;
};
/// To the question that the child asked last; it asks one at a time.
struct AnswerFrame {
  Result<AttemptState> state;
};
using FrameToChild = std::variant<Task, StopFrame, AnswerFrame>;

/// The attempt has ended.
struct OutcomeFrame {
  DispatchId dispatch_id;
  JobOutcome outcome;
};
struct QuestionFrame {
  AttemptUpdate update;
};
using FrameFromChild = std::variant<OutcomeFrame, QuestionFrame>;

[[nodiscard]] std::string encode(const FrameToChild& frame);
[[nodiscard]] std::string encode(const FrameFromChild& frame);

/// Empty when the bytes are no frame. `body` is what stands behind the length.
[[nodiscard]] std::optional<FrameToChild> decode_to_child(std::string_view body);
[[nodiscard]] std::optional<FrameFromChild> decode_from_child(std::string_view body);

/// Puts frames together from what a socket gives.
class FrameBuffer {
 public:
  explicit FrameBuffer(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void add(std::string_view bytes) { bytes_.append(bytes); }
  /// The next body; empty when it is not there as a whole.
  [[nodiscard]] std::optional<std::string> next();
  /// A length over the limit: nothing behind it can be understood.
  [[nodiscard]] bool is_broken() const;

 private:
  [[nodiscard]] std::optional<std::size_t> length() const;

  std::size_t most_bytes_;
  std::string bytes_;
};

}  // namespace postrider::runner
