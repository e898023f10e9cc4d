// What can be wrong with a SQLite file that holds an outbox.

#include "store/sqlite/sqlite_doctor.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_schema.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;
using Severity = FindingSeverity;
using Findings = std::vector<Finding>;

/// Most lines of an integrity check that are shown: one is enough to know, ten to understand.
constexpr int most_damages = 10;
constexpr std::string_view integrity_pragma = "PRAGMA integrity_check(10)";
constexpr std::int64_t automatic_vacuum_full = 1;

struct Magic {
  std::uint64_t number;
  FileSystemKind kind;
};

// linux/magic.h, and what the file systems' own sources say.
constexpr std::array magics = {
    Magic{0x6969, FileSystemKind::network},      // NFS
    Magic{0xff534d42, FileSystemKind::network},  // CIFS
    Magic{0xfe534d42, FileSystemKind::network},  // SMB 2
    Magic{0x517b, FileSystemKind::network},      // SMB
    Magic{0x01021997, FileSystemKind::network},  // 9P
    Magic{0x00c36400, FileSystemKind::network},  // Ceph
    Magic{0x5346414f, FileSystemKind::network},  // AFS
    Magic{0x73757245, FileSystemKind::network},  // Coda
    Magic{0x0bd00bd0, FileSystemKind::network},  // Lustre
    Magic{0x01161970, FileSystemKind::network},  // GFS2
    Magic{0x7461636f, FileSystemKind::network},  // OCFS2
    Magic{0x47504653, FileSystemKind::network},  // GPFS
    Magic{0x65735546, FileSystemKind::fuse},    Magic{0x01021994, FileSystemKind::memory},  // tmpfs
    Magic{0x858458f6, FileSystemKind::memory},                                              // ramfs
};

std::string version_text(int number) {
  return fmt::format("{}.{}.{}", number / 1'000'000, number / 1000 % 1000, number % 1000);
}

void check_surroundings(const SqliteSurroundings& around, const std::string& path,
                        Findings& findings) {
  const auto kind = file_system_kind(around.file_system);
  if (kind == FileSystemKind::network || kind == FileSystemKind::fuse) {
    findings.push_back(
        {"file_system_shared", Severity::error, path,
         fmt::format("the file lies on a {} file system.",
                     kind == FileSystemKind::network ? "network" : "FUSE"),
         "The write-ahead log needs shared memory and exact locks, which such a file "
         "system may only pretend to have: the file can be damaged.",
         "Move the file to a local disk."});
  }
  if (kind == FileSystemKind::memory) {
    findings.push_back({"file_system_volatile", Severity::note, path,
                        "the file lies in memory (tmpfs).", "It is gone after a restart.",
                        "Move the file to a disk, unless this is a test."});
  }
  if (has_wal_reset_bug(around.library_version)) {
    findings.push_back({"wal_reset_bug", Severity::note,
                        "SQLite " + version_text(around.library_version),
                        "this version of SQLite has the WAL-reset bug, unless its packager has "
                        "mended it.",
                        "Two connections that write and checkpoint at the very same moment can "
                        "damage the file; it is rare.",
                        "Use 3.51.3 or later, 3.50.7 or 3.44.6, here and in the application."});
  }
}

void check_sizes(const std::string& path, const Examination& examination, Findings& findings) {
  struct stat wal {};
  if (::stat((path + "-wal").c_str(), &wal) == 0 && wal.st_size > examination.wal_bytes) {
    findings.push_back(
        {"wal_large", Severity::warning, path + "-wal",
         fmt::format("the write-ahead log has {} MiB.", wal.st_size >> 20U),
         "A reader that does not end keeps it from being checkpointed: it grows, and "
         "reading slows down.",
         "Find the connection with the long read, and end it."});
  }
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return;
  const auto free =
      static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  if (free < examination.free_bytes) {
    findings.push_back({"disk_full", Severity::error, path,
                        fmt::format("{} MiB are free where the file lies.", free >> 20U),
                        "When it is full, neither an application nor a relay can commit.",
                        "Make room, or move the file."});
  }
}

class SqliteDoctor final : public Doctor {
 public:
  SqliteDoctor(SqliteOptions options, Look look)
      : path_(options.path),
        connection_(without_create(std::move(options)), Access::read_only),
        look_(look) {}

  Result<Diagnosis> examine(const Examination& examination, Deadline deadline) override {
    if (auto ready = connection_.ready(deadline); !ready) return ready.error();
    Diagnosis diagnosis;
    const auto around = look_(path_);
    check_surroundings(around, path_, diagnosis.findings);
    check_sizes(path_, examination, diagnosis.findings);
    if (auto done = examine_file(around, diagnosis); !done) return done.error();
    if (auto done = examine_schema(examination, diagnosis.findings); !done) return done.error();
    return diagnosis;
  }

 private:
  Result<std::string> ask(std::string_view pragma) {
    auto rows = connection_.query(pragma);
    std::string value;
    if (rows.next()) value = rows.text(0);
    if (auto read = rows.result(); !read) return read.error();
    return value;
  }

