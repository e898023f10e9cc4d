#include "store/postgres/postgres_rows.hpp"

#include <algorithm>
#include <utility>

#include "store/common/durations_codec.hpp"
#include "store/common/headers_codec.hpp"

namespace postrider::store::postgres {
namespace {

Headers read_headers(std::string_view text, std::string& malformed) {
  if (text.empty() || text == "{}") return {};
  auto headers = decode_headers(text);
  if (headers) return std::move(headers).value();
  malformed = headers.error().message;
  return {};
}

std::string string_at(const Rows& rows, int row, int column) {
  return std::string(rows.text(row, column));
}

}  // namespace

EventColumns read_event_columns(const Rows& rows, int row, int first_column) {
  EventColumns read;
  auto event = std::make_shared<Event>();
  int column = first_column;
  event->seq = Seq(rows.integer(row, column++));
  event->id = EventId(rows.uuid(row, column++));
  if (!rows.is_null(row, column)) {
    event->aggregate = Aggregate{string_at(rows, row, column), string_at(rows, row, column + 1)};
  }
  column += 2;
  event->aggregate_version = rows.integer_if(row, column++);
  event->type = rows.text(row, column++);
  // At most one of the two is set; neither is an empty payload.
  event->payload = rows.text(row, rows.is_null(row, column) ? column + 1 : column);
  column += 2;
  event->content_type = rows.text(row, column++);
  event->headers = read_headers(rows.text(row, column++), read.malformed);
  event->created_at = rows.time(row, column++);
  event->available_at = rows.time_if(row, column++);
  read.slot = rows.smallest_integer(row, column);
  read.event = std::move(event);
  return read;
}

ClaimedEvent claimed_event(EventColumns columns, Timestamp now, int partitions) {
  ClaimedEvent claimed;
  const auto available_at = columns.event->available_at;
  if (available_at && *available_at > now) claimed.delay = until(*available_at, now);
  claimed.partition = Partition(columns.slot % partitions);
  claimed.event = std::move(columns.event);
  claimed.malformed = std::move(columns.malformed);
  return claimed;
}

DeliveryColumns read_delivery_columns(const Rows& rows, int row) {
  DeliveryColumns read;
  Delivery& delivery = read.delivery;
  delivery.id = DeliveryId(rows.uuid(row, 0));
  delivery.event_seq = Seq(rows.integer(row, 1));
  delivery.event_id = EventId(rows.uuid(row, 2));
  delivery.route = rows.text(row, 3);
  delivery.ordering_key = rows.text_if(row, 4);
  // The constraints of the table are these enumerations.
  delivery.status = parse_delivery_status(rows.text(row, 5)).value_or(DeliveryStatus::failed);
  delivery.attempts = rows.small_integer(row, 6);
  delivery.timeout = milliseconds(rows.integer(row, 8));
  delivery.on_failed = parse_on_failed(rows.text(row, 9)).value_or(OnFailed::halt);
  if (const auto id = rows.uuid_if(row, 10)) delivery.dispatch_id = DispatchId(*id);
  delivery.available_at = rows.time(row, 11);
  delivery.dispatched_at = rows.time_if(row, 12);
  delivery.delivery_timeout_at = rows.time_if(row, 13);
  delivery.finished_at = rows.time_if(row, 14);
  delivery.failure_code = rows.text(row, 15);
  delivery.failure_detail = rows.text(row, 16);
  delivery.ambiguous = rows.boolean(row, 17);
  delivery.generation = rows.small_integer(row, 18);
  auto delays = decode_durations(rows.text(row, 7));
  if (delays) {
    delivery.retry_delays = std::move(delays).value();
  } else {
    read.malformed = delays.error().message;
  }
  return read;
}

milliseconds until(Timestamp at, Timestamp now) {
  return std::max(std::chrono::ceil<milliseconds>(at - now), milliseconds::zero());
}

std::string partition_bits(const std::vector<Partition>& asked, int partitions) {
  std::string bits(static_cast<std::size_t>(partitions + 7) / 8, '\0');
  for (const auto partition : asked) {
    if (partition.value() < 0 || partition.value() >= partitions) continue;
    auto& byte = bits[static_cast<std::size_t>(partition.value()) / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << partition.value() % 8);
  }
  return bits;
}

std::vector<Uuid> uuids_in(const Rows& rows, int column) {
  std::vector<Uuid> ids;
  ids.reserve(static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < rows.size(); ++row)
    ids.push_back(rows.uuid(row, column));
  return ids;
}

Suspicion read_suspicion(const Rows& rows, int row, int first_column) {
  Suspicion suspicion{rows.small_integer(row, first_column)};
  if (const auto seq = rows.integer_if(row, first_column + 1)) suspicion.probe_seq = Seq(*seq);
  return suspicion;
}

}  // namespace postrider::store::postgres
