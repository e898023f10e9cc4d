#include "cli/json_text.hpp"

#include <nlohmann/json.hpp>

#include "observe/log.hpp"

namespace postrider::cli {

using Json = nlohmann::ordered_json;

std::string printed(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json json_if(const std::optional<Timestamp>& time) {
  return time ? Json(observe::time_text(*time)) : Json(nullptr);
}

std::string text_if(const std::optional<Timestamp>& time) {
  return time ? observe::time_text(*time) : "";
}

}  // namespace postrider::cli
