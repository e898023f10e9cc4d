#include <postrider/relay.hpp>

#include <utility>

#include "engine/relay_engine.hpp"

namespace postrider {

class Relay::Impl : public engine::RelayEngine {
 public:
  using RelayEngine::RelayEngine;
};

Relay::Relay(std::unique_ptr<Store> store, std::vector<RouteBinding> routes, RelayOptions options,
             const Clock& clock, Random& random, Observer& observer, std::unique_ptr<Purger> purger)
    : impl_(std::make_unique<Impl>(std::move(store), std::move(routes), std::move(options), clock,
                                   random, observer, std::move(purger))) {}

Relay::~Relay() = default;

Result<PassReport> Relay::run_once() {
  return impl_->run_once();
}

Result<DrainReport> Relay::drain(std::optional<std::size_t> max_passes) {
  return impl_->drain(max_passes);
}

Result<LoopReport> Relay::run() {
  return impl_->run();
}

void Relay::request_stop() noexcept {
  impl_->request_stop();
}

Result<void> Relay::close() {
  return impl_->close();
}

}  // namespace postrider
