#include "scenarios/mortal_store.hpp"

#include <type_traits>
#include <utility>

namespace postrider::scenarios {
namespace {

class MortalStore final : public Store {
 public:
  MortalStore(std::unique_ptr<Store> store, Death death)
      : store_(std::move(store)), death_(std::move(death)) {}

  StoreTraits traits() const override { return store_->traits(); }
  Result<void> check_schema(Deadline deadline) override {
    return alive([&] { return store_->check_schema(deadline); });
  }
  Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) override {
    return alive([&] { return store_->add(events, deadline); });
  }
  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline deadline) override {
    return alive([&] { return store_->add_once(event, key, deadline); });
  }
  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    return alive([&] { return store_->lease(request, deadline); });
  }
  Result<void> release(std::span<const Lease> leases, Deadline deadline) override {
    return alive([&] { return store_->release(leases, deadline); });
  }
  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) override {
    return alive([&] { return store_->claim(request, deadline); });
  }
  Result<DueBatch> due(const DueRequest& request, Deadline deadline) override {
    return alive([&] { return store_->due(request, deadline); });
  }
  Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) override {
    return alive([&] { return store_->held(request, deadline); });
  }
  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    return alive([&] { return store_->settle(request, deadline); });
  }

 private:
  template <class Call>
  std::invoke_result_t<Call> alive(Call call) {
    if (!*death_) return call();
    return Error{ErrorCode::unavailable, Disposition::retry, "this relay is dead", "scenario", ""};
  }

  std::unique_ptr<Store> store_;
  Death death_;
};

}  // namespace

std::unique_ptr<Store> make_mortal_store(std::unique_ptr<Store> store, Death death) {
  return std::make_unique<MortalStore>(std::move(store), std::move(death));
}

}  // namespace postrider::scenarios
