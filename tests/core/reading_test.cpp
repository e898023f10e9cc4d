#include "core/reading.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

const Partition first(0);
const Partition second(1);

ReadMark mark(const char* text) {
  return ReadMark(text);
}
std::vector<ReadMark> marks(std::initializer_list<const char*> texts) {
  return {texts.begin(), texts.end()};
}

TEST(Reading, Begins_at_the_start_when_nothing_was_stored) {
  Reading reading;
  reading.gain(first, ReadMark());
  EXPECT_EQ(reading.after(), std::vector{ReadMark()});
}

TEST(Reading, Goes_on_after_the_newest_batch_and_stores_only_what_is_settled_through) {
  Reading reading;
  reading.gain(first, mark("0"));
  const auto one = reading.on_claimed(mark("10"), 2);
  const auto two = reading.on_claimed(mark("20"), 1);
  EXPECT_EQ(reading.after(), marks({"20"}));

  reading.on_settled(two);
  EXPECT_FALSE(reading.storable()) << "the first batch is still open";
  reading.on_settled(one);
  EXPECT_FALSE(reading.storable());
  reading.on_settled(one);
  ASSERT_TRUE(reading.storable());
  EXPECT_EQ(reading.storable()->mark, mark("20"));
  EXPECT_EQ(reading.storable()->partitions, std::vector{first});
}

TEST(Reading, An_empty_batch_is_settled_through_at_once) {
  Reading reading;
  reading.gain(first, mark("0"));
  reading.on_claimed(mark("7"), 0);
  ASSERT_TRUE(reading.storable());
  EXPECT_EQ(reading.storable()->mark, mark("7"));
}

TEST(Reading, Nothing_is_stored_twice) {
  Reading reading;
  reading.gain(first, mark("0"));
  reading.on_claimed(mark("7"), 0);
  reading.on_stored(*reading.storable());
  EXPECT_FALSE(reading.storable());
  reading.on_claimed(mark("7"), 0);
  EXPECT_FALSE(reading.storable()) << "an empty table moves nothing";
}

TEST(Reading, A_mark_that_the_partitions_were_gained_at_is_stored_already) {
  Reading reading;
  reading.gain(first, mark("5"));
  reading.on_claimed(mark("5"), 0);
  EXPECT_FALSE(reading.storable());
}

TEST(Reading, A_gained_partition_is_read_from_its_own_mark_too) {
  Reading reading;
  reading.gain(first, mark("0"));
  reading.on_claimed(mark("50"), 1);
  reading.gain(second, mark("30"));
  EXPECT_EQ(reading.after(), marks({"50", "30"}));
  reading.on_claimed(mark("60"), 0);
  EXPECT_EQ(reading.after(), marks({"60"}));
}

TEST(Reading, A_mark_from_before_a_partition_was_gained_is_not_stored_on_it) {
  Reading reading;
  reading.gain(first, mark("0"));
  const auto before = reading.on_claimed(mark("50"), 1);
  reading.gain(second, mark("30"));
  const auto after = reading.on_claimed(mark("60"), 1);
  reading.on_settled(before);
  EXPECT_EQ(reading.storable()->partitions, std::vector{first});
  reading.on_settled(after);
  EXPECT_EQ(reading.storable()->partitions, (std::vector{first, second}));
}

TEST(Reading, After_a_rewind_what_was_not_settled_is_read_again) {
  Reading reading;
  reading.gain(first, mark("0"));
  reading.on_claimed(mark("10"), 0);
  reading.on_claimed(mark("20"), 3);
  reading.rewind();
  EXPECT_EQ(reading.after(), marks({"10"}));
}

TEST(Reading, After_a_rewind_a_partition_that_was_not_settled_through_is_read_from_its_mark) {
  Reading reading;
  reading.gain(first, mark("0"));
  reading.on_claimed(mark("50"), 0);
  reading.gain(second, mark("30"));
  reading.on_claimed(mark("60"), 1);
  reading.rewind();
  EXPECT_EQ(reading.after(), marks({"50", "30"}));
}

TEST(Reading, A_lost_partition_is_neither_read_nor_stored) {
  Reading reading;
  reading.gain(first, mark("0"));
  reading.gain(second, mark("3"));
  reading.lose(second);
  EXPECT_EQ(reading.after(), marks({"0"}));
  reading.on_claimed(mark("9"), 0);
  EXPECT_EQ(reading.storable()->partitions, std::vector{first});
}

}  // namespace
}  // namespace postrider::core
