#include "values/event_line.hpp"

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/base64.hpp"
#include "base/timestamp_text.hpp"
#include "base/utf8.hpp"

namespace postrider {
namespace {

using Json = nlohmann::ordered_json;

// The name of the first member that a JSON string could not hold unchanged; empty when all can.
std::string_view member_without_utf8(const Event& event) {
  const auto broken = [](std::string_view text) { return first_invalid_utf8(text).has_value(); };
  if (broken(event.type)) return "type";
  if (event.aggregate && broken(event.aggregate->type)) return "aggregate_type";
  if (event.aggregate && broken(event.aggregate->id)) return "aggregate_id";
  if (broken(event.content_type)) return "content_type";
  for (const auto& [name, value] : event.headers) {
    if (broken(name) || broken(value)) return "headers";
  }
  return {};
}

Json headers_json(const Headers& headers) {
  auto json = Json::object();
  for (const auto& [name, value] : headers)
    json[name] = value;
  return json;
}

void add_payload(Json& line, const std::string& payload) {
  if (first_invalid_utf8(payload)) {
    line["payload_base64"] = encode_base64(payload);
  } else {
    line["payload"] = payload;
  }
}

}  // namespace

Result<std::string> event_line(const Event& event) {
  if (const auto member = member_without_utf8(event); !member.empty()) {
    return Error{ErrorCode::invalid_argument, Disposition::reject,
                 std::string(member) +
                     " is not valid UTF-8, which JSON requires. Write such bytes into the payload.",
                 "file", ""};
  }
  Json line;
  line["id"] = event.id.value().to_string();
  line["seq"] = std::to_string(event.seq.value());
  line["aggregate_type"] = event.aggregate ? Json(event.aggregate->type) : Json(nullptr);
  line["aggregate_id"] = event.aggregate ? Json(event.aggregate->id) : Json(nullptr);
  line["type"] = event.type;
  line["content_type"] = event.content_type;
  line["headers"] = headers_json(event.headers);
  line["created_at"] = timestamp_text(event.created_at);
  add_payload(line, event.payload);
  return line.dump() + '\n';
}

}  // namespace postrider
