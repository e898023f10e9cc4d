#include "store/mariadb/mariadb_rows.hpp"

#include <algorithm>
#include <utility>

#include "store/common/durations_codec.hpp"
#include "store/common/headers_codec.hpp"

namespace postrider::store::mariadb {
namespace {

/// Reads the columns of a delivery that are text with a meaning, and remembers the first fault.
class DeliveryReader {
 public:
  explicit DeliveryReader(const MariadbQuery& row) : row_(row) {}

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
    const auto time = row_.time(column);
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

  const MariadbQuery& row_;
  std::string fault_;
};

}  // namespace

SlottedEvent read_event_columns(const MariadbQuery& row, int first_column) {
  EventRow columns;
  columns.seq = row.integer(first_column);
  columns.id = row.text(first_column + 1);
  columns.aggregate_type = row.optional_text(first_column + 2);
  columns.aggregate_id = row.optional_text(first_column + 3);
  columns.aggregate_version = row.optional_integer(first_column + 4);
  columns.type = row.text(first_column + 5);
  columns.payload = row.text(first_column + event_payload_column);
  columns.content_type = row.text(first_column + 7);
  columns.headers = row.optional_text(first_column + 8);
  columns.created_at = row.time(first_column + event_created_column);
  columns.available_at = row.time(first_column + 10);
  const auto slot = static_cast<int>(row.integer(first_column + event_slot_column));
  return {read_event(std::move(columns)), slot};
}

ClaimedEvent claimed_event(SlottedEvent event, Timestamp now, int partitions) {
  ClaimedEvent claimed;
  claimed.event = std::move(event.read.event);
  claimed.malformed = std::move(event.read.malformed);
  claimed.partition = Partition(event.slot % partitions);
  const auto& available_at = claimed.event->available_at;
  if (available_at && *available_at > now) claimed.delay = until(*available_at, now);
  return claimed;
}

ReadDelivery read_delivery_columns(const MariadbQuery& row) {
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
  delivery.dispatched_at = row.time(12);
  delivery.delivery_timeout_at = row.time(13);
  delivery.finished_at = row.time(14);
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

void bind_time_if(MariadbQuery& row, const char* name, const std::optional<Timestamp>& time) {
  if (time) row.bind(name, *time);
}

/// All bytes: MariaDB's column for payloads holds any.
Result<void> bind_event(MariadbQuery& row, const NewEvent& event, const EventId& id) {
  row.bind(":id", id_text(id.value())).bind(":type", event.type);
  row.bind(":content_type", event.content_type).bind_bytes(":payload", event.payload);
  bind_time_if(row, ":available_at", event.available_at);
  if (event.aggregate) {
    row.bind(":aggregate_type", event.aggregate->type).bind(":aggregate_id", event.aggregate->id);
  }
  if (event.aggregate_version) row.bind(":aggregate_version", *event.aggregate_version);
  if (event.headers.empty()) return {};
  const auto headers = encode_headers(event.headers);
  if (!headers) return headers.error();
  row.bind(":headers", *headers);
  return {};
}

Suspicion read_suspicion(const MariadbQuery& row) {
  Suspicion suspicion{static_cast<int>(row.integer(6))};
  if (const auto seq = row.optional_integer(7)) suspicion.probe_seq = Seq(*seq);
  return suspicion;
}

std::vector<std::int64_t> numbers_of(std::span<const Partition> partitions) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(partitions.size());
  for (const auto partition : partitions)
    numbers.push_back(partition.value());
  return numbers;
}

Result<std::vector<std::int64_t>> integers_of(MariadbQuery& rows) {
  std::vector<std::int64_t> integers;
  while (rows.next())
    integers.push_back(rows.integer(0));
  if (auto read = rows.result(); !read) return read.error();
  return integers;
}

Result<std::vector<std::string>> texts_of(MariadbQuery& rows) {
  std::vector<std::string> texts;
  while (rows.next())
    texts.push_back(rows.text(0));
  if (auto read = rows.result(); !read) return read.error();
  return texts;
}

}  // namespace postrider::store::mariadb
