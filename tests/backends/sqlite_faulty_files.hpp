#pragma once
/// \file
/// A file system of SQLite that fails when it is told to.

#include <sqlite3.h>

#include <map>

namespace postrider::testing {

/// What the file system answers while a fault is on. One for the process, as SQLite's list of file
/// systems is.
struct FaultyFiles {
  static inline bool fail_sync = false;
  static inline bool disk_full = false;
  static inline bool no_shared_memory = false;
  static inline sqlite3_vfs files{};
  static inline decltype(sqlite3_io_methods::xSync) real_sync = nullptr;
  static inline decltype(sqlite3_io_methods::xWrite) real_write = nullptr;
  static inline std::map<const sqlite3_io_methods*, sqlite3_io_methods> methods;

  static int sync(sqlite3_file* file, int flags) {
    return fail_sync ? SQLITE_IOERR_FSYNC : real_sync(file, flags);
  }
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    return disk_full ? SQLITE_FULL : real_write(file, bytes, count, at);
  }
  static int open(sqlite3_vfs* self, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out_flags) {
    const int code = sqlite3_vfs_find("unix")->xOpen(self, name, file, flags, out_flags);
    if (code != SQLITE_OK || file->pMethods == nullptr) return code;
    // SQLite has one set for files with locks and one for those without; these two are the same.
    real_sync = file->pMethods->xSync;
    real_write = file->pMethods->xWrite;
    auto& wrapped = methods.emplace(file->pMethods, *file->pMethods).first->second;
    wrapped.xSync = &sync;
    wrapped.xWrite = &write;
    wrapped.iVersion = no_shared_memory ? 1 : file->pMethods->iVersion;
    file->pMethods = &wrapped;
    return code;
  }

  FaultyFiles() {
    files = *sqlite3_vfs_find("unix");
    files.zName = "faulty";
    files.xOpen = &open;
    sqlite3_vfs_register(&files, 1);
  }
  ~FaultyFiles() {
    fail_sync = disk_full = no_shared_memory = false;
    sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1);
    sqlite3_vfs_unregister(&files);
  }
};

}  // namespace postrider::testing
