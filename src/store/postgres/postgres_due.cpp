#include "store/postgres/postgres_due.hpp"

#include <algorithm>
#include <utility>

#include "store/postgres/postgres_claim.hpp"
#include "store/postgres/postgres_rows.hpp"

namespace postrider::store::postgres {
namespace {

// Of events_held: the part, the event, the delivery.
constexpr int held_event_column = 1;
constexpr int held_now_column = held_event_column + 10;
constexpr int held_delivery_column = held_event_column + event_columns;

/// No caller asks for more; a bound for the parameter.
constexpr std::size_t most_rows = 1'000'000;

/// One more than fits tells whether there is more.
int row_limit(std::size_t limit) {
  return static_cast<int>(std::clamp<std::size_t>(limit, 1, most_rows)) + 1;
}

std::size_t distinct(std::vector<Partition> partitions) {
  std::sort(partitions.begin(), partitions.end());
  return static_cast<std::size_t>(std::unique(partitions.begin(), partitions.end()) -
                                  partitions.begin());
}

Parameters due_parameters(const DueRequest& request, int partitions) {
  Parameters parameters;
  parameters.time_if(request.now).bytes(partition_bits(request.partitions, partitions));
  parameters.small_integer(partitions).texts(request.routes);
  return parameters;
}

Call due_call(const DueRequest& request, int partitions) {
  Call call{"deliveries_due", due_parameters(request, partitions)};
  const auto bytes = std::min<std::size_t>(request.bytes, std::size_t{1} << 40U);
  call.parameters.small_integer(row_limit(request.limit)).integer(static_cast<std::int64_t>(bytes));
  call.parameters.boolean(distinct(request.partitions) == static_cast<std::size_t>(partitions));
  return call;
}

DueDelivery read_due_row(const Rows& rows, int row, int partitions) {
  auto columns = read_delivery_columns(rows, row);
  auto event = read_event_columns(rows, row, delivery_columns);
  DueDelivery due;
  due.overdue = columns.delivery.status == DeliveryStatus::dispatched;
  due.delivery = std::move(columns.delivery);
  due.event = std::move(event.event);
  due.partition = Partition(event.slot % partitions);
  due.malformed = columns.malformed.empty() ? std::move(event.malformed) : columns.malformed;
  return due;
}

}  // namespace

Result<DueBatch> read_due(PostgresConnection& connection, const DueRequest& request,
                          Deadline deadline) {
  const int partitions = connection.options().partitions;
  const std::vector<Call> calls = {due_call(request, partitions),
                                   {"deliveries_next_due", due_parameters(request, partitions)}};
  const auto results = connection.read(calls, deadline);
  if (!results) return results.error();

  DueBatch batch;
  const auto& rows = results->at(0);
  const auto limit = static_cast<std::size_t>(row_limit(request.limit)) - 1;
  std::size_t bytes = 0;
  for (int row = 1; row < rows.size() && !batch.more; ++row) {
    auto due = read_due_row(rows, row, partitions);
    bytes += due.event->payload.size();
    // A prefix in the order of events keeps every run unbroken.
    batch.more = batch.deliveries.size() == limit || (row > 1 && bytes > request.bytes);
    if (!batch.more) batch.deliveries.push_back(std::move(due));
  }
  const auto& next = results->at(1);
  if (!next.is_null(0, 1)) batch.next_in = until(next.time(0, 1), next.time(0, 0));
  return batch;
}

Result<HeldBatch> read_held(PostgresConnection& connection, const HeldRequest& request,
                            Deadline deadline) {
  const int partitions = connection.options().partitions;
  Call call{"events_held"};
  call.parameters.integer(request.after.value());
  call.parameters.bytes(partition_bits(request.partitions, partitions)).small_integer(partitions);
  call.parameters.time_if(request.now).small_integer(row_limit(request.limit) - 1);
  const std::vector<Call> calls = {std::move(call), {"heads_exist"}};
  const auto results = connection.read(calls, deadline);
  if (!results) return results.error();

  HeldBatch batch;
  const auto& rows = results->at(0);
  const auto now = rows.time(0, held_now_column);
  for (int row = 1; row < rows.size(); ++row) {
    auto event = claimed_event(read_event_columns(rows, row, held_event_column), now, partitions);
    batch.events.push_back({std::move(event), DeliveryId(rows.uuid(row, held_delivery_column))});
  }
  if (!results->at(1).boolean(0, 0)) return batch;
  HeadKeys keys;
  for (const auto& held : batch.events)
    keys.add(*held.claimed.event);
  auto heads = list_heads(connection, keys, deadline);
  if (!heads) return heads.error();
  batch.open_heads = std::move(heads).value();
  return batch;
}

}  // namespace postrider::store::postgres
