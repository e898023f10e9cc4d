#pragma once
/// \file
/// The suite that defines a store of schedules. Link the object library
/// `postrider::schedule_store_conformance`, and instantiate:
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, ScheduleStoreConformance,
///                              ::testing::Values(ScheduleStoreCase{"wal", make_sqlite_harness}),
///                              schedule_case_name);

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/operations.hpp>
#include <postrider/schedule_store.hpp>
#include <postrider/testing/manual_clock.hpp>

namespace postrider::testing {

/// A change by a person, as the audit has it.
struct AuditedScheduleChange {
  std::string action;
  std::string object;
  std::string who;
  std::string reason;
  friend bool operator==(const AuditedScheduleChange&, const AuditedScheduleChange&) = default;
};

void PrintTo(const AuditedScheduleChange& change, std::ostream* out);

/// A fresh, migrated, empty database that lives as long as this object.
class ScheduleStoreHarness {
 public:
  virtual ~ScheduleStoreHarness() = default;
  /// Thread safety: any thread.
  virtual std::unique_ptr<ScheduleStore> open_schedule_store() = 0;
  virtual std::unique_ptr<Operations> open_operations() = 0;
  /// Oldest first.
  virtual std::vector<AuditedScheduleChange> audit() = 0;
  /// Rows of slots that are kept. None: cannot be told, and a test that asks is skipped.
  virtual std::optional<std::int64_t> slots() { return std::nullopt; }
};

struct ScheduleStoreCase {
  std::string name;
  std::function<std::unique_ptr<ScheduleStoreHarness>()> make;
};

/// What GoogleTest shows of a case.
void PrintTo(const ScheduleStoreCase& store_case, std::ostream* out);

class ScheduleStoreConformance : public ::testing::TestWithParam<ScheduleStoreCase> {
 protected:
  using ScheduleChange = std::function<void(Schedule&)>;

  void SetUp() override;
  void TearDown() override;

  /// "hourly" at minute 0, of type "tick".
  [[nodiscard]] static Schedule hourly(const ScheduleChange& change = {});
  void register_one(const Schedule& schedule);
  /// The row of this name, which must be there.
  ScheduleState state(const std::string& name = "hourly");
  std::vector<ScheduleState> states();

  /// From what is known now: runs these slots, and decides until the last of them.
  [[nodiscard]] FireRequest fire_request(const std::vector<Timestamp>& slots,
                                         const Schedule& schedule = hourly());
  FireAnswer fire(const FireRequest& request);
  /// All events, newest first.
  std::vector<EventSummary> events();
  [[nodiscard]] Timestamp now() const { return clock_.wall(); }
  /// So many hours after the clock's start.
  [[nodiscard]] static Timestamp hour(int number);

  ManualClock clock_;
  std::unique_ptr<ScheduleStoreHarness> harness_;
  std::unique_ptr<ScheduleStore> store_;
};

[[nodiscard]] std::string schedule_case_name(
    const ::testing::TestParamInfo<ScheduleStoreCase>& info);

}  // namespace postrider::testing
