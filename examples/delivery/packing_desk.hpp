#pragma once
/// \file
/// What the delivery service does about an order: it packs one parcel, readies it when the order is
/// paid, and hands it over. Packing twice would cost money, so an inbox stands in front.

#include <cstdint>
#include <string>

#include <postrider/event.hpp>
#include <postrider/inbox.hpp>

#include "common/database.hpp"

namespace examples::delivery {

/// Thread safety: one thread at a time.
class PackingDesk {
 public:
  enum class Trust : std::uint8_t {
    inbox,  ///< a copy is skipped
    luck,   ///< every copy is acted on: what happens without an inbox, for demonstrations
  };

  /// Creates what is missing in the database.
  explicit PackingDesk(const std::string& database_path, Trust trust = Trust::inbox);

  /// Takes one delivery of an event. When it returns without error, the effect and its receipt are
  /// committed: acknowledge.
  ///
  /// Errors: `reject` when this event can never be taken: it is malformed, or its order is unknown
  ///   here. `retry` when the database is busy or its disk full. Nothing is written then.
  postrider::Result<postrider::InboxResult> receive(const postrider::Event& event);

 private:
  postrider::Result<postrider::InboxResult> process(const postrider::Event& event);
  postrider::Result<postrider::InboxResult> process_by_luck(const postrider::Event& event);
  void note_arrival(const postrider::Event& event, postrider::InboxResult result);
  postrider::Result<void> act_on(const postrider::Event& event);
  postrider::Result<void> pack(const postrider::Event& event);
  template <class OrderEvent>
  postrider::Result<void> move_parcel(const postrider::Event& event, const std::string& status);

  Database database_;
  Trust trust_;
};

}  // namespace examples::delivery
