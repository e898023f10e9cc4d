#pragma once
/// \file
/// What the next settle will make durable, with everything that follows from its commit.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <postrider/notice.hpp>
#include <postrider/store_values.hpp>

#include "core/reading.hpp"

namespace postrider::core {

struct SettleDraft {
  struct SettledEvent {
    Partition partition;
    Reading::BatchNumber batch = 0;
  };
  struct ReleasedRow {
    Partition partition;
    DeliveryId id;
  };
  struct LaneRow {
    Partition partition;
    std::size_t route = 0;
    std::string key;
  };

  std::vector<RoutedEvent> routed;
  std::vector<NewDelivery> deliveries;
  std::vector<DeliveryUpdate> updates;
  std::vector<ReleasedRow> released;
  std::vector<std::string> stopped_routes;
  std::vector<SettledEvent> events;  ///< of a batch, settled by this commit
  std::vector<LaneRow> lane_rows;    ///< open rows that become visible to claims
  std::vector<Notice> notices;       ///< true once this is committed
  std::vector<PartitionSuspicion> suspicions;
  /// Stored by a settle of its own, as it holds for other partitions than a batch touches.
  std::optional<Reading::Storable> mark;

  [[nodiscard]] bool empty() const noexcept {
    return routed.empty() && deliveries.empty() && updates.empty() && stopped_routes.empty() &&
           events.empty() && suspicions.empty() && !mark;
  }
  [[nodiscard]] std::size_t size() const noexcept {
    return routed.size() + deliveries.size() + updates.size();
  }

  /// In place of what this draft would store on the same partitions.
  void put(const std::vector<PartitionSuspicion>& changes);
  /// Puts `later` behind this one.
  void append(SettleDraft later);
  /// What a commit of the part that was taken out would have led to.
  struct Removed {
    std::vector<SettledEvent> events;
    std::vector<LaneRow> lane_rows;
  };
  /// Takes out whatever belongs to `partition`.
  Removed remove(Partition partition);
  /// The partitions that the request touches, ascending.
  [[nodiscard]] std::vector<Partition> partitions() const;
  /// The request, but for its leases and time.
  [[nodiscard]] SettleRequest request() const;
};

}  // namespace postrider::core
