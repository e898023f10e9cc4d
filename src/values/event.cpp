#include <postrider/event.hpp>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "values/name_check.hpp"

namespace postrider {
namespace {

Result<void> check_header(const std::string& name, const std::string& value,
                          const EventLimits& limits) {
  if (auto checked = check_name("a header's name", name, limits.name_bytes); !checked)
    return checked;
  if (name.size() + value.size() > limits.header_bytes) {
    return over_limit(fmt::format("header '{}' with its value", name), name.size() + value.size(),
                      limits.header_bytes, "Move it into the payload.");
  }
  return check_text(fmt::format("the value of header '{}'", name), value);
}

Result<void> check_headers(const Headers& headers, const EventLimits& limits) {
  if (headers.size() > limits.headers) {
    return Error{ErrorCode::limit_exceeded, Disposition::reject,
                 fmt::format("{} headers are given and {} are allowed. Move some into the payload.",
                             headers.size(), limits.headers),
                 "event", ""};
  }
  for (const auto& [name, value] : headers) {
    if (auto checked = check_header(name, value, limits); !checked) return checked;
  }
  return {};
}

std::int32_t slot_from(const std::array<std::uint8_t, 16>& digest) {
  return digest[0] << 6 | digest[1] >> 2;
}

}  // namespace

Result<void> check(const NewEvent& event, const EventLimits& limits) {
  if (auto checked = check_name("type", event.type, limits.name_bytes); !checked) return checked;
  if (event.aggregate) {
    if (auto checked = check_name("aggregate type", event.aggregate->type, limits.name_bytes);
        !checked) {
      return checked;
    }
    if (auto checked = check_name("aggregate id", event.aggregate->id, limits.name_bytes);
        !checked) {
      return checked;
    }
  }
  if (event.aggregate_version && !event.aggregate) {
    return invalid_value(
        "an aggregate version is given without an aggregate. Give both or neither.");
  }
  if (auto checked = check_name("content type", event.content_type, limits.name_bytes); !checked) {
    return checked;
  }
  if (event.payload.size() > limits.payload_bytes) {
    return over_limit("the payload", event.payload.size(), limits.payload_bytes,
                      "Send a reference to the content, or raise the payload limit.");
  }
  return check_headers(event.headers, limits);
}

std::int32_t slot_of(const Aggregate& aggregate) {
  return slot_from(md5({aggregate.type, "/", aggregate.id}));
}

std::int32_t slot_of(const EventId& id) {
  return slot_from(md5({id.value().to_string()}));
}

std::string aggregate_key(const Aggregate& aggregate) {
  std::string key;
  key.reserve(aggregate.type.size() + 1 + aggregate.id.size());
  key.append(aggregate.type).append(1, '/').append(aggregate.id);
  return key;
}

}  // namespace postrider
