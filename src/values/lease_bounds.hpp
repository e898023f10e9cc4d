#pragma once
/// \file
/// How long a lease of partitions may last.

#include <postrider/clock.hpp>

namespace postrider {

/// A stored lease that ends later than this from now was written before the database's clock was
/// set back, and counts as ended.
inline constexpr milliseconds most_lease_time{std::chrono::minutes(10)};

}  // namespace postrider
