#pragma once
/// \file
/// Where lines end up: `LineSink`, with one kind for regular files and one for streams.
///
/// Only a regular file can promise that a line survives a crash, and only there can a line that was
/// cut by a full disk be taken back. A stream (standard output, a FIFO, a device) can do neither.

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

namespace postrider::file {

/// The system calls whose failures a test cannot cause with a real disk.
struct FileCalls {
  ssize_t (*write)(int, const void*, std::size_t);
  int (*fdatasync)(int);
  int (*ftruncate)(int, off_t);
};
[[nodiscard]] FileCalls system_calls() noexcept;

/// What came of appending a text.
struct Appended {
  std::size_t accepted = 0;    ///< bytes from the start of the text that count as delivered
  std::size_t ambiguous = 0;   ///< bytes after these that may have arrived as well
  std::optional<Error> error;  ///< why the rest has not; none when it only needs more time
};

/// Thread safety: one thread at a time.
class LineSink {
 public:
  virtual ~LineSink() = default;

  /// Makes sure that there is something to write to.
  virtual Result<void> open() = 0;

  /// Appends whole lines, starting a new line when the last one there was cut.
  ///
  /// Blocking: for locks and full pipes until `deadline` passes or `wake_fd` becomes readable; for
  ///   the disk as long as the disk takes.
  /// After an error, what was not accepted is forgotten: a later text starts on a line of its own.
  virtual Appended append(std::string_view text, Deadline deadline, int wake_fd) = 0;

  /// Forgets a line that stays half written: the next text starts on a line of its own.
  virtual void abandon_line() = 0;

  virtual void close() = 0;
};

/// Ownership: the sink keeps `path`. A path that turns out to be no regular file is written as a
/// stream.
[[nodiscard]] std::unique_ptr<LineSink> make_path_sink(std::string path, FileCalls calls);
/// Writes to `descriptor`, which it does not own.
[[nodiscard]] std::unique_ptr<LineSink> make_stream_sink(int descriptor, std::string shown_name,
                                                         FileCalls calls);

}  // namespace postrider::file
