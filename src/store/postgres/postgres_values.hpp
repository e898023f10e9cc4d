#pragma once
/// \file
/// Values in PostgreSQL's binary form: parameters on the way in, columns on the way out.
///
/// Integers are big-endian; a time counts microseconds from 2000-01-01 UTC; an array is dimensions,
/// a flag for nulls, the element's type, size and lower bound, then the elements, each with its
/// length. Source: the server's *send and *recv functions, unchanged since version 8.
///
/// Thread safety: values.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>

struct pg_result;

namespace postrider::store::postgres {

/// The parameters of one execution, in the order of $1, $2, ….
///
/// Arrays of a type are added one element at a time: `begin_array`, `element…`, `end_array`.
class Parameters {
 public:
  Parameters& integer(std::int64_t value);        ///< bigint
  Parameters& small_integer(std::int32_t value);  ///< integer
  Parameters& boolean(bool value);
  Parameters& text(std::string_view value);
  Parameters& bytes(std::string_view value) { return text(value); }
  Parameters& uuid(const Uuid& value);
  Parameters& time(Timestamp value);
  Parameters& null();
  Parameters& text_if(const std::optional<std::string>& value);
  Parameters& time_if(const std::optional<Timestamp>& value);

  /// An array of what `elements` holds; the suffix says what each element is.
  Parameters& integers(std::span<const std::int64_t> elements);        ///< bigint[]
  Parameters& small_integers(std::span<const std::int32_t> elements);  ///< integer[]
  Parameters& xids(std::span<const std::uint64_t> elements);           ///< xid8[]
  Parameters& texts(std::span<const std::string> elements);            ///< text[]
  Parameters& uuids(std::span<const Uuid> elements);                   ///< uuid[]
  Parameters& booleans(const std::vector<bool>& elements);             ///< boolean[]
  Parameters& optional_texts(std::span<const std::optional<std::string_view>> elements);
  Parameters& optional_bytes(std::span<const std::optional<std::string_view>> elements);
  Parameters& optional_uuids(std::span<const std::optional<Uuid>> elements);
  Parameters& optional_integers(std::span<const std::optional<std::int64_t>> elements);
  Parameters& optional_times(std::span<const std::optional<Timestamp>> elements);

  [[nodiscard]] int count() const noexcept { return static_cast<int>(slots_.size()); }
  /// What PQsendQueryPrepared takes. Valid until the next change.
  struct Raw {
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
  };
  [[nodiscard]] Raw raw() const;

 private:
  struct Slot {
    std::size_t offset = 0;
    int length = -1;  ///< -1 is null
  };

  void put_32(std::int32_t value);
  void put_64(std::int64_t value);
  Parameters& close_slot(std::size_t offset);
  void array_header(std::int32_t element_type, std::size_t size);
  template <class Range, class Put>
  Parameters& array(std::int32_t element_type, const Range& elements, Put put);

  std::string buffer_;
  std::vector<Slot> slots_;
};

/// A result set. Ownership: owns it.
class Rows {
 public:
  Rows() = default;
  explicit Rows(pg_result* result);

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Requires: the column is there, has this type, and is not null.
  [[nodiscard]] std::int64_t integer(int row, int column) const;  ///< bigint, xid8
  [[nodiscard]] std::int32_t small_integer(int row, int column) const;
  [[nodiscard]] std::int16_t smallest_integer(int row, int column) const;
  [[nodiscard]] bool boolean(int row, int column) const;
  [[nodiscard]] Uuid uuid(int row, int column) const;
  [[nodiscard]] Timestamp time(int row, int column) const;
  /// Text or bytes; empty when null. Valid as long as this object.
  [[nodiscard]] std::string_view text(int row, int column) const;
  [[nodiscard]] bool is_null(int row, int column) const;

  [[nodiscard]] std::optional<std::int64_t> integer_if(int row, int column) const;
  [[nodiscard]] std::optional<std::string> text_if(int row, int column) const;
  [[nodiscard]] std::optional<Uuid> uuid_if(int row, int column) const;
  [[nodiscard]] std::optional<Timestamp> time_if(int row, int column) const;

 private:
  [[nodiscard]] std::uint64_t big_endian(int row, int column, int bytes) const;

  std::shared_ptr<pg_result> result_;
  int size_ = 0;
};

}  // namespace postrider::store::postgres
