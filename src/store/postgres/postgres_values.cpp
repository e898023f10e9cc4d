#include "store/postgres/postgres_values.hpp"

#include <libpq-fe.h>

#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace postrider::store::postgres {
namespace {

// Source: pg_type.dat; these numbers never change.
constexpr std::int32_t bool_type = 16;
constexpr std::int32_t bytea_type = 17;
constexpr std::int32_t int8_type = 20;
constexpr std::int32_t int4_type = 23;
constexpr std::int32_t text_type = 25;
constexpr std::int32_t timestamptz_type = 1184;
constexpr std::int32_t uuid_type = 2950;
constexpr std::int32_t xid8_type = 5069;

/// From 1970 to 2000.
constexpr std::int64_t epoch_us = 946'684'800'000'000;

constexpr std::int32_t null_length = -1;

std::int64_t wire_time(Timestamp time) {
  return time.time_since_epoch().count() - epoch_us;
}

std::string_view wire_uuid(const Uuid& uuid) {
  return {reinterpret_cast<const char*>(uuid.bytes().data()), uuid.bytes().size()};
}

}  // namespace

void Parameters::put_32(std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  for (int shift = 24; shift >= 0; shift -= 8)
    buffer_ += static_cast<char>(bits >> shift);
}

void Parameters::put_64(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8)
    buffer_ += static_cast<char>(bits >> shift);
}

Parameters& Parameters::close_slot(std::size_t offset) {
  slots_.push_back({offset, static_cast<int>(buffer_.size() - offset)});
  return *this;
}

Parameters& Parameters::integer(std::int64_t value) {
  const auto offset = buffer_.size();
  put_64(value);
  return close_slot(offset);
}

Parameters& Parameters::small_integer(std::int32_t value) {
  const auto offset = buffer_.size();
  put_32(value);
  return close_slot(offset);
}

Parameters& Parameters::boolean(bool value) {
  const auto offset = buffer_.size();
  buffer_ += static_cast<char>(value);
  return close_slot(offset);
}

Parameters& Parameters::text(std::string_view value) {
  const auto offset = buffer_.size();
  buffer_ += value;
  return close_slot(offset);
}

Parameters& Parameters::uuid(const Uuid& value) {
  return text(wire_uuid(value));
}

Parameters& Parameters::time(Timestamp value) {
  return integer(wire_time(value));
}

Parameters& Parameters::null() {
  slots_.push_back({});
  return *this;
}

Parameters& Parameters::text_if(const std::optional<std::string>& value) {
  return value ? text(*value) : null();
}

Parameters& Parameters::time_if(const std::optional<Timestamp>& value) {
  return value ? time(*value) : null();
}

void Parameters::array_header(std::int32_t element_type, std::size_t size) {
  put_32(size == 0 ? 0 : 1);
  put_32(1);  // There may be nulls; the server does not care when there are none.
  put_32(element_type);
  if (size == 0) return;
  put_32(static_cast<std::int32_t>(size));
  put_32(1);
}

template <class Range, class Put>
Parameters& Parameters::array(std::int32_t element_type, const Range& elements, Put put) {
  const auto offset = buffer_.size();
  array_header(element_type, elements.size());
  for (const auto& element : elements)
    put(element);
  return close_slot(offset);
}

Parameters& Parameters::integers(std::span<const std::int64_t> elements) {
  return array(int8_type, elements, [&](std::int64_t value) {
    put_32(8);
    put_64(value);
  });
}

Parameters& Parameters::small_integers(std::span<const std::int32_t> elements) {
  return array(int4_type, elements, [&](std::int32_t value) {
    put_32(4);
    put_32(value);
  });
}

Parameters& Parameters::xids(std::span<const std::uint64_t> elements) {
  return array(xid8_type, elements, [&](std::uint64_t value) {
    put_32(8);
    put_64(static_cast<std::int64_t>(value));
  });
}

Parameters& Parameters::texts(std::span<const std::string> elements) {
  return array(text_type, elements, [&](const std::string& value) {
    put_32(static_cast<std::int32_t>(value.size()));
    buffer_ += value;
  });
}

