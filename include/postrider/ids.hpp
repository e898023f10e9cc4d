#pragma once
/// \file
/// Identities: strong types that cannot be swapped, and UUIDs.
///
/// Thread safety: values, except `IdGenerator`, which says so itself.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <postrider/result.hpp>

namespace postrider {

class Clock;
class Random;

/// A `T` with a name of its own: a `Seq` is not a `FencingToken`, though both are 64-bit integers.
template <class T, class Tag>
class Named {
 public:
  Named() = default;
  constexpr explicit Named(T value) : value_(std::move(value)) {}
  [[nodiscard]] constexpr const T& value() const noexcept { return value_; }
  friend constexpr auto operator<=>(const Named&, const Named&) = default;
  friend constexpr bool operator==(const Named&, const Named&) = default;

 private:
  T value_{};
};

/// 128 bits, written as 36 lower-case characters. Source: RFC 9562.
class Uuid {
 public:
  static constexpr std::size_t text_size = 36;

  constexpr Uuid() = default;
  constexpr explicit Uuid(const std::array<std::uint8_t, 16>& bytes) : bytes_(bytes) {}

  /// Reads the 36-character form in either case; anything else is `invalid_argument`.
  [[nodiscard]] static Result<Uuid> parse(std::string_view text);

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] constexpr const std::array<std::uint8_t, 16>& bytes() const noexcept {
    return bytes_;
  }

  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;
  friend constexpr bool operator==(const Uuid&, const Uuid&) = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

/// Identity of an event on the wire: the same over all retries, on every route. A UUIDv7.
using EventId = Named<Uuid, struct EventIdTag>;
/// Identity of a delivery row.
using DeliveryId = Named<Uuid, struct DeliveryIdTag>;
/// Identity of one dispatch: fresh for each, and every result has to name it.
using DispatchId = Named<Uuid, struct DispatchIdTag>;
/// Order of writing: within an aggregate it is commit order. Positive.
using Seq = Named<std::int64_t, struct SeqTag>;
/// Number of a partition, 0 to partitions - 1.
using Partition = Named<std::int32_t, struct PartitionTag>;
/// Proof of ownership of a partition; strictly increasing per partition, never reused.
using FencingToken = Named<std::int64_t, struct FencingTokenTag>;

/// Makes UUIDv7s that ascend within this generator, also within one millisecond and when the wall
/// clock goes backwards.
///
/// Ownership: borrows clock and random, which must outlive it.
/// Thread safety: one thread at a time.
class IdGenerator {
 public:
  IdGenerator(const Clock& clock, Random& random) : clock_(&clock), random_(&random) {}

  [[nodiscard]] Uuid next();

 private:
  const Clock* clock_;
  Random* random_;
  std::uint64_t last_ms_ = 0;
  std::uint16_t counter_ = 0;
};

}  // namespace postrider

template <class T, class Tag>
struct std::hash<postrider::Named<T, Tag>> {
  std::size_t operator()(const postrider::Named<T, Tag>& named) const noexcept {
    return std::hash<T>{}(named.value());
  }
};

template <>
struct std::hash<postrider::Uuid> {
  std::size_t operator()(const postrider::Uuid& uuid) const noexcept;
};
