// Handlers of jobs: what they may ask for, and what comes of what they do.
#include <postrider/handlers.hpp>

#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/recording_desk.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = JobOutcome::Kind;
using namespace std::chrono_literals;

struct OrderShipped {
  std::int64_t orderId = 0;
};
POSTRIDER_EVENT(OrderShipped, "order.shipped", orderId)

class Mailer {
 public:
  virtual ~Mailer() = default;
  virtual void send(const std::string& text) = 0;
};
class ListMailer final : public Mailer {
 public:
  void send(const std::string& text) override { sent.push_back(text); }
  std::vector<std::string> sent;
};
struct Clerk {
  int stamps = 0;
};

struct CardDeclined : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class HandlersTest : public ::testing::Test {
 protected:
  HandlersTest() {
    task_.job.job = "ship_order";
    task_.job.queue = "shipping";
    task_.job.delivery_id = DeliveryId(uuid(1));
    task_.job.event_id = EventId(uuid(2));
    task_.dispatch_id = DispatchId(uuid(3));
    set_event("order.shipped", R"({"orderId":7})");
  }

  static Uuid uuid(std::uint8_t last) {
    std::array<std::uint8_t, 16> bytes{};
    bytes.back() = last;
    return Uuid(bytes);
  }
  void set_event(std::string type, std::string payload) {
    Event event;
    event.type = std::move(type);
    event.payload = std::move(payload);
    task_.event = std::make_shared<const Event>(std::move(event));
  }
  JobOutcome run() {
    Attempt attempt(task_, desk_, stop_.get_token());
    return handlers_.run(task_, attempt);
  }
  template <class Function>
  JobOutcome run(Function function) {
    handlers_ = Handlers();
    handlers_.bind("ship_order", std::move(function));
    EXPECT_THAT(handlers_.validate(), IsEmpty());
    return run();
  }

  Task task_;
  RecordingDesk desk_;
  std::stop_source stop_;
  Handlers handlers_;
};

std::int64_t shipped_by_function = 0;
JobOutcome ship(const OrderShipped& order) {
  shipped_by_function = order.orderId;
  return JobOutcome::done();
}

TEST_F(HandlersTest, R_165_a_handler_is_given_all_that_a_task_has_in_any_order) {
  bool called = false;
  const auto outcome =
      run([&](std::stop_token stop, DispatchId dispatch, const EventId& event_id, LastAttempt last,
              const Event& event, Attempt& attempt, DeliveryId delivery, OrderShipped order) {
        called = true;
        EXPECT_TRUE(stop.stop_possible());
        EXPECT_EQ(delivery, DeliveryId(uuid(1)));
        EXPECT_EQ(event_id, EventId(uuid(2)));
        EXPECT_EQ(dispatch, DispatchId(uuid(3)));
        EXPECT_TRUE(last) << "no retry delay is left";
        EXPECT_EQ(event.payload, R"({"orderId":7})");
        EXPECT_EQ(attempt.job(), "ship_order");
        EXPECT_EQ(order.orderId, 7);
      });
  EXPECT_TRUE(called);
  EXPECT_EQ(outcome, JobOutcome::done());
}

TEST_F(HandlersTest, R_197_a_handler_may_ask_for_nothing) {
  EXPECT_EQ(run([] {}), JobOutcome::done());
}

TEST_F(HandlersTest, A_plain_function_is_a_handler) {
  shipped_by_function = 0;
  EXPECT_EQ(run(&ship), JobOutcome::done());
  EXPECT_EQ(shipped_by_function, 7);
}

TEST_F(HandlersTest, An_object_that_cannot_be_copied_is_a_handler) {
  auto count = std::make_unique<int>(0);
  auto& counted = *count;
  EXPECT_EQ(run([count = std::move(count)](Attempt&) { ++*count; }), JobOutcome::done());
  EXPECT_EQ(counted, 1);
}

