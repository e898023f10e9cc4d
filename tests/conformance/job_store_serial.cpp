// Serial keys, which keep order and a limit, and unique keys, which keep a second job out.

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "conformance/job_store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(JobStoreConformance, Of_a_serial_key_one_job_runs_at_a_time_in_the_order_of_events) {
  const auto ids = plant_many(3, serial("customer-1"));

  for (const auto& id : ids) {
    const auto task = take_one();
    EXPECT_EQ(task.job.delivery_id, id);
    EXPECT_EQ(row(id).serial_slot, 0);
    EXPECT_THAT(take().tasks, IsEmpty());
    record(completed(task));
    EXPECT_EQ(row(id).serial_slot, std::nullopt);
  }
}

TEST_P(JobStoreConformance, Other_serial_keys_and_other_queues_do_not_wait) {
  const auto first = plant(serial("customer-1"));
  const auto other_key = plant(serial("customer-2"));
  const auto no_key = plant();
  const auto other_queue = plant(with({serial("customer-1"), in_queue("print")}));
  auto request = take_request();
  request.queues = {{"mail", 10}, {"print", 10}};

  EXPECT_THAT(ids_of(take(request)), ElementsAre(first, other_key, no_key, other_queue));
}

TEST_P(JobStoreConformance, A_serial_limit_is_the_number_that_runs_at_once) {
  const auto ids = plant_many(5, serial("customer-1", 2));

  const auto batch = take();

  EXPECT_THAT(ids_of(batch), ElementsAre(ids[0], ids[1]));
  EXPECT_NE(row(ids[0]).serial_slot, row(ids[1]).serial_slot);
  EXPECT_THAT(take().tasks, IsEmpty());
  record(completed(batch.tasks[0]));
  EXPECT_THAT(ids_of(take()), ElementsAre(ids[2]));
  EXPECT_NE(row(ids[1]).serial_slot, row(ids[2]).serial_slot);
  EXPECT_THAT(take().tasks, IsEmpty());
}

TEST_P(JobStoreConformance, Of_a_key_with_a_limit_the_first_open_jobs_run_whatever_others_do) {
  const auto ids = plant_many(8, serial("customer-1", 5));
  const auto batch = take();
  ASSERT_THAT(ids_of(batch), ElementsAre(ids[0], ids[1], ids[2], ids[3], ids[4]));
  record(completed(batch.tasks[1]));
  record(retried(batch.tasks[3], hours(1)));

  EXPECT_THAT(ids_of(take()), ElementsAre(ids[5])) << "that which waits for its retry is one of 5";
  EXPECT_THAT(take().tasks, IsEmpty());
  clock_.advance(hours(1));
  EXPECT_THAT(ids_of(take()), ElementsAre(ids[3]));
  EXPECT_THAT(take().tasks, IsEmpty());
  std::set<std::optional<int>> slots;
  for (const auto running : {0U, 2U, 3U, 4U, 5U})
    slots.insert(row(ids[running]).serial_slot);
  EXPECT_THAT(slots, SizeIs(5));
  EXPECT_FALSE(slots.contains(std::nullopt));
}

TEST_P(JobStoreConformance, A_job_that_waits_for_its_retry_is_still_in_front) {
  const auto ids = plant_many(2, serial("customer-1"));
  record(retried(take_one(), seconds(5)));

  const auto waiting = take();
  EXPECT_THAT(waiting.tasks, IsEmpty());
  EXPECT_EQ(waiting.next_in, seconds(5));
  clock_.advance(seconds(5));
  EXPECT_THAT(ids_of(take()), ElementsAre(ids[0]));
}

TEST_P(JobStoreConformance, A_delayed_job_holds_back_the_later_ones_of_its_key) {
  const auto first = plant(with({serial("customer-1"), delayed(seconds(9))}));
  plant(serial("customer-1"));

  EXPECT_THAT(take().tasks, IsEmpty());
  clock_.advance(seconds(9));
  EXPECT_THAT(ids_of(take()), ElementsAre(first));
}

TEST_P(JobStoreConformance, A_lower_priority_in_front_goes_before_a_higher_one_of_its_key) {
  const auto first = plant(with({serial("customer-1"), with_priority(50)}));
  plant(with({serial("customer-1"), with_priority(-50)}));

  EXPECT_THAT(ids_of(take()), ElementsAre(first));
}

TEST_P(JobStoreConformance, A_failed_or_cancelled_job_lets_the_next_one_go) {
  const auto ids = plant_many(3, serial("customer-1"));
  record(failed(take_one()));
  harness_->cancel_job(ids[1], now());

  EXPECT_THAT(ids_of(take()), ElementsAre(ids[2]));
}

TEST_P(JobStoreConformance, Jobs_that_wait_for_their_key_do_not_hide_others) {
  plant_many(10, serial("customer-1"));
  const auto other = plant();
  take(1);

  EXPECT_THAT(ids_of(take(1)), ElementsAre(other));
}

TEST_P(JobStoreConformance, An_earlier_event_that_comes_late_waits_for_a_free_slot) {
  NewEvent early;
  early.id = EventId(fresh_uuid());
  early.type = "order.placed";
  value_of(store_->add(std::vector{early}, soon()));
  plant(serial("customer-1"));
  const auto running = take_one();
  const auto late =
      plant(with({serial("customer-1"), [&](NewDelivery& job) { job.event_id = *early.id; }}));
  const auto other = plant();

  EXPECT_THAT(ids_of(take(1)), ElementsAre(other)) << "and hides nobody";
  EXPECT_THAT(take().tasks, IsEmpty());
  record(completed(running));
  EXPECT_THAT(ids_of(take()), ElementsAre(late));
}

