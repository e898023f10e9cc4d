#pragma once
/// \file
/// The hooks of a job as the text of one JSON object: how every SQL store keeps them in its row.
///
/// Thread safety: functions without state.

#include <optional>
#include <string>
#include <string_view>

#include <postrider/job.hpp>
#include <postrider/result.hpp>

namespace postrider::store {

/// Nothing when there are none. Requires: the types pass `validate` of their route.
[[nodiscard]] std::optional<std::string> encode_hooks(const JobHooks& hooks);

/// Errors: `invalid_argument` for what no store of ours has written. A type that may not be written
/// is one, too: it would keep the end of its job from being recorded.
[[nodiscard]] Result<JobHooks> decode_hooks(std::string_view json);

}  // namespace postrider::store
