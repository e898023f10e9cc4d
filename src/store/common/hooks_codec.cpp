#include "store/common/hooks_codec.hpp"

#include <algorithm>

#include <postrider/event.hpp>

#include "store/common/headers_codec.hpp"
#include "values/job_hooks.hpp"

namespace postrider::store {

std::optional<std::string> encode_hooks(const JobHooks& hooks) {
  if (hooks.empty()) return std::nullopt;
  Headers members;
  for (const auto& [name, member] : hook_members) {
    if (!(hooks.*member).empty()) members.emplace(name, hooks.*member);
  }
  return encode_headers(members).value();
}

Result<JobHooks> decode_hooks(std::string_view json) {
  const auto members = decode_headers(json);
  if (!members) return members.error();
  JobHooks hooks;
  for (const auto& [name, type] : *members) {
    const auto hook = std::find_if(hook_members.begin(), hook_members.end(),
                                   [&](const auto& known) { return known.name == name; });
    if (hook == hook_members.end()) {
      return Error{ErrorCode::invalid_argument, Disposition::reject,
                   "a hook of the job has an unknown name. Repair the row.", "", ""};
    }
    NewEvent event;
    event.type = type;
    if (auto checked = check(event); !checked) return checked.error();
    hooks.*(hook->member) = type;
  }
  return hooks;
}

}  // namespace postrider::store
