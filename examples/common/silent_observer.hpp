#pragma once
/// \file
/// For a relay inside a program that has no log: what it does is in the reports of its passes.

#include <postrider/observer.hpp>

namespace examples {

class SilentObserver final : public postrider::Observer {
 public:
  void notice(const postrider::Notice&) override {}
};

}  // namespace examples
