#include "backends/sqlite_database.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/timestamp_text.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

std::filesystem::path make_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "postrider-sqlite-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
  return name;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class SqliteHarness final : public StoreHarness {
 public:
  explicit SqliteHarness(const SchemaNames& names) : names_(names), database_(names) {}

  std::unique_ptr<Store> open_store() override { return database_.store(); }
  std::unique_ptr<Operations> open_operations() override {
    return make_sqlite_operations(database_.options());
  }
  std::unique_ptr<Purger> open_purger() override { return make_sqlite_purger(database_.options()); }
  std::unique_ptr<Migrator> open_migrator() override {
    return make_sqlite_migrator(database_.options());
  }

  bool plant_malformed_event() override {
    RawConnection raw(database_.path());
    raw.must("PRAGMA ignore_check_constraints = ON");
    raw.must("INSERT INTO " + names_.prefix + "outbox_events (type, headers) VALUES ('t', '[]')");
    return true;
  }

  std::shared_ptr<void> lock_database() override {
    auto lock = std::make_shared<RawConnection>(database_.path());
    lock->must("BEGIN IMMEDIATE");
    return lock;
  }

  bool plant_receipt(milliseconds age) override {
    RawConnection raw(database_.path());
    raw.must("INSERT INTO " + names_.prefix +
             "inbox_receipts (consumer, source, message_id, content_hash, received_at) VALUES "
             "('billing', 'orders', hex(randomblob(8)), zeroblob(32), '" +
             timestamp_text(system_clock().wall() - age) + "')");
    return true;
  }

  std::optional<std::vector<AuditedChange>> audit() override {
    RawConnection raw(database_.path());
    std::istringstream lines(raw.lines("SELECT action || ' ' || who || ' ' || reason FROM " +
                                       names_.prefix + "postrider_audit ORDER BY id"));
    std::vector<AuditedChange> changes;
    AuditedChange change;
    while (lines >> change.action >> change.who.name >> change.who.reason) {
      changes.push_back(change);
    }
    return changes;
  }

 private:
  SchemaNames names_;
  SqliteDatabase database_;
};

}  // namespace

SqliteDatabase::SqliteDatabase(SchemaNames names, bool migrated)
    : folder_(make_folder()), names_(std::move(names)) {
  if (migrated) value_of(make_sqlite_migrator(options(true))->up({}, soon()));
}

SqliteDatabase::~SqliteDatabase() {
  std::filesystem::remove_all(folder_);
}

SqliteOptions SqliteDatabase::options(bool create) const {
  return {path(), names_, create};
}

RawConnection::RawConnection(const std::string& path) {
  EXPECT_EQ(sqlite3_open(path.c_str(), &handle_), SQLITE_OK) << sqlite3_errmsg(handle_);
  sqlite3_extended_result_codes(handle_, 1);
}

int RawConnection::run(const std::string& sql) {
  return sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
}

void RawConnection::must(const std::string& sql) {
  EXPECT_EQ(run(sql), SQLITE_OK) << last_message() << " in " << sql;
}

std::string RawConnection::value(const std::string& sql) {
  const auto all = lines(sql);
  return all.empty() ? "(none)" : all.substr(0, all.find('\n'));
}

std::string RawConnection::lines(const std::string& sql) {
  std::string all;
  const auto add = [](void* to, int, char** values, char**) {
    static_cast<std::string*>(to)->append(values[0] == nullptr ? "(null)" : values[0]).append("\n");
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), add, &all, nullptr), SQLITE_OK)
      << last_message() << " in " << sql;
  return all;
}

bool has_sqlite_shell() {
  return std::system("command -v sqlite3 >/dev/null 2>&1") == 0;
}

ShellRun run_sqlite_shell(const SqliteDatabase& database, const std::string& sql) {
  const auto script = database.folder() / "script.sql";
  const auto output = database.folder() / "output.txt";
  std::ofstream(script) << sql;
  const std::string command = "sqlite3 -batch -bail '" + database.path() + "' < '" +
                              script.string() + "' > '" + output.string() + "' 2>&1";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(output)};
}

std::unique_ptr<StoreHarness> make_sqlite_harness() {
  return std::make_unique<SqliteHarness>(SchemaNames{});
}

std::unique_ptr<StoreHarness> make_prefixed_sqlite_harness() {
  return std::make_unique<SqliteHarness>(SchemaNames{"", "shop_"});
}

}  // namespace postrider::testing
