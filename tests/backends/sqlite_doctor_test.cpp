// What the doctor finds in a SQLite file: each fault is planted in a real one.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backends/sqlite_database.hpp"
#include "conformance/store_builders.hpp"
#include "store/sqlite/sqlite_doctor.hpp"

namespace postrider::testing {
namespace {

using store::sqlite::file_system_kind;
using store::sqlite::FileSystemKind;
using store::sqlite::has_wal_reset_bug;
using store::sqlite::SqliteSurroundings;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int sound_version = 3'051'003;

SqliteSurroundings on_local_disk(const std::string& /*path*/) {
  return {0xef53, sound_version};  // ext4
}

Diagnosis examine(const SqliteDatabase& database, const Examination& examination = {}) {
  return value_of(
      store::sqlite::make_doctor(database.options(), on_local_disk)->examine(examination, soon()));
}

Examination deep() {
  Examination examination;
  examination.deep = true;
  return examination;
}

::testing::Matcher<const Finding&> finding(const std::string& code, FindingSeverity severity) {
  return AllOf(Field("code", &Finding::code, code), Field("severity", &Finding::severity, severity),
               Field("what", &Finding::what, Not(IsEmpty())),
               Field("why", &Finding::why, Not(IsEmpty())),
               Field("fix", &Finding::fix, Not(IsEmpty())));
}

TEST(SqliteDoctor, A_healthy_file_gives_no_finding_deep_or_not) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_delivery(*store, relay, order_event("1"));
  store_held(*store, relay, order_event("2"));

  EXPECT_THAT(examine(database).findings, IsEmpty());
  const auto diagnosis = examine(database, deep());
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_THAT(diagnosis.facts,
              Contains(AllOf(Field(&Fact::name, "journal_mode"), Field(&Fact::value, "wal"))));
}

TEST(SqliteDoctor, The_doctor_of_the_program_looks_at_the_real_machine) {
  SqliteDatabase database;
  const auto diagnosis = value_of(make_sqlite_doctor(database.options())->examine({}, soon()));
  EXPECT_THAT(diagnosis.findings, Not(Contains(Field(&Finding::severity, FindingSeverity::error))));
  EXPECT_THAT(diagnosis.facts,
              Contains(AllOf(Field(&Fact::name, "library"),
                             Field(&Fact::value, std::string("SQLite ") + sqlite3_libversion()))));
}

TEST(SqliteDoctor, It_asks_and_writes_nothing) {
  SqliteDatabase database;
  const auto before = std::filesystem::last_write_time(database.path());
  RawConnection raw(database.path());
  raw.must("BEGIN IMMEDIATE");  // nobody else may write now

  EXPECT_THAT(examine(database, deep()).findings, IsEmpty());
  EXPECT_EQ(std::filesystem::last_write_time(database.path()), before);
}

TEST(SqliteDoctor, A_file_without_our_tables_is_told) {
  SqliteDatabase database({}, false);
  RawConnection raw(database.path());
  raw.must("PRAGMA journal_mode = WAL");
  raw.must("CREATE TABLE x (y)");
  EXPECT_THAT(examine(database).findings,
              ElementsAre(finding("schema_missing", FindingSeverity::error)));
}

TEST(SqliteDoctor, A_missing_step_of_the_schema_is_told) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("DELETE FROM postrider_schema WHERE number = 2");
  EXPECT_THAT(examine(database).findings,
              ElementsAre(finding("schema_mismatch", FindingSeverity::error)));
}

TEST(SqliteDoctor, A_journal_that_is_not_wal_is_told) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  ASSERT_EQ(raw.value("PRAGMA journal_mode = DELETE"), "delete");
  EXPECT_THAT(examine(database).findings,
              ElementsAre(finding("journal_not_wal", FindingSeverity::warning)));
}

TEST(SqliteDoctor, Full_auto_vacuum_is_told) {
  SqliteDatabase database({}, false);
  {
    RawConnection raw(database.path());
    raw.must("PRAGMA auto_vacuum = FULL; CREATE TABLE x (y)");
  }
  ASSERT_TRUE(make_sqlite_migrator(database.options())->up({}, soon()).ok());
  EXPECT_THAT(examine(database).findings,
              ElementsAre(finding("auto_vacuum_full", FindingSeverity::note)));
}

TEST(SqliteDoctor, A_missing_trigger_is_named) {
  SqliteDatabase database;
  RawConnection raw(database.path());
  raw.must("DROP TRIGGER outbox_events_seq_ascends");
  const auto findings = examine(database).findings;
  ASSERT_THAT(findings, ElementsAre(finding("trigger_missing", FindingSeverity::error)));
  EXPECT_EQ(findings[0].subject, "outbox_events_seq_ascends");
}

