#include <algorithm>
#include <iterator>
#include <utility>

#include <postrider/relay_values.hpp>

namespace postrider {
namespace {

/// Moves as many of `from` behind `to` as keep it within `most`; the number of the others.
template <class T>
std::size_t move_some(std::vector<T>& to, std::vector<T>& from, std::size_t most) {
  const auto room = std::min(most - std::min(most, to.size()), from.size());
  const auto end = from.begin() + static_cast<std::ptrdiff_t>(room);
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(end));
  return from.size() - room;
}

}  // namespace

void PassReport::add(PassReport later) {
  for (const auto& [route, number] : later.confirmed)
    confirmed[route] += number;
  (void)move_some(sent, later.sent, most_sent);
  errors_left_out += later.errors_left_out + move_some(errors, later.errors, most_errors);
  claimed += later.claimed;
  due += later.due;
  retried += later.retried;
  failed += later.failed;
  parked += later.parked;
  jobs += later.jobs;
  held += later.held;
  discarded += later.discarded;
  waiting = later.waiting;
  more = later.more;
  next_due_in = later.next_due_in;
  paused_routes = std::move(later.paused_routes);
  foreign = std::move(later.foreign);
}

}  // namespace postrider
