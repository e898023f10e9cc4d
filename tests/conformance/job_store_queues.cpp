// Queues of which something is said: paused ones, and ones with a rate.

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/job_store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TaskBatch hand_out(JobStore& jobs, Timestamp now, std::vector<std::string> routes) {
  return value_of(jobs.hand_out({std::move(routes), 100, now}, soon()));
}

TEST_P(JobStoreConformance, A_paused_queue_gives_nothing_until_it_is_resumed) {
  const auto id = plant();
  const auto other = plant(in_queue("print"));
  pause("mail");
  auto request = take_request();
  request.queues = {{"mail", 10}, {"print", 10}};

  EXPECT_THAT(ids_of(take(request)), ElementsAre(other));
  const auto paused = take();
  EXPECT_THAT(paused.tasks, IsEmpty());
  EXPECT_FALSE(paused.more);
  EXPECT_EQ(paused.next_in, std::nullopt) << "nobody knows when";
  harness_->rule_queue({"mail", false, {}, {}}, now());
  EXPECT_THAT(ids_of(take()), ElementsAre(id));
}

TEST_P(JobStoreConformance, What_runs_in_a_queue_that_is_paused_can_end) {
  plant();
  const auto task = take_one();
  pause("mail");

  EXPECT_TRUE(touch(attempt_of(task)).current);
  EXPECT_EQ(record(completed(task)), RecordAnswer::recorded);
}

TEST_P(JobStoreConformance, A_rate_lets_so_many_jobs_through_and_then_one_at_a_time) {
  plant_many(9);
  harness_->rule_queue({"mail", false, 4, seconds(2)}, now());

  const auto burst = take();
  EXPECT_THAT(burst.tasks, SizeIs(4));
  EXPECT_FALSE(burst.more) << "asking again at once would be of no use";
  EXPECT_EQ(burst.next_in, milliseconds(500));
  EXPECT_THAT(take().tasks, IsEmpty());
  clock_.advance(milliseconds(499));
  EXPECT_THAT(take().tasks, IsEmpty());
  clock_.advance(milliseconds(1));
  EXPECT_THAT(take().tasks, SizeIs(1));
  clock_.advance(seconds(1));
  EXPECT_THAT(take().tasks, SizeIs(2));
}

TEST_P(JobStoreConformance, Tokens_are_saved_up_to_one_burst) {
  plant_many(9);
  harness_->rule_queue({"mail", false, 3, seconds(1)}, now());
  clock_.advance(hours(5));

  EXPECT_THAT(take().tasks, SizeIs(3));
}

TEST_P(JobStoreConformance, A_take_that_finds_little_uses_few_tokens) {
  harness_->rule_queue({"mail", false, 3, hours(1)}, now());
  plant();
  EXPECT_THAT(take().tasks, SizeIs(1));
  EXPECT_THAT(take().tasks, IsEmpty());
  plant_many(5);

  EXPECT_THAT(take().tasks, SizeIs(2));
}

TEST_P(JobStoreConformance, The_limit_of_a_take_counts_beside_the_rate) {
  plant_many(5);
  harness_->rule_queue({"mail", false, 3, hours(1)}, now());

  const auto first = take(2);
  EXPECT_THAT(first.tasks, SizeIs(2));
  EXPECT_TRUE(first.more);
  EXPECT_THAT(take(2).tasks, SizeIs(1));
}

TEST_P(JobStoreConformance, A_rate_of_one_queue_is_none_of_anothers) {
  plant_many(3);
  plant_many(3, in_queue("print"));
  harness_->rule_queue({"mail", false, 1, hours(1)}, now());
  auto request = take_request();
  request.queues = {{"mail", 10}, {"print", 10}};

  EXPECT_THAT(take(request).tasks, SizeIs(4));
}

TEST_P(JobStoreConformance, A_rate_holds_for_what_is_handed_to_brokers_too) {
  plant_many(9, over_broker());
  plant_many(2);
  harness_->rule_queue({"mail", false, 4, seconds(2)}, now());

  const auto burst = hand_out(*jobs_, now(), {"broker"});
  EXPECT_THAT(burst.tasks, SizeIs(4));
  EXPECT_FALSE(burst.more) << "asking again at once would be of no use";
  EXPECT_EQ(burst.next_in, milliseconds(500));
  EXPECT_THAT(hand_out(*jobs_, now(), {"broker"}).tasks, IsEmpty());
  EXPECT_THAT(take().tasks, IsEmpty()) << "they share it with those that take from the database";
  clock_.advance(milliseconds(499));
  EXPECT_THAT(hand_out(*jobs_, now(), {"broker"}).tasks, IsEmpty());
  clock_.advance(milliseconds(1));
  EXPECT_THAT(hand_out(*jobs_, now(), {"broker"}).tasks, SizeIs(1));
  clock_.advance(seconds(1));
  EXPECT_THAT(hand_out(*jobs_, now(), {"broker"}).tasks, SizeIs(2));
}

TEST_P(JobStoreConformance, Routes_into_one_queue_share_its_rate_and_hold_up_no_other_queue) {
  plant_many(3, over_broker("letters"));
  plant_many(3, over_broker("invoices"));
  plant_many(3, with({over_broker("labels"), in_queue("print")}));
  harness_->rule_queue({"mail", false, 4, hours(1)}, now());

  EXPECT_THAT(hand_out(*jobs_, now(), {"letters", "invoices", "labels"}).tasks, SizeIs(4 + 3));
  EXPECT_THAT(hand_out(*jobs_, now(), {"letters", "invoices", "labels"}).tasks, IsEmpty());
}

TEST_P(JobStoreConformance, Takers_at_once_share_one_rate) {
  constexpr int takers = 4;
  plant_many(40);
  harness_->rule_queue({"mail", false, 10, hours(1)}, now());
  const auto request = take_request(3);
  std::atomic<std::size_t> taken{0};

  std::vector<std::thread> threads;
  for (int i = 0; i < takers; ++i) {
    threads.emplace_back([&] {
      const auto store = harness_->open_job_store();
      for (int times = 0; times < 10; ++times) {
        const auto batch = store->take(request, soon());
        if (batch.ok()) taken += batch->tasks.size();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(taken.load(), 10U);
}

}  // namespace
}  // namespace postrider::testing
