#pragma once
/// \file
/// A store for the conformance suite: the one in memory behind a class of somebody else.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <postrider/testing/memory_store.hpp>
#include <postrider/testing/store_conformance.hpp>

namespace wrapped {

using postrider::Deadline;
using postrider::Result;

class WrappedStore : public postrider::Store {
 public:
  explicit WrappedStore(std::unique_ptr<postrider::Store> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] postrider::StoreTraits traits() const override { return inner_->traits(); }
  Result<void> check_schema(Deadline deadline) override { return inner_->check_schema(deadline); }
  Result<std::vector<postrider::EventId>> add(std::span<const postrider::NewEvent> events,
                                              Deadline deadline) override {
    return inner_->add(events, deadline);
  }
  Result<postrider::EventId> add_once(const postrider::NewEvent& event,
                                      const postrider::IdempotencyKey& key,
                                      Deadline deadline) override {
    return inner_->add_once(event, key, deadline);
  }
  Result<postrider::LeaseGrant> lease(const postrider::LeaseRequest& request,
                                      Deadline deadline) override {
    return inner_->lease(request, deadline);
  }
  Result<void> release(std::span<const postrider::Lease> leases, Deadline deadline) override {
    return inner_->release(leases, deadline);
  }
  Result<postrider::ClaimedBatch> claim(const postrider::ClaimRequest& request,
                                        Deadline deadline) override {
    return inner_->claim(request, deadline);
  }
  Result<postrider::DueBatch> due(const postrider::DueRequest& request,
                                  Deadline deadline) override {
    return inner_->due(request, deadline);
  }
  Result<postrider::HeldBatch> held(const postrider::HeldRequest& request,
                                    Deadline deadline) override {
    return inner_->held(request, deadline);
  }
  Result<postrider::SettleResult> settle(const postrider::SettleRequest& request,
                                         Deadline deadline) override {
    return inner_->settle(request, deadline);
  }

 private:
  std::unique_ptr<postrider::Store> inner_;
};

class WrappedHarness : public postrider::testing::StoreHarness {
 public:
  std::unique_ptr<postrider::Store> open_store() override {
    return std::make_unique<WrappedStore>(inner_store());
  }
  std::unique_ptr<postrider::Operations> open_operations() override {
    return postrider::testing::make_memory_operations(database_);
  }
  std::unique_ptr<postrider::Purger> open_purger() override {
    return postrider::testing::make_memory_purger(database_);
  }
  std::unique_ptr<postrider::Migrator> open_migrator() override { return nullptr; }

 protected:
  [[nodiscard]] std::unique_ptr<postrider::Store> inner_store() const {
    return postrider::testing::make_memory_store(database_);
  }

 private:
  std::shared_ptr<postrider::testing::MemoryDatabase> database_ =
      postrider::testing::make_memory_database(8);
};

}  // namespace wrapped
