#pragma once
/// \file
/// What a SQLite database rests on, told apart: the file system and the library.

#include <cstdint>
#include <memory>
#include <string_view>

#include <postrider/diagnosis.hpp>
#include <postrider/store/sqlite.hpp>

namespace postrider::store::sqlite {

enum class FileSystemKind : std::uint8_t { local, network, fuse, memory };

/// By the number that statfs(2) gives; one that is unknown counts as local.
[[nodiscard]] FileSystemKind file_system_kind(std::uint64_t magic) noexcept;

/// Whether this version (as `sqlite3_libversion_number` gives it) has the WAL-reset bug: two
/// connections that write and checkpoint at the same moment can damage the file. Source:
/// sqlite.org/wal.html.
[[nodiscard]] bool has_wal_reset_bug(int version) noexcept;

/// What the machine says; tests say something else.
struct SqliteSurroundings {
  std::uint64_t file_system = 0;  ///< the number of statfs(2)
  int library_version = 0;
};
[[nodiscard]] SqliteSurroundings surroundings_of(const std::string& path);

using Look = SqliteSurroundings (*)(const std::string& path);
[[nodiscard]] std::unique_ptr<Doctor> make_doctor(SqliteOptions options, Look look);

}  // namespace postrider::store::sqlite
