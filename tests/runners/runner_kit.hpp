#pragma once
/// \file
/// What tests of runners share: tasks, and ends of attempts as words.

#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <postrider/job_runner.hpp>

namespace postrider::testing {

/// Far more than a report takes on a busy machine; only a fault waits for so long.
inline constexpr milliseconds report_patience{30'000};

/// Ids of attempts are told apart by a number.
/// Of this process alone: a runner ends all that carries the id of an attempt, and other tests run
/// beside this one.
inline DispatchId dispatch(int number) {
  std::array<std::uint8_t, 16> bytes{};
  const auto process = static_cast<std::uint32_t>(getpid());
  for (int i = 0; i < 4; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(process >> (8 * i));
  bytes[14] = static_cast<std::uint8_t>(number / 256);
  bytes[15] = static_cast<std::uint8_t>(number % 256);
  return DispatchId(Uuid(bytes));
}

inline Task task(int number, std::string payload = R"({"orderId":1,"item":"lamp"})") {
  Event event;
  event.seq = Seq(number);
  event.id = EventId(dispatch(1000 + number).value());
  event.aggregate = Aggregate{"order", "1"};
  event.type = "order.placed";
  event.payload = std::move(payload);
  event.content_type = "application/json";
  Task task;
  task.job.delivery_id = DeliveryId(dispatch(2000 + number).value());
  task.job.event_id = event.id;
  task.job.event_seq = event.seq;
  task.job.job = "ship_order";
  task.job.queue = "shipping";
  task.dispatch_id = dispatch(number);
  task.event = std::make_shared<const Event>(std::move(event));
  task.until_timeout = std::chrono::minutes(1);
  return task;
}

/// "done", "retry exit_75", "fail bad_result", "died of signal 9", "interrupted".
inline std::string words_of(const AttemptEnd& end) {
  if (const auto* outcome = std::get_if<JobOutcome>(&end)) {
    const std::string kind(to_string(outcome->kind));
    return outcome->code.empty() ? kind : kind + " " + outcome->code;
  }
  if (const auto* death = std::get_if<WorkerDeath>(&end)) {
    return (death->out_of_memory ? "out of memory, signal " : "died of signal ") +
           std::to_string(death->signal);
  }
  if (std::holds_alternative<Interrupted>(end)) return "interrupted";
  return std::holds_alternative<TimedOut>(end) ? "timed out" : "refused";
}

/// The next report, which must come; of several at once the others would be lost.
inline RunnerReport next_report(JobRunner& runner) {
  const auto deadline = Deadline::after(report_patience);
  while (!deadline.passed()) {
    auto reports = runner.poll(deadline);
    if (reports.size() == 1) return reports.front();
    if (!reports.empty()) return {DispatchId(), SendRefused{"several_reports", ""}};
  }
  return {DispatchId(), TimedOut{}};
}

}  // namespace postrider::testing