Parameters& Parameters::uuids(std::span<const Uuid> elements) {
  return array(uuid_type, elements, [&](const Uuid& value) {
    put_32(16);
    buffer_ += wire_uuid(value);
  });
}

Parameters& Parameters::booleans(const std::vector<bool>& elements) {
  return array(bool_type, elements, [&](bool value) {
    put_32(1);
    buffer_ += static_cast<char>(value);
  });
}

Parameters& Parameters::optional_texts(std::span<const std::optional<std::string_view>> elements) {
  return array(text_type, elements, [&](const std::optional<std::string_view>& value) {
    put_32(value ? static_cast<std::int32_t>(value->size()) : null_length);
    buffer_ += value.value_or(std::string_view());
  });
}

Parameters& Parameters::optional_bytes(std::span<const std::optional<std::string_view>> elements) {
  return array(bytea_type, elements, [&](const std::optional<std::string_view>& value) {
    put_32(value ? static_cast<std::int32_t>(value->size()) : null_length);
    buffer_ += value.value_or(std::string_view());
  });
}

Parameters& Parameters::optional_uuids(std::span<const std::optional<Uuid>> elements) {
  return array(uuid_type, elements, [&](const std::optional<Uuid>& value) {
    put_32(value ? 16 : null_length);
    if (value) buffer_ += wire_uuid(*value);
  });
}

Parameters& Parameters::optional_integers(std::span<const std::optional<std::int64_t>> elements) {
  return array(int8_type, elements, [&](const std::optional<std::int64_t>& value) {
    put_32(value ? 8 : null_length);
    if (value) put_64(*value);
  });
}

Parameters& Parameters::optional_times(std::span<const std::optional<Timestamp>> elements) {
  return array(timestamptz_type, elements, [&](const std::optional<Timestamp>& value) {
    put_32(value ? 8 : null_length);
    if (value) put_64(wire_time(*value));
  });
}

Parameters::Raw Parameters::raw() const {
  Raw raw;
  raw.formats.assign(slots_.size(), 1);
  for (const auto& slot : slots_) {
    raw.values.push_back(slot.length < 0 ? nullptr : buffer_.data() + slot.offset);
    raw.lengths.push_back(slot.length < 0 ? 0 : slot.length);
  }
  return raw;
}

Rows::Rows(pg_result* result)
    : result_(result, [](pg_result* owned) { PQclear(owned); }), size_(PQntuples(result)) {}

bool Rows::is_null(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view Rows::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::uint64_t Rows::big_endian(int row, int column, int bytes) const {
  const auto wire = text(row, column);
  POSTRIDER_ASSERT(wire.size() == static_cast<std::size_t>(bytes));
  std::uint64_t value = 0;
  for (const char byte : wire)
    value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

std::int64_t Rows::integer(int row, int column) const {
  return static_cast<std::int64_t>(big_endian(row, column, 8));
}

std::int32_t Rows::small_integer(int row, int column) const {
  return static_cast<std::int32_t>(big_endian(row, column, 4));
}

std::int16_t Rows::smallest_integer(int row, int column) const {
  return static_cast<std::int16_t>(big_endian(row, column, 2));
}

bool Rows::boolean(int row, int column) const {
  return big_endian(row, column, 1) != 0;
}

Uuid Rows::uuid(int row, int column) const {
  std::array<std::uint8_t, 16> bytes{};
  const auto wire = text(row, column);
  POSTRIDER_ASSERT(wire.size() == bytes.size());
  std::memcpy(bytes.data(), wire.data(), bytes.size());
  return Uuid(bytes);
}

Timestamp Rows::time(int row, int column) const {
  return Timestamp(std::chrono::microseconds(integer(row, column) + epoch_us));
}

std::optional<std::int64_t> Rows::integer_if(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return integer(row, column);
}

std::optional<std::string> Rows::text_if(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return std::string(text(row, column));
}

std::optional<Uuid> Rows::uuid_if(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return uuid(row, column);
}

std::optional<Timestamp> Rows::time_if(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return time(row, column);
}

}  // namespace postrider::store::postgres
