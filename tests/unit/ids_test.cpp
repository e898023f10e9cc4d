#include <set>

#include <gtest/gtest.h>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/testing/manual_clock.hpp>

namespace postrider {
namespace {

using std::chrono::hours;
using testing::ManualClock;

constexpr const char* example = "0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6b";

std::uint64_t milliseconds_in(const Uuid& uuid) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 6; ++i)
    value = value << 8U | uuid.bytes()[i];
  return value;
}

TEST(Uuid, It_is_written_as_it_was_read) {
  EXPECT_EQ(Uuid::parse(example).value().to_string(), example);
  EXPECT_EQ(Uuid::parse("0190A5B2-7C3D-7E4F-8A6B-1C2D3E4F5A6B").value().to_string(), example);
  EXPECT_EQ(Uuid().to_string(), "00000000-0000-0000-0000-000000000000");
}

TEST(Uuid, Its_bytes_are_in_the_order_of_its_text) {
  const auto uuid = Uuid::parse(example).value();

  EXPECT_EQ(uuid.bytes()[0], 0x01);
  EXPECT_EQ(uuid.bytes()[1], 0x90);
  EXPECT_EQ(uuid.bytes()[6], 0x7e);
  EXPECT_EQ(uuid.bytes()[15], 0x6b);
}

TEST(Uuid, Anything_else_is_refused) {
  for (const char* text :
       {"", "0190a5b2", "0190a5b27c3d7e4f8a6b1c2d3e4f5a6b", "0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6",
        "0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6b0", "0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6g",
        "0190a5b2_7c3d-7e4f-8a6b-1c2d3e4f5a6b", "0190a5b-27c3d-7e4f-8a6b-1c2d3e4f5a6b",
        "{190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6}", " 190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6b",
        "0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a-b"}) {
    const auto parsed = Uuid::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument) << text;
  }
}

TEST(Uuid, It_is_ordered_like_its_text) {
  const auto smaller = Uuid::parse("0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6b").value();
  const auto larger = Uuid::parse("0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6c").value();

  EXPECT_LT(smaller, larger);
  EXPECT_NE(std::hash<Uuid>{}(smaller), std::hash<Uuid>{}(larger));
}

TEST(IdGenerator, An_id_is_a_version_7_uuid_of_the_current_time) {
  const ManualClock clock;
  const auto random = seeded_random(1);
  IdGenerator ids(clock, *random);

  const auto id = ids.next();

  EXPECT_EQ(milliseconds_in(id), static_cast<std::uint64_t>(ManualClock::start_us / 1000));
  EXPECT_EQ(id.bytes()[6] >> 4U, 7);
  EXPECT_EQ(id.bytes()[8] >> 6U, 2);
}

TEST(IdGenerator, Ids_ascend_within_a_millisecond) {
  const ManualClock clock;
  const auto random = seeded_random(1);
  IdGenerator ids(clock, *random);

  auto before = ids.next();
  for (int i = 0; i < 20'000; ++i) {  // several times what one millisecond's counter holds
    const auto id = ids.next();
    ASSERT_LT(before, id) << i;
    ASSERT_EQ(id.bytes()[6] >> 4U, 7) << i;
    before = id;
  }
}

TEST(IdGenerator, Ids_ascend_when_the_clock_steps_back) {
  ManualClock clock;
  const auto random = seeded_random(1);
  IdGenerator ids(clock, *random);
  auto before = ids.next();
  for (int i = 0; i < 100; ++i) {
    clock.advance(-hours(1));
    const auto id = ids.next();
    ASSERT_LT(before, id) << i;
    before = id;
  }
}

TEST(IdGenerator, Ids_follow_the_clock_when_it_moves_on) {
  ManualClock clock;
  const auto random = seeded_random(1);
  IdGenerator ids(clock, *random);
  const auto before = ids.next();
  clock.advance(std::chrono::milliseconds(1));

  const auto id = ids.next();

  EXPECT_LT(before, id);
  EXPECT_EQ(milliseconds_in(id), milliseconds_in(before) + 1);
}

TEST(IdGenerator, Generators_with_different_chance_do_not_meet) {
  const ManualClock clock;
  const auto one = seeded_random(1);
  const auto other = seeded_random(2);
  IdGenerator first(clock, *one);
  IdGenerator second(clock, *other);
  std::set<Uuid> seen;

  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(first.next()).second);
    EXPECT_TRUE(seen.insert(second.next()).second);
  }
}

TEST(Random, The_same_seed_gives_the_same_sequence_and_another_another) {
  const auto first = seeded_random(42);
  const auto again = seeded_random(42);
  const auto other = seeded_random(43);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const auto value = first->next();
    EXPECT_EQ(value, again->next());
    if (value == other->next()) ++equal;
  }
  EXPECT_LT(equal, 5);
}

}  // namespace
}  // namespace postrider
