#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/delivery_view.hpp"
#include "cli/given.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"

namespace postrider::cli {
namespace {

Result<DeliveryFilter> filter_of(const DeliveriesOptions& options) {
  DeliveryFilter filter;
  filter.route = if_given(options.route);
  if (!options.status.empty()) filter.status = parse_delivery_status(options.status);
  filter.due = options.due;
  filter.history = options.history;
  filter.limit = static_cast<std::size_t>(options.limit);
  if (!options.aggregate.empty()) {
    auto aggregate = aggregate_of(options.aggregate);
    if (!aggregate) return aggregate.error();
    filter.aggregate = std::move(aggregate).value();
  }
  if (!options.event.empty()) {
    const auto id = id_of(options.event, "an event");
    if (!id) return id.error();
    filter.event = EventId(*id);
  }
  if (!options.after.empty()) {
    const auto id = id_of(options.after, "a delivery");
    if (!id) return id.error();
    filter.after = DeliveryId(*id);
  }
  return filter;
}

std::string page_json(const DeliveryPage& page) {
  nlohmann::ordered_json json;
  json["deliveries"] = deliveries_json(page.deliveries);
  json["next"] = page.next ? nlohmann::ordered_json(page.next->value().to_string())
                           : nlohmann::ordered_json(nullptr);
  return printed(json);
}

}  // namespace

ExitCode run_deliveries(const Options& options, Console& console) {
  const auto filter = filter_of(options.deliveries);
  if (!filter) return console.fail("deliveries", filter.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto page =
      session.backend().operations()->deliveries(*filter, std::nullopt, session.deadline());
  if (!page) return console.fail("deliveries", page.error());
  if (options.deliveries.json) {
    console.print(page_json(*page));
    return ExitCode::ok;
  }
  if (!page->deliveries.empty()) console.print(deliveries_text(page->deliveries, console));
  if (page->deliveries.empty() && !page->next) console.print("No delivery fits.\n");
  if (page->next) {
    console.note(fmt::format("{}Go on with --after {}.\n",
                             page->deliveries.size() == filter->limit
                                 ? ""
                                 : fmt::format("{} deliveries were looked at. ", most_examined),
                             page->next->value().to_string()));
  }
  return ExitCode::ok;
}

ExitCode run_deliveries_show(const Options& options, Console& console) {
  const auto id = id_of(options.deliveries.id, "a delivery");
  if (!id) return console.fail("deliveries show", id.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  DeliveryFilter filter;
  filter.id = DeliveryId(*id);
  const auto page =
      session.backend().operations()->deliveries(filter, std::nullopt, session.deadline());
  if (!page) return console.fail("deliveries show", page.error());
  if (page->deliveries.empty()) {
    console.complain("deliveries show",
                     "there is no such delivery. One that was confirmed at once is not stored; "
                     "`postrider deliveries` lists what is.");
    return ExitCode::data;
  }
  const auto& delivery = page->deliveries.front();
  console.print(options.deliveries.json ? printed(delivery_json(delivery))
                                        : delivery_text(delivery, console));
  return ExitCode::ok;
}

}  // namespace postrider::cli
