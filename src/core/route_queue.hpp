#pragma once
/// \file
/// The deliveries of one route in memory: which may leave now, and which wait behind a head.
///
/// Deliveries with the same ordering key form a *lane*; only the head of a lane may leave, so that
/// one is in flight at a time. A delivery without a key waits for nobody.
///
/// When a head has turned into a row that is still open, its lane is *blocked*: what follows has to
/// become rows too, strictly one after the other, because a row must never be committed before the
/// row of its predecessor: after a crash it would be sent first. The lane stays blocked until the
/// last of these rows is committed; from then on claims see them in the database.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace postrider::core {

/// Number of a delivery within one relay process.
using ItemId = std::uint64_t;

class RouteQueue {
 public:
  using Key = std::optional<std::string>;

  /// Where a pushed delivery stands.
  enum class Place : std::uint8_t {
    ready,    ///< it may leave
    waiting,  ///< behind the head of its lane
    behind,   ///< it is the head of a blocked lane and has to become a row
  };

  /// Appends to the lane of `key`.
  Place push(ItemId item, const Key& key);

  [[nodiscard]] bool has_ready() const noexcept { return !ready_.empty(); }
  [[nodiscard]] const std::deque<ItemId>& ready() const noexcept { return ready_; }
  [[nodiscard]] ItemId next_ready() const { return ready_.front(); }
  /// Takes the next delivery that may leave. It stays the head of its lane.
  ItemId take_ready();
  [[nodiscard]] bool is_ready(ItemId item) const;
  /// Takes this one, if it may leave; false when it waits behind a head or was taken before.
  [[nodiscard]] bool take(ItemId item);
  /// Who stands first in the lane of `key`.
  [[nodiscard]] std::optional<ItemId> head(const std::string& key) const;
  /// Moves so many of those that may leave to the end.
  void rotate(std::size_t heads);
  /// Puts heads that were taken back to the front, in the order given.
  void give_back(const std::vector<ItemId>& heads);

  /// The head is done. The next of its lane may leave, but in a blocked lane the caller has to say
  /// what becomes of the one returned: `make_ready` if it has a row, else it has to become one.
  [[nodiscard]] std::optional<ItemId> finish(ItemId head, const Key& key);
  void make_ready(ItemId head) { ready_.push_back(head); }
  /// The head is an open row now: blocks the lane and returns the next head, which has to become a
  /// row behind it, if there is one.
  [[nodiscard]] std::optional<ItemId> block(ItemId head, const Key& key);
  /// Blocks the lane because of a row in the database.
  void block(const std::string& key) { lanes_[key].blocked = true; }
  [[nodiscard]] bool blocked(const Key& key) const;

  /// A row of the lane goes into a settle, and: that settle is committed.
  void on_row_drafted(const std::string& key);
  void on_row_committed(const std::string& key);

  /// Takes out an item wherever it stands. If it was a head, the next one moves up as in `finish`.
  std::optional<ItemId> remove(ItemId item, const Key& key);
  void clear();

 private:
  struct Lane {
    std::vector<ItemId> items;  // the head first; mostly there is only that one
    bool blocked = false;
    std::size_t uncommitted_rows = 0;
  };

  [[nodiscard]] std::optional<ItemId> move_up(const std::string& key);
  void erase_if_idle(const std::string& key);

  std::deque<ItemId> ready_;
  std::unordered_map<std::string, Lane> lanes_;  // never iterated: the order would be chance
};

}  // namespace postrider::core
