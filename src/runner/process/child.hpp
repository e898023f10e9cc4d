#pragma once
/// \file
/// What a child does: one attempt after the other, until its worker is gone.

#include <postrider/handlers.hpp>

#include "base/descriptor.hpp"

namespace postrider::runner {

/// Returns never: the process ends when the other end of `socket` does.
[[noreturn]] void run_child(Descriptor socket, const Handlers& handlers);

}  // namespace postrider::runner