  Result<void> examine_file(const SqliteSurroundings& around, Diagnosis& diagnosis) {
    std::array<std::pair<std::string_view, std::string>, 4> settings = {{
        {"PRAGMA journal_mode", ""},
        {"PRAGMA page_size", ""},
        {"PRAGMA auto_vacuum", ""},
        {"PRAGMA encoding", ""},
    }};
    for (auto& [pragma, value] : settings) {
      auto answer = ask(pragma);
      if (!answer) return answer.error();
      value = std::move(answer).value();
    }
    const auto& [journal, page, vacuum, encoding] = settings;
    diagnosis.facts = {{"library", "SQLite " + version_text(around.library_version)},
                       {"journal_mode", journal.second},
                       {"page_size", page.second},
                       {"auto_vacuum", vacuum.second},
                       {"encoding", encoding.second},
                       {"synchronous",
                        "FULL on our own connections; each application's own is not "
                        "known to the file"}};
    auto& findings = diagnosis.findings;
    if (journal.second != "wal") {
      findings.push_back(
          {"journal_not_wal", Severity::warning, path_,
           fmt::format("the journal mode is {}.", journal.second),
           "Readers and writers wait for each other. A relay that starts switches to "
           "WAL, or fails where that cannot be.",
           "PRAGMA journal_mode = WAL, and find out who switched it off."});
    }
    if (vacuum.second == std::to_string(automatic_vacuum_full)) {
      findings.push_back({"auto_vacuum_full", Severity::note, path_, "auto_vacuum is FULL.",
                          "Each commit that deletes moves pages about; a purge takes longer.",
                          "PRAGMA auto_vacuum = INCREMENTAL; VACUUM; if that is not wanted."});
    }
    return {};
  }

  Result<void> examine_schema(const Examination& examination, Findings& findings) {
    const auto applied = applied_steps(connection_);
    if (!applied) return applied.error();
    if (applied->empty()) {
      findings.push_back({"schema_missing", Severity::error, path_, "our tables are not there.",
                          "Nothing works without them.",
                          "Run `postrider migrate`, or correct path and prefix."});
      return {};
    }
    if (const auto compared = compare_schema(connection_); !compared) {
      if (compared.error().code != ErrorCode::schema_mismatch) return compared.error();
      findings.push_back({"schema_mismatch", Severity::error, path_, compared.error().message,
                          "This build does not work with these tables.",
                          "Do what the message says, before anything else."});
      return {};
    }
    if (auto done = find_missing_triggers(findings); !done) return done;
    if (!examination.deep) return {};
    if (auto done = check_integrity(findings); !done) return done;
    return check_rows(findings);
  }

  Result<void> find_missing_triggers(Findings& findings) {
    auto rows = connection_.query(statements::doctor_triggers);
    while (rows.next()) {
      findings.push_back({"trigger_missing", Severity::error, rows.text(0),
                          "the trigger is not there.",
                          "Rows can be changed in ways that a relay does not expect.",
                          "Make it again; `postrider migrate --print` shows it."});
    }
    return rows.result();
  }

  // Pages and indexes; SQLite leaves CHECK constraints out on a connection that only reads.
  Result<void> check_integrity(Findings& findings) {
    auto rows = connection_.query(integrity_pragma);
    std::vector<std::string> damages;
    while (rows.next() && static_cast<int>(damages.size()) < most_damages) {
      if (auto line = rows.text(0); line != "ok") damages.push_back(std::move(line));
    }
    const auto read = rows.result();
    if (!read && read.error().code != ErrorCode::storage_failed) return read;
    if (!read) damages.push_back(read.error().message);
    for (auto& damage : damages) {
      findings.push_back({"file_damaged", Severity::error, path_, std::move(damage),
                          "Rows can be lost, or come twice.",
                          "Stop who writes, keep a copy, then restore a backup or use .recover."});
    }
    return {};
  }

  Result<void> check_rows(Findings& findings) {
    auto rows = connection_.query(statements::doctor_deep);
    if (!rows.next()) return rows.result();
    const auto held = rows.integer(0);
    const auto open = rows.integer(1);
    const auto orphans = rows.integer(2);
    if (held + open + orphans == 0) return {};
    findings.push_back(
        {"rows_contradict", Severity::error, "outbox_deliveries",
         fmt::format("{} held deliveries belong to routed events, {} others to events that are not "
                     "routed, and {} to none.",
                     held, open, orphans),
         "No relay writes that: such events are sent twice, or never.",
         "Find out who wrote to these tables, and see the guarantees' page."});
    return {};
  }

  std::string path_;
  SqliteConnection connection_;
  Look look_;
};

}  // namespace

FileSystemKind file_system_kind(std::uint64_t magic) noexcept {
  const auto* const found = std::find_if(magics.begin(), magics.end(),
                                         [&](const auto& known) { return known.number == magic; });
  return found == magics.end() ? FileSystemKind::local : found->kind;
}

bool has_wal_reset_bug(int version) noexcept {
  constexpr int first = 3'007'000;
  constexpr int mended = 3'051'003;
  const bool mended_before = (version >= 3'050'007 && version < 3'051'000) ||
                             (version >= 3'044'006 && version < 3'045'000);
  return version >= first && version < mended && !mended_before;
}

SqliteSurroundings surroundings_of(const std::string& path) {
  SqliteSurroundings around;
  around.library_version = sqlite3_libversion_number();
  struct statfs about {};
  // The kernel's number has 32 bits, and the member's sign depends on the machine.
  if (::statfs(path.c_str(), &about) == 0) {
    around.file_system = static_cast<std::uint32_t>(about.f_type);
  }
  return around;
}

std::unique_ptr<Doctor> make_doctor(SqliteOptions options, Look look) {
  return std::make_unique<SqliteDoctor>(std::move(options), look);
}

}  // namespace store::sqlite

std::unique_ptr<Doctor> make_sqlite_doctor(SqliteOptions options) {
  return store::sqlite::make_doctor(std::move(options), store::sqlite::surroundings_of);
}

}  // namespace postrider
