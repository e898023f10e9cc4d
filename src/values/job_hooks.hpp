#pragma once
/// \file
/// Hooks of jobs: their names, and what their events take from the job's own event.
///
/// Thread safety: functions without state.

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <postrider/event.hpp>
#include <postrider/job.hpp>

namespace postrider {

struct HookMember {
  std::string_view name;
  std::string JobHooks::*member;
};

/// In the configuration, in rows and in documents they are called the same.
inline constexpr std::array hook_members{
    HookMember{"completed_event", &JobHooks::completed_event},
    HookMember{"retry_event", &JobHooks::retry_event},
    HookMember{"failed_event", &JobHooks::failed_event},
    HookMember{"death_event", &JobHooks::death_event},
};

/// How many hooks stand between an event with these headers and one that no job wrote; 0 without
/// our header, or with one that is no number.
[[nodiscard]] int hook_depth(const Headers& headers);

/// Null when there is nothing to tell. `event` is the one whose job has the hooks.
[[nodiscard]] std::shared_ptr<const HookContext> hook_context(JobHooks hooks, const Event& event);

}  // namespace postrider
