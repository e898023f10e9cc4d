#pragma once
/// \file
/// A store whose relay can die: from then on nothing reaches the database, not even a release.

#include <atomic>
#include <memory>

#include <postrider/store.hpp>

namespace postrider::scenarios {

using Death = std::shared_ptr<std::atomic<bool>>;

std::unique_ptr<Store> make_mortal_store(std::unique_ptr<Store> store, Death death);

}  // namespace postrider::scenarios
