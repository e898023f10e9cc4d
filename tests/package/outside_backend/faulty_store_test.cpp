// A store with a planted fault: it settles for whoever asks, with or without a lease.

#include "wrapped_store.hpp"

namespace postrider::testing {
namespace {

class UnfencedStore final : public wrapped::WrappedStore {
 public:
  using WrappedStore::WrappedStore;

  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    auto grant = WrappedStore::lease(request, deadline);
    if (!grant.ok()) return grant;
    newest_ = {};
    for (const auto& granted : grant.value().leases)
      newest_.push_back(granted.lease);
    return grant;
  }

  /// With the newest tokens that this store has seen, whatever the request names.
  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    auto forged = request;
    forged.leases = newest_;
    return WrappedStore::settle(forged, deadline);
  }

 private:
  std::vector<Lease> newest_;
};

class FaultyHarness final : public wrapped::WrappedHarness {
 public:
  std::unique_ptr<Store> open_store() override {
    return std::make_unique<UnfencedStore>(inner_store());
  }
};

INSTANTIATE_TEST_SUITE_P(Faulty, StoreConformance,
                         ::testing::Values(StoreCase{
                             "unfenced", [] { return std::make_unique<FaultyHarness>(); }}),
                         case_name);

}  // namespace
}  // namespace postrider::testing