TEST_F(HandlersTest, R_164_services_are_injected_by_their_type) {
  ListMailer mailer;
  const Clerk clerk{3};
  handlers_.inject<Mailer>(mailer);
  handlers_.inject(clerk);
  handlers_.bind("ship_order", [](Mailer& to, const OrderShipped& order, const Clerk& by) {
    to.send(std::to_string(order.orderId) + " by " + std::to_string(by.stamps));
  });
  EXPECT_THAT(handlers_.validate(), IsEmpty());
  EXPECT_EQ(run(), JobOutcome::done());
  EXPECT_THAT(mailer.sent, ElementsAre("7 by 3"));
}

TEST_F(HandlersTest, R_164_parameters_with_defaults_are_left_alone) {
  int seen = 0;
  EXPECT_EQ(run([&](DeliveryId, int copies = 4) { seen = copies; }), JobOutcome::done());
  EXPECT_EQ(seen, 4);
}

TEST_F(HandlersTest, R_163_a_service_that_nobody_injected_is_told_by_name) {
  handlers_.bind("ship_order", [](Mailer&) {});
  const auto faults = handlers_.validate();
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0], HasSubstr("'ship_order'"));
  EXPECT_THAT(faults[0], HasSubstr("Mailer"));
}

TEST_F(HandlersTest, A_service_given_as_const_is_no_service_to_change) {
  const Clerk clerk;
  handlers_.inject(clerk);
  handlers_.bind("ship_order", [](Clerk&) {});
  EXPECT_EQ(handlers_.validate().size(), 1U);
}

TEST_F(HandlersTest, Bad_and_repeated_names_are_told_all_at_once) {
  handlers_.bind("", [] {});
  handlers_.bind("ship order", [] {});
  handlers_.bind(std::string(65, 'a'), [] {});
  handlers_.bind("ship_order", [] {});
  handlers_.bind("ship_order", [] {});
  EXPECT_EQ(handlers_.validate().size(), 4U);
  EXPECT_THAT(handlers_.jobs(), ElementsAre("ship_order"));
  EXPECT_TRUE(handlers_.check_job("ship_order"));
  EXPECT_EQ(handlers_.check_job("bill_order").error().code, ErrorCode::invalid_argument);
}

TEST_F(HandlersTest, A_route_without_a_handler_and_a_handler_without_a_route_are_told) {
  const auto route = [](std::string name, std::string job, std::string queue) {
    Route made;
    made.name = std::move(name);
    made.job.emplace();
    made.job->job = std::move(job);
    made.job->queue = std::move(queue);
    return made;
  };
  Route publish;
  publish.name = "announce";
  handlers_.bind("ship_order", [] {});
  handlers_.bind("shipp_order", [] {});
  const auto found = handlers_.disagreements(
      {publish, route("ship", "ship_order", "shipping"), route("bill", "bill_order", "billing"),
       route("label", "print_label", "shipping")},
      {"shipping"});
  ASSERT_EQ(found.size(), 2U) << "the queue billing is another worker's";
  EXPECT_THAT(found[0], HasSubstr("'print_label'"));
  EXPECT_THAT(found[1], HasSubstr("'shipp_order'"));
}

TEST_F(HandlersTest, A_payload_that_is_no_such_event_fails_for_good_and_is_not_repeated) {
  const auto take = [](const OrderShipped&) { FAIL() << "the handler was called"; };
  for (const auto* payload : {"", "{", R"({"orderId":"canary"})", R"({"other":"canary"})"}) {
    set_event("order.shipped", payload);
    const auto outcome = run(take);
    EXPECT_EQ(outcome.kind, Kind::fail) << payload;
    EXPECT_EQ(outcome.code, job_code::undecodable) << payload;
    EXPECT_THAT(outcome.detail, Not(HasSubstr("canary")));
  }
  set_event("order.placed", R"({"orderId":7})");
  EXPECT_EQ(run(take).code, job_code::undecodable) << "an event of another type";
}

TEST_F(HandlersTest, A_row_that_holds_no_event_fails_for_good) {
  task_.malformed = "its headers are not JSON";
  EXPECT_EQ(run([] {}).code, job_code::undecodable);
  task_.malformed.clear();
  task_.event = nullptr;
  EXPECT_EQ(run([] {}).code, job_code::undecodable);
}

