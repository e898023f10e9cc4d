#include "core/route_queue.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace postrider::core {

RouteQueue::Place RouteQueue::push(ItemId item, const Key& key) {
  if (!key) {
    ready_.push_back(item);
    return Place::ready;
  }
  auto& lane = lanes_[*key];
  lane.items.push_back(item);
  if (lane.items.size() > 1) return Place::waiting;
  if (lane.blocked) return Place::behind;
  ready_.push_back(item);
  return Place::ready;
}

ItemId RouteQueue::take_ready() {
  POSTRIDER_ASSERT(!ready_.empty());
  const auto item = ready_.front();
  ready_.pop_front();
  return item;
}

bool RouteQueue::is_ready(ItemId item) const {
  return std::find(ready_.begin(), ready_.end(), item) != ready_.end();
}

bool RouteQueue::take(ItemId item) {
  const auto found = std::find(ready_.begin(), ready_.end(), item);
  if (found == ready_.end()) return false;
  ready_.erase(found);
  return true;
}

std::optional<ItemId> RouteQueue::head(const std::string& key) const {
  const auto lane = lanes_.find(key);
  if (lane == lanes_.end() || lane->second.items.empty()) return std::nullopt;
  return lane->second.items.front();
}

void RouteQueue::rotate(std::size_t heads) {
  if (ready_.empty()) return;
  const auto middle = ready_.begin() + static_cast<std::ptrdiff_t>(heads % ready_.size());
  std::rotate(ready_.begin(), middle, ready_.end());
}

void RouteQueue::give_back(const std::vector<ItemId>& heads) {
  ready_.insert(ready_.begin(), heads.begin(), heads.end());
}

std::optional<ItemId> RouteQueue::finish(ItemId head, const Key& key) {
  if (!key) return std::nullopt;
  auto& items = lanes_.at(*key).items;
  POSTRIDER_ASSERT(!items.empty() && items.front() == head);
  items.erase(items.begin());
  return move_up(*key);
}

std::optional<ItemId> RouteQueue::move_up(const std::string& key) {
  const auto& lane = lanes_.at(key);
  if (lane.items.empty()) {
    erase_if_idle(key);
    return std::nullopt;
  }
  if (lane.blocked) return lane.items.front();
  ready_.push_back(lane.items.front());
  return std::nullopt;
}

std::optional<ItemId> RouteQueue::block(ItemId head, const Key& key) {
  if (!key) return std::nullopt;
  auto& lane = lanes_.at(*key);
  POSTRIDER_ASSERT(!lane.items.empty() && lane.items.front() == head);
  lane.items.erase(lane.items.begin());
  lane.blocked = true;
  if (!lane.items.empty()) return lane.items.front();
  erase_if_idle(*key);
  return std::nullopt;
}

bool RouteQueue::blocked(const Key& key) const {
  if (!key) return false;
  const auto lane = lanes_.find(*key);
  return lane != lanes_.end() && lane->second.blocked;
}

void RouteQueue::on_row_drafted(const std::string& key) {
  ++lanes_[key].uncommitted_rows;
}

void RouteQueue::on_row_committed(const std::string& key) {
  const auto lane = lanes_.find(key);
  if (lane == lanes_.end()) return;  // cleared meanwhile
  if (lane->second.uncommitted_rows > 0) --lane->second.uncommitted_rows;
  erase_if_idle(key);
}

std::optional<ItemId> RouteQueue::remove(ItemId item, const Key& key) {
  ready_.erase(std::remove(ready_.begin(), ready_.end(), item), ready_.end());
  if (!key) return std::nullopt;
  const auto found = lanes_.find(*key);
  if (found == lanes_.end()) return std::nullopt;
  auto& items = found->second.items;
  const bool was_head = !items.empty() && items.front() == item;
  items.erase(std::remove(items.begin(), items.end(), item), items.end());
  if (was_head) return move_up(*key);
  erase_if_idle(*key);
  return std::nullopt;
}

void RouteQueue::clear() {
  ready_.clear();
  lanes_.clear();
}

void RouteQueue::erase_if_idle(const std::string& key) {
  const auto lane = lanes_.find(key);
  if (lane->second.items.empty() && lane->second.uncommitted_rows == 0) lanes_.erase(lane);
}

}  // namespace postrider::core
