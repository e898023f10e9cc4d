#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/event_view.hpp"
#include "cli/given.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

Result<EventFilter> filter_of(const EventsOptions& options) {
  EventFilter filter;
  filter.type = if_given(options.type);
  if (!options.aggregate.empty()) {
    auto aggregate = aggregate_of(options.aggregate);
    if (!aggregate) return aggregate.error();
    filter.aggregate = std::move(aggregate).value();
  }
  if (!options.state.empty()) filter.state = parse_event_state(options.state);
  for (const auto& [given, option, member] :
       {std::tuple(&options.since, "--since", &filter.since),
        std::tuple(&options.until, "--until", &filter.until)}) {
    if (given->empty()) continue;
    const auto duration = duration_of(*given, option);
    if (!duration) return duration.error();
    *member = *duration;
  }
  if (options.after) filter.after = Seq(*options.after);
  filter.limit = static_cast<std::size_t>(options.limit);
  return filter;
}

ExitCode list_one(const Options& options, Console& console) {
  const auto id = id_of(options.events.id, "an event");
  if (!id) return console.fail("events", id.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto event = session.backend().operations()->event(EventId(*id), false, session.deadline());
  if (!event) return console.fail("events", event.error());
  EventPage page;
  if (*event) page.events.push_back((*event)->summary);
  if (options.events.json) {
    console.print(events_json(page));
  } else {
    console.print(page.events.empty() ? "No event fits.\n" : events_text(page.events, console));
  }
  return ExitCode::ok;
}

}  // namespace

ExitCode run_events(const Options& options, Console& console) {
  if (!options.events.id.empty()) return list_one(options, console);
  const auto filter = filter_of(options.events);
  if (!filter) return console.fail("events", filter.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto page =
      session.backend().operations()->events(*filter, std::nullopt, session.deadline());
  if (!page) return console.fail("events", page.error());
  if (options.events.json) {
    console.print(events_json(*page));
    return ExitCode::ok;
  }
  if (!page->events.empty()) console.print(events_text(page->events, console));
  if (page->events.empty() && !page->next) console.print("No event fits.\n");
  if (page->next) {
    console.note(fmt::format("{}Go on with --after {}.\n",
                             page->events.size() == filter->limit
                                 ? ""
                                 : fmt::format("{} events were looked at. ", most_examined),
                             page->next->value()));
  }
  return ExitCode::ok;
}

ExitCode run_events_show(const Options& options, Console& console) {
  const auto id = id_of(options.events.id, "an event");
  if (!id) return console.fail("events show", id.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto operations = session.backend().operations();
  const auto event = operations->event(EventId(*id), options.events.payload, session.deadline());
  if (!event) return console.fail("events show", event.error());
  if (!*event) {
    console.complain("events show", "there is no such event. `postrider events` lists them.");
    return ExitCode::data;
  }
  DeliveryFilter all;
  all.event = EventId(*id);
  all.history = true;
  all.limit = most_listed;
  const auto page = operations->deliveries(all, std::nullopt, session.deadline());
  if (!page) return console.fail("events show", page.error());
  console.print(options.events.json ? event_json(**event, page->deliveries)
                                    : event_text(**event, page->deliveries, console));
  return ExitCode::ok;
}

}  // namespace postrider::cli
