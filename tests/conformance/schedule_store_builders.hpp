#pragma once
/// \file
/// What the suite of schedules is written with.

#include <gmock/gmock.h>

#include <postrider/testing/schedule_store_conformance.hpp>

#include "conformance/common_builders.hpp"

namespace postrider::testing {

inline const Operator& operator_ann() {
  static const Operator ann{"ann", "stocktaking"};
  return ann;
}

}  // namespace postrider::testing
