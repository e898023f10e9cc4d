#include "values/job_hooks.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace postrider {

int hook_depth(const Headers& headers) {
  const auto header = headers.find(JobHooks::depth_header);
  if (header == headers.end()) return 0;
  const auto& text = header->second;
  const char* const end = text.data() + text.size();
  int depth = 0;
  const auto read = std::from_chars(text.data(), end, depth);
  if (read.ec == std::errc::result_out_of_range) return JobHooks::most_depth;
  if (read.ec != std::errc() || read.ptr != end) return 0;
  return std::clamp(depth, 0, JobHooks::most_depth);
}

std::shared_ptr<const HookContext> hook_context(JobHooks hooks, const Event& event) {
  if (hooks.empty()) return nullptr;
  HookContext context;
  context.hooks = std::move(hooks);
  context.event_type = event.type;
  context.aggregate = event.aggregate;
  context.depth = hook_depth(event.headers);
  return std::make_shared<const HookContext>(std::move(context));
}

}  // namespace postrider
