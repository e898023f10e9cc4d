#pragma once
/// \file
/// Events as the arrays that `events_insert` takes: one parameter for each column.
///
/// Ownership: borrows the texts of the events, which must outlive it.
/// Thread safety: values.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/event.hpp>

#include "store/postgres/postgres_values.hpp"

namespace postrider::store::postgres {

class NewEventColumns {
 public:
  /// Errors: headers that cannot be written.
  Result<void> add(const NewEvent& event, const EventId& id);

  /// Of `events_insert`.
  [[nodiscard]] Parameters insert_parameters() const;
  /// Of `events_lock_aggregates`; needed when there is more than one.
  [[nodiscard]] Parameters lock_parameters() const;
  [[nodiscard]] std::size_t aggregates() const noexcept { return keys_.size(); }

 private:
  using OptionalView = std::optional<std::string_view>;

  Result<void> add_headers(const Headers& headers);
  [[nodiscard]] std::vector<OptionalView> headers_column() const;

  std::vector<Uuid> ids_;
  std::vector<OptionalView> aggregate_types_;
  std::vector<OptionalView> aggregate_ids_;
  std::vector<std::optional<std::int64_t>> aggregate_versions_;
  std::vector<OptionalView> types_;
  std::vector<OptionalView> payloads_;
  std::vector<OptionalView> payload_bytes_;
  std::vector<OptionalView> content_types_;
  std::vector<std::string> headers_;
  std::vector<std::optional<Timestamp>> available_at_;
  std::set<std::string> keys_;
};

}  // namespace postrider::store::postgres
