#include "cli/event_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "cli/delivery_view.hpp"
#include "cli/json_text.hpp"
#include "cli/table.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const EventSummary& event) {
  Json json;
  json["seq"] = std::to_string(event.seq.value());
  json["id"] = event.id.value().to_string();
  json["type"] = event.type;
  json["aggregate_type"] = event.aggregate ? Json(event.aggregate->type) : Json(nullptr);
  json["aggregate_id"] = event.aggregate ? Json(event.aggregate->id) : Json(nullptr);
  json["aggregate_version"] =
      event.aggregate_version ? Json(std::to_string(*event.aggregate_version)) : Json(nullptr);
  json["state"] = to_string(event.state);
  json["content_type"] = event.content_type;
  json["payload_bytes"] = event.payload_bytes;
  json["created_at"] = observe::time_text(event.created_at);
  json["available_at"] = json_if(event.available_at);
  json["routed_at"] = json_if(event.routed_at);
  return json;
}

Style style_of(EventState state) {
  return state == EventState::held ? Style::yellow : Style::plain;
}

// A table's cells are harmless on a terminal, whatever they hold; what is no text stays whole as
// base64.
void add_payload(Table& table, const std::string& payload) {
  if (first_invalid_utf8(payload)) {
    table.add({{"payload_base64"}, {encode_base64(payload)}});
  } else {
    table.add({{"payload"}, {payload}});
  }
}

}  // namespace

std::string events_text(const std::vector<EventSummary>& events, const Console& console) {
  Table table(
      {{"seq", true}, {"id"}, {"type"}, {"aggregate"}, {"state"}, {"bytes", true}, {"created at"}});
  for (const auto& event : events) {
    table.add({{std::to_string(event.seq.value())},
               {event.id.value().to_string()},
               {event.type},
               {event.aggregate ? aggregate_key(*event.aggregate) : ""},
               {std::string(to_string(event.state)), style_of(event.state)},
               {std::to_string(event.payload_bytes)},
               {observe::time_text(event.created_at)}});
  }
  return table.text(console);
}

std::string events_json(const EventPage& page) {
  Json json;
  json["events"] = Json::array();
  for (const auto& event : page.events)
    json["events"].push_back(json_of(event));
  json["next"] = page.next ? Json(std::to_string(page.next->value())) : Json(nullptr);
  return printed(json);
}

std::string event_text(const EventDetail& event, const std::vector<ListedDelivery>& deliveries,
                       const Console& console) {
  const auto& summary = event.summary;
  Table table({{"field"}, {"value"}});
  table.add({{"seq"}, {std::to_string(summary.seq.value())}});
  table.add({{"id"}, {summary.id.value().to_string()}});
  table.add({{"type"}, {summary.type}});
  table.add({{"aggregate"}, {summary.aggregate ? aggregate_key(*summary.aggregate) : ""}});
  if (summary.aggregate_version) {
    table.add({{"aggregate_version"}, {std::to_string(*summary.aggregate_version)}});
  }
  table.add({{"state"}, {std::string(to_string(summary.state)), style_of(summary.state)}});
  table.add({{"created_at"}, {observe::time_text(summary.created_at)}});
  table.add({{"available_at"}, {text_if(summary.available_at)}});
  table.add({{"routed_at"}, {text_if(summary.routed_at)}});
  table.add({{"content_type"}, {summary.content_type}});
  table.add({{"header names"}, {fmt::format("{}", fmt::join(event.header_names, ", "))}});
  if (!event.malformed.empty()) table.add({{"malformed"}, {event.malformed, Style::red}});
  table.add({{"payload_bytes"}, {std::to_string(summary.payload_bytes)}});
  if (event.payload) add_payload(table, *event.payload);
  const auto text = table.text(console) + "\n";
  if (deliveries.empty()) {
    return text + (summary.state == EventState::routed
                       ? "No delivery is stored: none is open, failed or recorded.\n"
                       : "No delivery is stored yet.\n");
  }
  return text + deliveries_text(deliveries, console);
}

std::string event_json(const EventDetail& event, const std::vector<ListedDelivery>& deliveries) {
  auto json = json_of(event.summary);
  json["header_names"] = event.header_names;
  json["malformed"] = event.malformed.empty() ? Json(nullptr) : Json(event.malformed);
  if (event.payload && first_invalid_utf8(*event.payload)) {
    json["payload_base64"] = encode_base64(*event.payload);
  } else if (event.payload) {
    json["payload"] = *event.payload;
  }
  json["deliveries"] = deliveries_json(deliveries);
  return printed(json);
}

}  // namespace postrider::cli
