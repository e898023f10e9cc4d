#pragma once
/// \file
/// What the suite of job stores is written with: changes of a planted job, and ends of attempts.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/testing/job_store_conformance.hpp>

#include "conformance/common_builders.hpp"

namespace postrider {

inline void PrintTo(RecordAnswer answer, std::ostream* out) {
  constexpr std::string_view words[] = {"recorded", "repeated", "conflict", "stale"};
  *out << words[static_cast<std::size_t>(answer)];
}

}  // namespace postrider

namespace postrider::testing {

using JobChange = std::function<void(NewDelivery&)>;

/// All of them, in the order given.
[[nodiscard]] JobChange with(std::initializer_list<JobChange> changes);
[[nodiscard]] JobChange delayed(milliseconds wait);
[[nodiscard]] JobChange in_queue(std::string queue);
[[nodiscard]] JobChange with_priority(int priority);
[[nodiscard]] JobChange serial(std::string key, int limit = 1);
[[nodiscard]] JobChange unique(std::string key);
/// Through a broker, on this route.
[[nodiscard]] JobChange over_broker(std::string route = "broker");

/// What is recorded of `task`.
[[nodiscard]] JobUpdate ended(const Task& task, DeliveryStatus status, std::string result);
[[nodiscard]] JobUpdate completed(const Task& task);
[[nodiscard]] JobUpdate failed(const Task& task, std::string code = "no_such_card");
[[nodiscard]] JobUpdate cancelled(const Task& task);
/// An attempt is used and the row is due again after `delay`.
[[nodiscard]] JobUpdate retried(const Task& task, milliseconds delay);

[[nodiscard]] AttemptUpdate attempt_of(const Task& task);

[[nodiscard]] std::vector<DeliveryId> ids_of(const TaskBatch& batch);
[[nodiscard]] std::vector<DeliveryId> ids_of(const LostBatch& batch);
[[nodiscard]] std::vector<DispatchId> dispatches_of(const TaskBatch& batch);
/// In another order than that of a batch.
[[nodiscard]] std::vector<DeliveryId> sorted(std::vector<DeliveryId> ids);

}  // namespace postrider::testing
