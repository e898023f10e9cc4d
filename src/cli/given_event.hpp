#pragma once
/// \file
/// An event as people give it on the command line: for `emit` and `job enqueue`.

#include <optional>
#include <string>

#include <postrider/event.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/result.hpp>

#include "cli/options.hpp"

namespace postrider::cli {

/// The text itself, or what @FILE or - (standard input) holds, up to a byte more than an event may.
[[nodiscard]] Result<std::string> payload_of(const std::string& given);

/// `--available-at` and `--delay`.
[[nodiscard]] Result<DueTime> due_of(const std::optional<std::string>& at,
                                     const std::optional<std::string>& delay);

/// Checked. Reads what the payload refers to.
[[nodiscard]] Result<NewEvent> event_of(const EventOptions& options);

}  // namespace postrider::cli
