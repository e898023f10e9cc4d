#include "publisher/file/file_errors.hpp"

#include <array>
#include <cerrno>

#include <fmt/format.h>

namespace postrider::file {
namespace {

struct Row {
  int native;
  ErrorCode code;
  Disposition disposition;
  std::string_view sentence;
};

constexpr auto retry = Disposition::retry;
constexpr auto stop = Disposition::stop;

constexpr std::array rows{
    Row{ENOSPC, ErrorCode::storage_failed, retry, "no space is left. Free some on that disk."},
    Row{EDQUOT, ErrorCode::storage_failed, retry, "the disk quota is used up. Raise it."},
    Row{EFBIG, ErrorCode::storage_failed, retry,
        "the file has reached the greatest size allowed. Move it away or raise the limit."},
    Row{EIO, ErrorCode::storage_failed, retry, "the disk reports an I/O error. Check the disk."},
    Row{EACCES, ErrorCode::permission_denied, stop,
        "permission denied. Let the relay's user read and write there."},
    Row{EPERM, ErrorCode::permission_denied, stop,
        "the operation is not permitted. Let the relay's user read and write there."},
    Row{EROFS, ErrorCode::permission_denied, stop,
        "the file system is read-only. Remount it or choose another place."},
    Row{ENOENT, ErrorCode::not_found, retry, "its folder does not exist. Create the folder."},
    Row{ENOTDIR, ErrorCode::config_invalid, stop,
        "a part of the path is not a folder. Correct the destination."},
    Row{EISDIR, ErrorCode::config_invalid, stop, "it is a folder. Name a file in it."},
    Row{ELOOP, ErrorCode::config_invalid, stop,
        "its symbolic links run in a circle. Correct the destination."},
    Row{ENAMETOOLONG, ErrorCode::config_invalid, stop, "its name is too long. Shorten it."},
    Row{EPIPE, ErrorCode::unavailable, retry, "its reader is gone. Start the reader again."},
    Row{ENXIO, ErrorCode::unavailable, retry, "nobody reads it. Start the reader."},
    Row{EMFILE, ErrorCode::limit_exceeded, retry,
        "this process has too many files open. Raise its limit (ulimit -n)."},
    Row{ENFILE, ErrorCode::limit_exceeded, retry,
        "the machine has too many files open. Raise its limit (fs.file-max)."},
};

Row row_of(int native) {
  for (const auto& row : rows) {
    if (row.native == native) return row;
  }
  return {native, ErrorCode::storage_failed, retry,
          "it cannot be written. Look up the error number."};
}

}  // namespace

Error file_error(int native, std::string_view path) {
  const auto row = row_of(native);
  return {row.code, row.disposition, fmt::format("{}: {}", path, row.sentence), "file",
          std::to_string(native)};
}

}  // namespace postrider::file
