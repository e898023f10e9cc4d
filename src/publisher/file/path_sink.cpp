// A regular file is appended to under an exclusive lock (flock), so that several relays and routes
// may share it: only then is the end that was seen before a write still the end when a cut line has
// to be taken back.
//
// One append: lock, close a line that a crash has cut, write, sync, unlock.

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/descriptor.hpp"
#include "publisher/file/file_errors.hpp"
#include "publisher/file/line_sink.hpp"

namespace postrider::file {
namespace {

constexpr int common_flags = O_APPEND | O_CLOEXEC | O_NOCTTY;
constexpr mode_t new_file_mode = 0640;
// How often a lock that another relay holds is tried again; it holds it for one write and one sync.
constexpr std::int64_t lock_retry_ms = 2;

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Bytes up to the end of the last whole line.
std::size_t whole_lines(std::string_view text) {
  const auto last = text.rfind('\n');
  return last == std::string_view::npos ? 0 : last + 1;
}

class FileLock {
 public:
  /// Waits until `deadline` passes or `wake_fd` becomes readable; check `held`.
  FileLock(int descriptor, Deadline deadline, int wake_fd) : descriptor_(descriptor) {
    while (!(held_ = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)) {
      pollfd wake{wake_fd, POLLIN, 0};
      const auto left = std::min(deadline.remaining().count(), lock_retry_ms);
      if (left == 0 || ::poll(&wake, 1, static_cast<int>(left)) > 0) break;
    }
  }
  ~FileLock() {
    if (held_) ::flock(descriptor_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  const int descriptor_;
  bool held_ = false;
};

class PathSink final : public LineSink {
 public:
  PathSink(std::string path, FileCalls calls) : path_(std::move(path)), calls_(calls) {}

  Result<void> open() override {
    struct stat there {};
    const bool exists = ::stat(path_.c_str(), &there) == 0;
    if (!exists && errno != ENOENT) return file_error(errno, path_);
    if (file_ && exists && same_file(there, identity_)) return {};
    close();  // Moved away by a log rotation: go on in a new file under the old name.
    if (exists && S_ISDIR(there.st_mode)) return file_error(EISDIR, path_);
    const bool stream = exists && !S_ISREG(there.st_mode);
    return stream ? open_stream() : open_regular();
  }

  Appended append(std::string_view text, Deadline deadline, int wake_fd) override {
    if (auto opened = open(); !opened) return {0, 0, opened.error()};
    if (stream_) return stream_->append(text, deadline, wake_fd);
    const FileLock lock(file_.get(), deadline, wake_fd);
    if (!lock.held()) return {};
    return append_locked(text);
  }

  void abandon_line() override {
    if (stream_) stream_->abandon_line();
  }

  void close() override {
    stream_.reset();
    file_.reset();
  }

 private:
  Result<void> open_stream() {
    // Not blocking: a FIFO that nobody reads would stop the relay here.
    file_.reset(::open(path_.c_str(), common_flags | O_WRONLY | O_NONBLOCK));
    if (!file_ || ::fstat(file_.get(), &identity_) != 0) return file_error(errno, path_);
    stream_ = make_stream_sink(file_.get(), path_, calls_);
    return {};
  }

  Result<void> open_regular() {
    file_.reset(::open(path_.c_str(), common_flags | O_RDWR | O_CREAT, new_file_mode));
    if (!file_ || ::fstat(file_.get(), &identity_) != 0) return file_error(errno, path_);
    return sync_folder();
  }

  // Without this a crash could lose the name of a new file and with it every line in it.
  Result<void> sync_folder() {
    auto folder = std::filesystem::path(path_).parent_path();
    if (folder.empty()) folder = ".";
    const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened || ::fsync(opened.get()) != 0) {
      auto error = file_error(errno, folder.native());
      close();
      return error;
    }
    return {};
  }

  Appended append_locked(std::string_view text) {
    struct stat before {};
    if (::fstat(file_.get(), &before) != 0) return {0, 0, file_error(errno, path_)};
    if (auto closed = close_torn_line(before.st_size); !closed) return {0, 0, closed.error()};
    if (::fstat(file_.get(), &before) != 0) return {0, 0, file_error(errno, path_)};

    const auto [written, failed] = write_all(text);
    const auto kept = whole_lines(text.substr(0, written));
    const bool cut = written == kept || take_back(before.st_size, kept);
    auto appended = sync(kept, before.st_size);
    if (!cut) appended.ambiguous = std::max(appended.ambiguous, written - appended.accepted);
    if (failed != 0 && !appended.error) appended.error = file_error(failed, path_);
    return appended;
  }

  Result<void> close_torn_line(off_t size) {
    char last = '\n';
    if (size > 0 && ::pread(file_.get(), &last, 1, size - 1) != 1) return file_error(EIO, path_);
    if (last == '\n') return {};
    if (const auto [written, failed] = write_all("\n"); failed != 0) {
      return file_error(failed, path_);
    }
    return {};
  }

  struct Written {
    std::size_t bytes = 0;
    int failed = 0;
  };
  Written write_all(std::string_view text) const {
    Written written;
    while (written.bytes < text.size()) {
      const auto rest = text.substr(written.bytes);
      const auto count = calls_.write(file_.get(), rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        written.failed = errno;
        break;
      }
      written.bytes += static_cast<std::size_t>(count);
    }
    return written;
  }

  bool take_back(off_t start, std::size_t kept) const {
    return calls_.ftruncate(file_.get(), start + static_cast<off_t>(kept)) == 0;
  }

  // A failed sync says nothing of what reached the disk, and a repeated one may lie: the kernel has
  // dropped the pages. So the lines are taken back and the file is opened anew.
  Appended sync(std::size_t bytes, off_t start) {
    if (bytes == 0) return {};
    if (calls_.fdatasync(file_.get()) == 0) return {bytes, 0, std::nullopt};
    auto error = file_error(errno, path_);
    const bool gone = take_back(start, 0);
    file_.reset();
    return {0, gone ? 0 : bytes, std::move(error)};
  }

  const std::string path_;
  const FileCalls calls_;
  Descriptor file_;
  struct stat identity_ {};
  std::unique_ptr<LineSink> stream_;  // writes to `file_` when that is no regular file
};

}  // namespace

std::unique_ptr<LineSink> make_path_sink(std::string path, FileCalls calls) {
  return std::make_unique<PathSink>(std::move(path), calls);
}

}  // namespace postrider::file
