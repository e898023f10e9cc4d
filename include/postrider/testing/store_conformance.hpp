#pragma once
/// \file
/// The suite that defines a store. Link the object library `postrider::store_conformance`, and
/// instantiate:
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
///                              ::testing::Values(StoreCase{"wal", make_sqlite_harness}),
///                              case_name);

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/operations.hpp>
#include <postrider/purger.hpp>
#include <postrider/schema.hpp>
#include <postrider/store.hpp>
#include <postrider/testing/manual_clock.hpp>

namespace postrider::testing {

/// A change by a person, as the audit has it.
struct AuditedChange {
  std::string action;  ///< the name of the function in `Operations`: "dead_retry", "route_pause", …
  Operator who;
};

/// A fresh, migrated, empty database that lives as long as this object.
///
/// What stands below the four factories is optional: a test that needs it is skipped where it is
/// not there.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  virtual std::unique_ptr<Store> open_store() = 0;
  virtual std::unique_ptr<Operations> open_operations() = 0;
  virtual std::unique_ptr<Purger> open_purger() = 0;
  /// Null where a store has no schema.
  virtual std::unique_ptr<Migrator> open_migrator() = 0;

  /// Writes one event that no store of ours would write: unreadable headers, say, or two payloads.
  virtual bool plant_malformed_event() { return false; }
  /// Keeps everybody else from writing until the returned object is gone. Null: cannot be done.
  virtual std::shared_ptr<void> lock_database() { return nullptr; }
  /// Ends every connection that is open now, without the stores' knowledge.
  virtual bool lose_connections() { return false; }
  /// Writes a receipt of the inbox with this age. False: the database has no inbox.
  virtual bool plant_receipt(milliseconds /*age*/) { return false; }
  /// All changes by people, oldest first.
  virtual std::optional<std::vector<AuditedChange>> audit() { return std::nullopt; }
};

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<StoreHarness>()> make;
};

/// What GoogleTest shows of a case.
void PrintTo(const StoreCase& store_case, std::ostream* out);

class StoreConformance : public ::testing::TestWithParam<StoreCase> {
 protected:
  void SetUp() override;
  void TearDown() override;

  ManualClock clock_;
  std::unique_ptr<StoreHarness> harness_;
  std::unique_ptr<Store> store_;
};

[[nodiscard]] std::string case_name(const ::testing::TestParamInfo<StoreCase>& info);

}  // namespace postrider::testing
