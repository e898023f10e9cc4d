#include "cli/delivery_view.hpp"

#include <nlohmann/json.hpp>

#include "cli/json_text.hpp"
#include "cli/table.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string aggregate_text(const ListedDelivery& listed) {
  return listed.aggregate ? aggregate_key(*listed.aggregate) : "";
}

std::string status_text(const ListedDelivery& listed) {
  const std::string status(to_string(listed.delivery.status));
  return listed.current ? status : status + " (history)";
}

Style style_of(const ListedDelivery& listed) {
  if (!listed.current) return Style::plain;
  switch (listed.delivery.status) {
    case DeliveryStatus::failed:
      return Style::red;
    case DeliveryStatus::held:
      return Style::yellow;
    default:
      return Style::plain;
  }
}

// The one time that matters in this status.
std::string when(const Delivery& delivery) {
  if (delivery.finished_at) return observe::time_text(*delivery.finished_at);
  if (delivery.status == DeliveryStatus::dispatched) {
    return text_if(delivery.delivery_timeout_at);
  }
  return observe::time_text(delivery.available_at);
}

}  // namespace

std::string deliveries_text(const std::vector<ListedDelivery>& deliveries, const Console& console) {
  Table table({{"id"},
               {"event seq", true},
               {"route"},
               {"type"},
               {"aggregate"},
               {"status"},
               {"attempts", true},
               {"generation", true},
               {"due, deadline or end"},
               {"code"}});
  for (const auto& listed : deliveries) {
    const auto& delivery = listed.delivery;
    table.add({{delivery.id.value().to_string()},
               {std::to_string(delivery.event_seq.value())},
               {delivery.route},
               {listed.event_type},
               {aggregate_text(listed)},
               {status_text(listed), style_of(listed)},
               {std::to_string(delivery.attempts)},
               {std::to_string(delivery.generation)},
               {when(delivery)},
               {delivery.failure_code}});
  }
  return table.text(console);
}

Json deliveries_json(const std::vector<ListedDelivery>& deliveries) {
  auto json = Json::array();
  for (const auto& listed : deliveries)
    json.push_back(delivery_json(listed));
  return json;
}

std::string delivery_text(const ListedDelivery& listed, const Console& console) {
  const auto& delivery = listed.delivery;
  Table table({{"field"}, {"value"}});
  table.add({{"id"}, {delivery.id.value().to_string()}});
  table.add({{"event_id"}, {delivery.event_id.value().to_string()}});
  table.add({{"event_seq"}, {std::to_string(delivery.event_seq.value())}});
  table.add({{"event_type"}, {listed.event_type}});
  table.add({{"aggregate"}, {aggregate_text(listed)}});
  table.add({{"route"}, {delivery.route}});
  table.add({{"status"}, {status_text(listed), style_of(listed)}});
  table.add({{"attempts"}, {std::to_string(delivery.attempts)}});
  table.add({{"retries allowed"}, {std::to_string(delivery.retry_delays.size())}});
  table.add({{"timeout"}, {age_text(delivery.timeout)}});
  table.add({{"on_failed"}, {std::string(to_string(delivery.on_failed))}});
  table.add({{"generation"}, {std::to_string(delivery.generation)}});
  table.add({{"available_at"}, {observe::time_text(delivery.available_at)}});
  table.add({{"dispatched_at"}, {text_if(delivery.dispatched_at)}});
  table.add({{"delivery_timeout_at"}, {text_if(delivery.delivery_timeout_at)}});
  table.add({{"finished_at"}, {text_if(delivery.finished_at)}});
  table.add({{"failure_code"}, {delivery.failure_code}});
  table.add({{"failure_detail"}, {delivery.failure_detail}});
  table.add({{"ambiguous"}, {delivery.ambiguous ? "yes: it may have arrived" : "no"}});
  return table.text(console);
}

Json delivery_json(const ListedDelivery& listed) {
  const auto& delivery = listed.delivery;
  Json json;
  json["id"] = delivery.id.value().to_string();
  json["event_id"] = delivery.event_id.value().to_string();
  json["event_seq"] = std::to_string(delivery.event_seq.value());
  json["event_type"] = listed.event_type;
  json["aggregate"] = listed.aggregate ? Json(aggregate_text(listed)) : Json(nullptr);
  json["route"] = delivery.route;
  json["status"] = to_string(delivery.status);
  json["current"] = listed.current;
  json["attempts"] = delivery.attempts;
  json["retries_allowed"] = delivery.retry_delays.size();
  json["timeout_ms"] = delivery.timeout.count();
  json["on_failed"] = to_string(delivery.on_failed);
  json["generation"] = delivery.generation;
  json["available_at"] = observe::time_text(delivery.available_at);
  json["dispatched_at"] = json_if(delivery.dispatched_at);
  json["delivery_timeout_at"] = json_if(delivery.delivery_timeout_at);
  json["finished_at"] = json_if(delivery.finished_at);
  json["failure_code"] = delivery.failure_code;
  json["failure_detail"] = delivery.failure_detail;
  json["ambiguous"] = delivery.ambiguous;
  return json;
}

}  // namespace postrider::cli