TEST_P(JobStoreConformance, JT_20_the_slot_of_a_dead_worker_is_free_when_its_end_is_recorded) {
  const auto ids = plant_many(2, serial("customer-1"));
  const auto dead = start_worker();
  const auto tasks = take_for(dead).tasks;
  ASSERT_THAT(tasks, SizeIs(1));
  expect_ok(jobs_->declare_dead(dead, now(), soon()));
  EXPECT_THAT(take().tasks, IsEmpty());

  EXPECT_THAT(lost().attempts, SizeIs(1));
  record(failed(tasks[0], "worker_died"));

  EXPECT_THAT(ids_of(take()), ElementsAre(ids[1]));
}

TEST_P(JobStoreConformance, JT_19_cancelled_and_added_again_a_serial_job_never_runs_twice) {
  const auto first = plant(serial("customer-1"));
  const auto running = take_one();
  harness_->cancel_job(first, now());
  const auto second = plant(serial("customer-1"));

  EXPECT_THAT(take().tasks, IsEmpty()) << "the first is asked to stop and still runs";
  record(cancelled(running));
  EXPECT_THAT(ids_of(take()), ElementsAre(second));
}

TEST_P(JobStoreConformance, Serial_jobs_of_brokers_are_handed_out_one_at_a_time) {
  const auto ids = plant_many(2, with({serial("customer-1"), over_broker()}));

  const auto batch = value_of(jobs_->hand_out({{"broker"}, 5, now()}, soon()));

  ASSERT_THAT(ids_of(batch), ElementsAre(ids[0]));
  EXPECT_THAT(value_of(jobs_->hand_out({{"broker"}, 5, now()}, soon())).tasks, IsEmpty());
  record(completed(batch.tasks[0]));
  EXPECT_THAT(ids_of(value_of(jobs_->hand_out({{"broker"}, 5, now()}, soon()))),
              ElementsAre(ids[1]));
}

TEST_P(JobStoreConformance, Takers_at_once_never_run_more_than_the_limit_of_a_key) {
  constexpr int limit = 2;
  constexpr std::size_t jobs = 40;
  constexpr int takers = 4;
  plant_many(jobs, serial("customer-1", limit));
  const auto request = take_request(3);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<std::size_t> done{0};
  const auto deadline = soon();

  std::vector<std::thread> threads;
  for (int i = 0; i < takers; ++i) {
    threads.emplace_back([&] {
      const auto store = harness_->open_job_store();
      while (done < jobs && !deadline.passed()) {
        const auto batch = store->take(request, soon());
        if (!batch.ok()) continue;
        const auto taken = static_cast<int>(batch->tasks.size());
        const int now_running = running += taken;
        for (int seen = most; seen < now_running && !most.compare_exchange_weak(seen, now_running);)
          ;
        running -= taken;
        for (const auto& task : batch->tasks) {
          const auto answers = store->record({{completed(task)}, request.now}, soon());
          if (answers.ok() && answers->front() == RecordAnswer::recorded) ++done;
        }
      }
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(done.load(), jobs);
  EXPECT_LE(most.load(), limit);
}

// Unique keys

TEST_P(JobStoreConformance, A_unique_key_keeps_a_second_job_out_while_the_first_is_open) {
  const auto first = plant(unique("invoice-1"));

  EXPECT_EQ(try_plant(unique("invoice-1")), std::nullopt);
  const auto task = take_one();
  EXPECT_EQ(try_plant(unique("invoice-1")), std::nullopt) << "while it runs";
  record(retried(task, hours(1)));
  EXPECT_EQ(try_plant(unique("invoice-1")), std::nullopt) << "while it waits for its retry";
  EXPECT_EQ(task.job.delivery_id, first);
}

TEST_P(JobStoreConformance, A_unique_key_is_one_of_a_job) {
  plant(unique("invoice-1"));

  EXPECT_NE(try_plant(unique("invoice-2")), std::nullopt);
  EXPECT_NE(try_plant(with(
                {unique("invoice-1"), [](NewDelivery& job) { job.job->policy.job = "print"; }})),
            std::nullopt);
  EXPECT_EQ(try_plant(with({unique("invoice-1"), in_queue("print")})), std::nullopt);
}

TEST_P(JobStoreConformance, JT_22_a_unique_key_is_free_when_its_job_is_final) {
  for (const auto status :
       {DeliveryStatus::completed, DeliveryStatus::failed, DeliveryStatus::cancelled}) {
    plant(unique("invoice-1"));
    record(ended(take_one(), status, "over"));
  }
  const auto waiting = plant(unique("invoice-1"));
  harness_->cancel_job(waiting, now());

  EXPECT_NE(try_plant(unique("invoice-1")), std::nullopt);
}

TEST_P(JobStoreConformance, JT_23_of_many_unique_jobs_at_once_one_is_stored) {
  constexpr std::size_t writers = 4;
  constexpr std::size_t each = 25;
  std::vector<NewEvent> events(writers * each);
  for (auto& event : events) {
    event.id = EventId(fresh_uuid());
    event.type = "order.placed";
  }
  value_of(store_->add(events, soon()));
  NewDelivery job;
  job.route = "mailing";
  job.on_failed = OnFailed::skip;
  job.job.emplace();
  job.job->policy.job = "send";
  job.job->policy.queue = "mail";
  job.job->policy.unique_key = "invoice-1";
  std::atomic<int> stored{0};

  std::vector<std::thread> threads;
  for (std::size_t writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      for (std::size_t i = 0; i < each; ++i) {
        auto own = job;
        own.id = DeliveryId(fresh_uuid());
        own.event_id = *events[writer * each + i].id;
        stored += harness_->plant_job(own, now()) ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(stored.load(), 1);
  EXPECT_THAT(take().tasks, SizeIs(1));
}

}  // namespace
}  // namespace postrider::testing