TEST(SqliteDoctor, F57_a_log_that_a_long_reader_keeps_growing_is_told_with_its_size) {
  SqliteDatabase database;
  RawConnection reader(database.path());
  RawConnection writer(database.path());
  reader.must("BEGIN");
  reader.must("SELECT * FROM outbox_events");
  ASSERT_EQ(reader.value("SELECT count(*) FROM outbox_events"), "0");
  writer.must("CREATE TABLE bulk (content)");
  writer.must("INSERT INTO bulk VALUES (zeroblob(3000000))");
  Examination examination;
  EXPECT_THAT(examine(database, examination).findings, IsEmpty());
  examination.wal_bytes = 2 << 20;

  const auto findings = examine(database, examination).findings;

  ASSERT_THAT(findings, ElementsAre(finding("wal_large", FindingSeverity::warning)));
  EXPECT_THAT(findings[0].what, HasSubstr("has 2 MiB"));
}

TEST(SqliteDoctor, A_disk_with_less_space_than_asked_for_is_told) {
  SqliteDatabase database;
  Examination examination;
  examination.free_bytes = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(examine(database, examination).findings,
              ElementsAre(finding("disk_full", FindingSeverity::error)));
}

TEST(SqliteDoctor, F60_the_versions_with_the_wal_reset_bug_are_known) {
  for (const int version : {3'007'000, 3'040'001, 3'044'005, 3'045'000, 3'050'006, 3'051'002}) {
    EXPECT_TRUE(has_wal_reset_bug(version)) << version;
  }
  for (const int version : {3'006'023, 3'044'006, 3'050'007, 3'051'003, 3'052'000}) {
    EXPECT_FALSE(has_wal_reset_bug(version)) << version;
  }
  SqliteDatabase database;
  const auto old = [](const std::string&) { return SqliteSurroundings{0xef53, 3'040'001}; };
  EXPECT_THAT(
      value_of(store::sqlite::make_doctor(database.options(), old)->examine({}, soon())).findings,
      ElementsAre(finding("wal_reset_bug", FindingSeverity::note)));
}

TEST(SqliteDoctor, F61_network_and_fuse_file_systems_are_told) {
  EXPECT_EQ(file_system_kind(0x6969), FileSystemKind::network);
  EXPECT_EQ(file_system_kind(0xff534d42), FileSystemKind::network);
  EXPECT_EQ(file_system_kind(0x65735546), FileSystemKind::fuse);
  EXPECT_EQ(file_system_kind(0x01021994), FileSystemKind::memory);
  EXPECT_EQ(file_system_kind(0xef53), FileSystemKind::local);
  SqliteDatabase database;
  const auto on = [&](store::sqlite::Look look) {
    return value_of(store::sqlite::make_doctor(database.options(), look)->examine({}, soon()))
        .findings;
  };
  EXPECT_THAT(on([](const std::string&) {
                return SqliteSurroundings{0x6969, sound_version};
              }),
              ElementsAre(finding("file_system_shared", FindingSeverity::error)));
  EXPECT_THAT(on([](const std::string&) {
                return SqliteSurroundings{0x65735546, sound_version};
              }),
              ElementsAre(finding("file_system_shared", FindingSeverity::error)));
  EXPECT_THAT(on([](const std::string&) {
                return SqliteSurroundings{0x01021994, sound_version};
              }),
              ElementsAre(finding("file_system_volatile", FindingSeverity::note)));
}

TEST(SqliteDoctor, A_damaged_page_is_told_when_it_looks_deep) {
  SqliteDatabase database;
  {
    const auto store = database.store();
    for (int i = 0; i < 200; ++i)
      add(*store, {order_event("1", std::string(500, 'x'))});
    RawConnection raw(database.path());
    raw.must("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  // The last page is one of the table's or of an index, whatever the version.
  const auto size = std::filesystem::file_size(database.path());
  std::fstream file(database.path(), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(size - 4096));
  file << std::string(4096, '\xa5');
  file.close();

  EXPECT_THAT(examine(database, deep()).findings,
              Contains(finding("file_damaged", FindingSeverity::error)));
}

TEST(SqliteDoctor, Rows_that_contradict_each_other_are_told_when_it_looks_deep) {
  SqliteDatabase database;
  const auto store = database.store();
  const ManualClock clock;
  Claimant relay(*store, clock);
  relay.lease();
  store_held(*store, relay, order_event("1"));
  RawConnection raw(database.path());
  raw.must("UPDATE outbox_events SET routed_at = '2026-01-01T00:00:00.000000Z'");
  EXPECT_THAT(examine(database).findings, IsEmpty());

  const auto findings = examine(database, deep()).findings;
  ASSERT_THAT(findings, ElementsAre(finding("rows_contradict", FindingSeverity::error)));
  EXPECT_THAT(findings[0].what, HasSubstr("1 held"));

  raw.must("PRAGMA foreign_keys = OFF");
  raw.must("DELETE FROM outbox_events");
  EXPECT_THAT(examine(database, deep()).findings.at(0).what, HasSubstr("and 1 to none"));
}

TEST(SqliteDoctor, A_file_that_is_not_there_is_an_error_and_no_finding) {
  SqliteDatabase database({}, false);
  const auto examined = make_sqlite_doctor(database.options())->examine({}, soon());
  ASSERT_FALSE(examined.ok());
  EXPECT_EQ(examined.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace postrider::testing
