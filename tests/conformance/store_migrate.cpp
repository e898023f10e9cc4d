// What `Migrator` and `Store::check_schema` promise.

#include <algorithm>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Result<std::vector<int>> up(StoreHarness& harness, std::optional<int> target = std::nullopt) {
  return harness.open_migrator()->up(target, soon());
}

Result<std::vector<int>> down(StoreHarness& harness, int target, bool even_with_rows = false) {
  return harness.open_migrator()->down(target, even_with_rows, soon());
}

std::vector<MigrationStep> steps(StoreHarness& harness) {
  return value_of(harness.open_migrator()->steps(soon()));
}

std::vector<int> numbers(const std::vector<MigrationStep>& steps) {
  std::vector<int> numbers;
  for (const auto& step : steps)
    numbers.push_back(step.number);
  return numbers;
}

#define POSTRIDER_REQUIRE_MIGRATOR() \
  if (harness_->open_migrator() == nullptr) GTEST_SKIP() << "this store has no schema"

TEST_P(StoreConformance, A_migrated_database_has_a_schema_that_can_be_used) {
  expect_ok(store_->check_schema(soon()));
}

TEST_P(StoreConformance, Every_step_of_a_migrated_database_is_applied) {
  POSTRIDER_REQUIRE_MIGRATOR();

  const auto all = steps(*harness_);

  ASSERT_THAT(all, ::testing::Not(IsEmpty()));
  int before = 0;
  for (const auto& step : all) {
    EXPECT_TRUE(step.applied) << step.name;
    EXPECT_GT(step.number, before) << step.name;
    EXPECT_NE(step.name, "");
    EXPECT_NE(step.up, "") << step.name;
    EXPECT_NE(step.down, "") << step.name;
    before = step.number;
  }
}

TEST_P(StoreConformance, Migrating_up_twice_does_nothing_the_second_time) {
  POSTRIDER_REQUIRE_MIGRATOR();

  EXPECT_THAT(value_of(up(*harness_)), IsEmpty());
  expect_ok(store_->check_schema(soon()));
}

TEST_P(StoreConformance, All_steps_can_be_taken_back_and_made_again) {
  POSTRIDER_REQUIRE_MIGRATOR();
  auto all = numbers(steps(*harness_));
  auto backwards = all;
  std::reverse(backwards.begin(), backwards.end());

  EXPECT_THAT(value_of(down(*harness_, 0)), ElementsAreArray(backwards));
  for (const auto& step : steps(*harness_))
    EXPECT_FALSE(step.applied) << step.name;
  EXPECT_THAT(value_of(up(*harness_)), ElementsAreArray(all));
  store_ = harness_->open_store();
  expect_ok(store_->check_schema(soon()));
  EXPECT_THAT(add(*store_, {order_event("1")}), SizeIs(1));
}

TEST_P(StoreConformance, Steps_can_be_made_one_at_a_time) {
  POSTRIDER_REQUIRE_MIGRATOR();
  const auto all = numbers(steps(*harness_));
  value_of(down(*harness_, 0));

  for (const auto number : all) {
    EXPECT_THAT(value_of(up(*harness_, number)), ::testing::ElementsAre(number));
  }
  for (const auto& step : steps(*harness_))
    EXPECT_TRUE(step.applied) << step.name;
}

TEST_P(StoreConformance, A_schema_that_is_not_there_is_named_with_the_command_to_run) {
  POSTRIDER_REQUIRE_MIGRATOR();
  value_of(down(*harness_, 0));

  const auto checked = harness_->open_store()->check_schema(soon());

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::schema_mismatch);
  EXPECT_EQ(checked.error().disposition, Disposition::stop);
  EXPECT_THAT(checked.error().message, HasSubstr("postrider migrate"));
}

TEST_P(StoreConformance, A_schema_that_is_behind_is_named_with_both_versions) {
  POSTRIDER_REQUIRE_MIGRATOR();
  const auto all = numbers(steps(*harness_));
  if (all.size() < 2) GTEST_SKIP() << "there is one step only";
  value_of(down(*harness_, all[all.size() - 2]));

  const auto checked = harness_->open_store()->check_schema(soon());

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::schema_mismatch);
  EXPECT_THAT(checked.error().message, HasSubstr(std::to_string(all[all.size() - 2])));
  EXPECT_THAT(checked.error().message, HasSubstr(std::to_string(all.back())));
  EXPECT_THAT(checked.error().message, HasSubstr("postrider migrate"));
}

TEST_P(StoreConformance, Checking_the_schema_does_not_make_it) {
  POSTRIDER_REQUIRE_MIGRATOR();
  value_of(down(*harness_, 0));
  EXPECT_FALSE(harness_->open_store()->check_schema(soon()).ok());

  for (const auto& step : steps(*harness_))
    EXPECT_FALSE(step.applied) << step.name;
}

TEST_P(StoreConformance, Rows_are_not_thrown_away_unless_it_is_asked_for) {
  POSTRIDER_REQUIRE_MIGRATOR();
  add(*store_, {order_event("1")});

  const auto refused = down(*harness_, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(relay.claim().events, SizeIs(1));

  value_of(down(*harness_, 0, true));
  for (const auto& step : steps(*harness_))
    EXPECT_FALSE(step.applied) << step.name;
}

#undef POSTRIDER_REQUIRE_MIGRATOR

}  // namespace
}  // namespace postrider::testing
