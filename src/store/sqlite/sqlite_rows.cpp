#include "store/sqlite/sqlite_rows.hpp"

#include <algorithm>
#include <utility>

#include "base/timestamp_text.hpp"
#include "base/utf8.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/headers_codec.hpp"

namespace postrider::store::sqlite {
namespace {

std::optional<Timestamp> time_at(const SqliteQuery& row, int column) {
  return row.is_null(column) ? std::nullopt : parse_timestamp(row.text(column));
}

/// Reads the columns of a delivery that are text with a meaning, and remembers the first fault.
class DeliveryReader {
 public:
  explicit DeliveryReader(const SqliteQuery& row) : row_(row) {}

  template <class Id>
  Id id(int column) {
    const auto uuid = Uuid::parse(row_.text(column));
    if (!uuid) return fault<Id>("one of its ids is not a UUID");
    return Id(*uuid);
  }

  std::optional<DispatchId> optional_id(int column) {
    if (row_.is_null(column)) return std::nullopt;
    return id<DispatchId>(column);
  }

  DeliveryStatus status(int column) {
    const auto status = parse_delivery_status(row_.text(column));
    return status ? *status : fault<DeliveryStatus>("its status is unknown");
  }

  OnFailed on_failed(int column) {
    const auto on_failed = parse_on_failed(row_.text(column));
    return on_failed ? *on_failed : fault<OnFailed>("its on_failed is unknown");
  }

  std::vector<milliseconds> delays(int column) {
    auto delays = decode_durations(row_.text(column));
    if (!delays) return fault<std::vector<milliseconds>>("its retry_delays cannot be read");
    return std::move(delays).value();
  }

  Timestamp time(int column) {
    const auto time = time_at(row_, column);
    return time ? *time : fault<Timestamp>("its available_at cannot be read");
  }

  std::string take_fault() { return std::move(fault_); }

 private:
  template <class T>
  T fault(std::string_view what) {
    if (fault_.empty()) {
      fault_ = "the delivery's row is damaged: " + std::string(what) + ". Repair the row.";
    }
    return T{};
  }

  const SqliteQuery& row_;
  std::string fault_;
};

/// Text that SQLite would hand on unchanged is stored readable; all else as bytes. Text with NUL is
/// cut by the functions and shells that people look at it with.
bool is_plain_text(std::string_view payload) {
  return payload.find('\0') == std::string_view::npos && !first_invalid_utf8(payload);
}

}  // namespace

ReadEvent read_event_columns(const SqliteQuery& row) {
  EventRow columns;
  columns.seq = row.integer(0);
  columns.id = row.text(1);
  columns.aggregate_type = row.optional_text(2);
  columns.aggregate_id = row.optional_text(3);
  columns.aggregate_version = row.optional_integer(4);
  columns.type = row.text(5);
  columns.payload = row.text(event_payload_column);
  columns.content_type = row.text(7);
  columns.headers = row.optional_text(8);
  columns.created_at = time_at(row, 9);
  columns.available_at = time_at(row, 10);
  return read_event(std::move(columns));
}

ClaimedEvent read_claimed_event(const SqliteQuery& row, Timestamp now) {
  auto read = read_event_columns(row);
  ClaimedEvent claimed;
  claimed.event = std::move(read.event);
  claimed.malformed = std::move(read.malformed);
  claimed.partition = only_partition;
  const auto& available_at = claimed.event->available_at;
  if (available_at && *available_at > now) claimed.delay = until(*available_at, now);
  return claimed;
}

ReadDelivery read_delivery_columns(const SqliteQuery& row) {
  DeliveryReader reader(row);
  ReadDelivery read;
  Delivery& delivery = read.delivery;
  delivery.id = reader.id<DeliveryId>(0);
  delivery.event_seq = Seq(row.integer(1));
  // Not read strictly: a malformed event hands its delivery the id that it has.
  if (const auto event_id = Uuid::parse(row.text(2))) delivery.event_id = EventId(*event_id);
  delivery.route = row.text(3);
  delivery.ordering_key = row.optional_text(4);
  delivery.status = reader.status(5);
  delivery.attempts = static_cast<int>(row.integer(6));
  delivery.retry_delays = reader.delays(7);
  delivery.timeout = milliseconds(row.integer(8));
  delivery.on_failed = reader.on_failed(9);
  delivery.dispatch_id = reader.optional_id(10);
  delivery.available_at = reader.time(11);
  delivery.dispatched_at = time_at(row, 12);
  delivery.delivery_timeout_at = time_at(row, 13);
  delivery.finished_at = time_at(row, 14);
  delivery.failure_code = row.text(15);
  delivery.failure_detail = row.text(16);
  delivery.ambiguous = row.integer(17) != 0;
  delivery.generation = static_cast<int>(row.integer(18));
  read.malformed = reader.take_fault();
  return read;
}

milliseconds until(Timestamp at, Timestamp now) {
  return std::max(std::chrono::ceil<milliseconds>(at - now), milliseconds::zero());
}

std::string id_text(const Uuid& id) {
  return id.to_string();
}

std::optional<std::string> id_text(const std::optional<DispatchId>& id) {
  if (!id) return std::nullopt;
  return id->value().to_string();
}

std::optional<std::string> time_text(const std::optional<Timestamp>& time) {
  if (!time) return std::nullopt;
  return timestamp_text(*time);
}

Result<void> bind_event(SqliteQuery& row, const NewEvent& event, const EventId& id) {
  row.bind(":id", id_text(id.value())).bind(":type", event.type);
  row.bind(":content_type", event.content_type);
  row.bind_if(":available_at", time_text(event.available_at));
  if (event.aggregate) {
    row.bind(":aggregate_type", event.aggregate->type).bind(":aggregate_id", event.aggregate->id);
  }
  if (event.aggregate_version) row.bind(":aggregate_version", *event.aggregate_version);
  if (is_plain_text(event.payload)) {
    row.bind_borrowed_text(":payload", event.payload);
  } else {
    row.bind_borrowed_bytes(":payload_bytes", event.payload);
  }
  if (event.headers.empty()) return {};
  auto headers = encode_headers(event.headers);
  if (!headers) return headers.error();
  row.bind(":headers", *headers);
  return {};
}

Suspicion read_suspicion(const SqliteQuery& row) {
  Suspicion suspicion{static_cast<int>(row.integer(6))};
  if (const auto seq = row.optional_integer(7)) suspicion.probe_seq = Seq(*seq);
  return suspicion;
}

}  // namespace postrider::store::sqlite
