#include "engine/source_lane.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace postrider::engine {
namespace {

// Of all steps of connecting together; a source may have shorter ones of its own.
constexpr milliseconds open_patience{30'000};
// What is acknowledged is in the broker's hands when it has answered the goodbye.
constexpr milliseconds goodbye_patience{1000};
// How long a stop waits for the lane before it breaks the connection.
constexpr milliseconds stop_patience{3000};
// Nothing has to happen before this; tickets, orders and a stop end the wait.
constexpr milliseconds longest_source_poll{60'000};

void merge(std::vector<RefusedTasks>& into, std::vector<RefusedTasks> from) {
  for (auto& refused : from) {
    const auto known = std::find_if(into.begin(), into.end(), [&](const RefusedTasks& each) {
      return each.reason == refused.reason;
    });
    if (known != into.end()) {
      known->count += refused.count;
    } else {
      into.push_back(std::move(refused));
    }
  }
}

}  // namespace

SourceLane::SourceLane(TaskSource& source, std::function<void()> reported)
    : source_(source), reported_(std::move(reported)), thread_([this] { run(); }) {}

SourceLane::~SourceLane() {
  stop();
}

// ---- the coordinator's side

template <class Change>
void SourceLane::order(Change change) {
  {
    const MutexLock lock(mutex_);
    change(orders_);
    has_orders_ = true;
    changed_.notify_all();
  }
  source_.wake();
}

void SourceLane::open(std::size_t prefetch) {
  order([&](Orders& orders) { orders.open = prefetch; });
}

void SourceLane::acknowledge(std::vector<TicketTag> tags) {
  order([&](Orders& orders) {
    orders.acknowledge.insert(orders.acknowledge.end(), tags.begin(), tags.end());
  });
}

void SourceLane::cancel() {
  order([](Orders& orders) { orders.cancel = true; });
}

void SourceLane::close() {
  order([](Orders& orders) { orders.close = true; });
}

std::vector<core::WorkerInput> SourceLane::take_reports() {
  const MutexLock lock(mutex_);
  return std::exchange(reports_, {});
}

// While it connects there is nothing to be lost.
void SourceLane::stop() {
  if (!thread_.joinable()) return;
  order([](Orders& orders) { orders.stop = true; });
  bool cut = false;
  {
    const MutexLock lock(mutex_);
    const auto until = Deadline::after(connecting_ ? milliseconds(0) : stop_patience);
    while (!ended_ && !until.passed())
      changed_.wait_for(mutex_, until.remaining());
    cut = !ended_;
  }
  if (cut) source_.cut();
  thread_.join();
}

// ---- the lane's side

void SourceLane::run() {
  for (;;) {
    const auto orders = next_orders();
    obey(orders);
    if (orders.stop) break;
    if (connected_) poll();
  }
  source_.close(Deadline::after(goodbye_patience));
  const MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

SourceLane::Orders SourceLane::next_orders() {
  const MutexLock lock(mutex_);
  while (!connected_ && !has_orders_)
    changed_.wait(mutex_);
  has_orders_ = false;
  connecting_ = orders_.open.has_value() && !orders_.stop;
  return std::exchange(orders_, {});
}

void SourceLane::obey(const Orders& orders) {
  if (orders.open && !orders.stop) connect(*orders.open);
  if (connected_ && !orders.acknowledge.empty()) {
    if (auto sent = source_.acknowledge(orders.acknowledge); !sent) lose(std::move(sent).error());
  }
  if (connected_ && orders.cancel) {
    auto cancelled = source_.cancel(Deadline::after(goodbye_patience));
    if (!cancelled) lose(std::move(cancelled).error());
  }
  if (orders.close) {
    source_.close(Deadline::after(goodbye_patience));
    connected_ = false;
  }
}

void SourceLane::connect(std::size_t prefetch) {
  auto opened = source_.open(prefetch, Deadline::after(open_patience));
  {
    const MutexLock lock(mutex_);
    connecting_ = false;
  }
  if (!opened) return lose(std::move(opened).error());
  connected_ = true;
  report(core::worker_input::SourceOpened{});
}

void SourceLane::poll() {
  auto batch = source_.poll(Deadline::after(longest_source_poll));
  if (!batch) return lose(std::move(batch).error());
  if (!batch->tickets.empty() || !batch->refused.empty()) report(std::move(batch).value());
}

void SourceLane::lose(Error error) {
  connected_ = false;
  report(core::worker_input::SourceFailed{std::move(error)});
}

void SourceLane::report(core::WorkerInput input) {
  {
    const MutexLock lock(mutex_);
    reports_.push_back(std::move(input));
  }
  reported_();
}

void SourceLane::report(TicketBatch batch) {
  {
    const MutexLock lock(mutex_);
    auto* const last =
        reports_.empty() ? nullptr : std::get_if<core::worker_input::Offered>(&reports_.back());
    if (last == nullptr) {
      reports_.emplace_back(core::worker_input::Offered{std::move(batch)});
    } else {
      std::move(batch.tickets.begin(), batch.tickets.end(),
                std::back_inserter(last->batch.tickets));
      merge(last->batch.refused, std::move(batch.refused));
    }
  }
  reported_();
}

}  // namespace postrider::engine