TEST_F(HandlersTest, A_job_without_a_handler_waits_for_a_worker_that_has_one) {
  handlers_.bind("bill_order", [] {});
  const auto outcome = run();
  EXPECT_EQ(outcome.kind, Kind::snooze) << "an old worker in the middle of a deploy";
  EXPECT_EQ(outcome.delay, Handlers::no_handler_delay);
  EXPECT_EQ(outcome.code, job_code::no_handler);
}

TEST_F(HandlersTest, What_a_handler_returns_is_its_outcome) {
  EXPECT_EQ(run([] { return JobOutcome::snooze(3s); }), JobOutcome::snooze(3s));
  EXPECT_EQ(run([] { return Result<void>(); }), JobOutcome::done());

  struct Row {
    Disposition disposition;
    Kind kind;
  };
  for (const auto& row :
       {Row{Disposition::retry, Kind::retry}, Row{Disposition::in_doubt, Kind::retry},
        Row{Disposition::reject, Kind::fail}, Row{Disposition::stop, Kind::fail}}) {
    const auto outcome = run([&]() -> Result<void> {
      return Error{ErrorCode::timeout, row.disposition, "the shop does not answer.", "shop", ""};
    });
    EXPECT_EQ(outcome.kind, row.kind) << to_string(row.disposition);
    EXPECT_EQ(outcome.code, "timeout");
    EXPECT_EQ(outcome.detail, "the shop does not answer.");
  }
}

TEST_F(HandlersTest, R_184_a_retryable_error_is_a_retry_with_its_own_delay_or_the_routes) {
  EXPECT_EQ(run([] { throw RetryableError("shop_busy"); }), JobOutcome::retry("shop_busy"));
  EXPECT_EQ(run([] { throw RetryableError("shop_busy", 5s); }),
            JobOutcome::retry_in(5s, "shop_busy"));
}

TEST_F(HandlersTest, R_185_any_other_exception_is_final_and_R_213_its_text_is_kept_nowhere) {
  const auto outcome = run([] { throw CardDeclined("canary 4111111111111111"); });
  EXPECT_EQ(outcome.kind, Kind::fail);
  EXPECT_EQ(outcome.code, job_code::handler_error);
  EXPECT_THAT(outcome.detail, HasSubstr("CardDeclined"));
  EXPECT_THAT(outcome.detail, Not(HasSubstr("canary")));

  const auto bare = run([] { throw 42; });
  EXPECT_EQ(bare.code, job_code::handler_error);
  EXPECT_EQ(bare.detail, "int");
}

TEST_F(HandlersTest, Memory_that_ran_out_is_an_ordinary_failure) {
  const auto outcome = run([] { throw std::bad_alloc(); });
  EXPECT_EQ(outcome, JobOutcome::fail(job_code::handler_error, "std::bad_alloc"));
}

TEST_F(HandlersTest, The_rules_for_exceptions_can_be_replaced_in_part) {
  handlers_.bind("ship_order", [] { throw CardDeclined("no"); });
  handlers_.classify([](const std::exception_ptr& thrown) -> std::optional<JobOutcome> {
    try {
      std::rethrow_exception(thrown);
    } catch (const CardDeclined&) {
      return JobOutcome::retry("card_declined");
    }
  });
  EXPECT_EQ(run(), JobOutcome::retry("card_declined"));

  handlers_.bind("bill_order", [] { throw std::logic_error("no"); });
  task_.job.job = "bill_order";
  EXPECT_EQ(run().code, job_code::handler_error) << "what the classifier rethrows";
}

TEST_F(HandlersTest, R_195_the_last_attempt_follows_the_delays_of_the_row) {
  task_.job.retry_delays = {60s, 120s};
  std::vector<bool> flags;
  for (task_.job.attempts = 0; task_.job.attempts < 3; ++task_.job.attempts)
    run([&](LastAttempt last) { flags.push_back(last.value); });
  EXPECT_THAT(flags, ElementsAre(false, false, true));
}

}  // namespace
}  // namespace postrider
