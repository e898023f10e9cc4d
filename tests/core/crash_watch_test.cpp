#include "core/crash_watch.hpp"

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

constexpr Partition here{0};
constexpr Partition there{1};

CrashWatch after(int crashes, std::optional<Seq> probe_seq = std::nullopt) {
  CrashWatch watch;
  watch.gain(here, {crashes, probe_seq});
  watch.gain(there, {});
  return watch;
}

TEST(CrashWatch, The_first_crash_keeps_full_speed_and_the_second_does_not) {
  EXPECT_TRUE(after(0).calm());
  EXPECT_FALSE(after(1).calm());
  EXPECT_FALSE(after(1).alone());
  EXPECT_TRUE(after(2).alone());
}

TEST(CrashWatch, The_worst_partition_counts_for_the_whole_relay_as_long_as_it_is_held) {
  auto watch = after(2);
  EXPECT_EQ(watch.crashes(), 2);
  watch.lose(here);
  EXPECT_TRUE(watch.calm());
}

TEST(CrashWatch, A_probe_is_to_blame_when_two_have_died_of_it) {
  EXPECT_FALSE(after(3, Seq(7)).blames(here, Seq(7)));
  EXPECT_TRUE(after(4, Seq(7)).blames(here, Seq(7)));
  EXPECT_FALSE(after(4, Seq(7)).blames(here, Seq(8)));
  EXPECT_FALSE(after(4, Seq(7)).blames(there, Seq(7)));
  EXPECT_FALSE(after(4).blames(here, Seq(7)));
}

TEST(CrashWatch, Another_probe_begins_at_the_count_of_two_and_the_same_one_goes_on) {
  auto watch = after(3, Seq(7));
  EXPECT_TRUE(watch.to_probe(CrashWatch::Probe{here, Seq(7)}).empty()) << "it stands there already";
  const auto changes = watch.to_probe(CrashWatch::Probe{here, Seq(8)});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].suspicion, (Suspicion{2, Seq(8)}));
}

TEST(CrashWatch, A_probe_of_ones_own_is_never_to_blame) {
  auto watch = after(4);
  watch.on_stored({{here, {4, Seq(7)}}});
  watch.refresh(here, {4, Seq(7)});
  EXPECT_FALSE(watch.blames(here, Seq(7)));
}

TEST(CrashWatch, Blame_ends_when_another_probe_is_stored_in_its_place) {
  auto watch = after(4, Seq(7));
  watch.refresh(here, {4, Seq(7)});
  EXPECT_TRUE(watch.blames(here, Seq(7)));
  watch.on_stored(watch.to_probe(CrashWatch::Probe{here, Seq(8)}));
  EXPECT_FALSE(watch.blames(here, Seq(7)));
}

TEST(CrashWatch, A_probe_is_stored_once_and_leaves_the_partition_of_the_last_one) {
  auto watch = after(2);
  auto changes = watch.to_probe(CrashWatch::Probe{here, Seq(7)});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].partition, here);
  EXPECT_EQ(changes[0].suspicion, (Suspicion{2, Seq(7)}));
  watch.on_stored(changes);
  EXPECT_TRUE(watch.to_probe(CrashWatch::Probe{here, Seq(7)}).empty());

  changes = watch.to_probe(CrashWatch::Probe{there, Seq(8)});
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].suspicion, Suspicion{2});
  EXPECT_EQ(changes[1].suspicion, (Suspicion{2, Seq(8)}));
  watch.on_stored(changes);
  ASSERT_EQ(watch.to_probe(std::nullopt).size(), 1U);
}

TEST(CrashWatch, Clearing_touches_only_what_is_under_suspicion) {
  auto watch = after(3, Seq(7));
  const auto changes = watch.to_clear();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].suspicion, Suspicion{});
  watch.on_stored(changes);
  EXPECT_TRUE(watch.calm());
  EXPECT_TRUE(watch.to_clear().empty());
}

}  // namespace
}  // namespace postrider::core
