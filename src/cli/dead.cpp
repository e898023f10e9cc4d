#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<DeadFilter> filter_of(const DeadOptions& options) {
  DeadFilter filter;
  for (const auto& text : options.ids) {
    const auto id = Uuid::parse(text);
    if (!id) {
      return Error{ErrorCode::invalid_argument, Disposition::reject,
                   fmt::format("'{}' is no id of a delivery. `postrider dead list` shows them.",
                               harmless(text)),
                   "cli", ""};
    }
    filter.ids.emplace_back(*id);
  }
  filter.route = given(options.route);
  filter.event_type = given(options.type);
  filter.failure_code = given(options.code);
  filter.ambiguous = options.ambiguous;
  filter.limit = static_cast<std::size_t>(options.limit);
  return filter;
}

bool selects(const DeadOptions& options) {
  return !options.ids.empty() || !options.route.empty() || !options.type.empty() ||
         !options.code.empty() || options.ambiguous.has_value();
}

std::string finished(const Delivery& delivery) {
  return delivery.finished_at ? observe::time_text(*delivery.finished_at) : "";
}

std::string table_of(const std::vector<DeadLetter>& letters, const Console& console) {
  Table table({{"id"},
               {"route"},
               {"type"},
               {"aggregate"},
               {"code"},
               {"attempts", true},
               {"ambiguous"},
               {"failed at"}});
  for (const auto& letter : letters) {
    const auto& delivery = letter.delivery;
    table.add({{delivery.id.value().to_string()},
               {delivery.route},
               {letter.event_type},
               {letter.aggregate_key},
               {delivery.failure_code},
               {std::to_string(delivery.attempts)},
               {delivery.ambiguous ? "yes" : "no"},
               {finished(delivery)}});
  }
  return table.text(console);
}

Json json_of(const DeadLetter& letter) {
  const auto& delivery = letter.delivery;
  Json json;
  json["id"] = delivery.id.value().to_string();
  json["event_id"] = delivery.event_id.value().to_string();
  json["event_seq"] = std::to_string(delivery.event_seq.value());
  json["event_type"] = letter.event_type;
  json["aggregate"] = letter.aggregate_key.empty() ? Json(nullptr) : Json(letter.aggregate_key);
  json["route"] = delivery.route;
  json["status"] = to_string(delivery.status);
  json["on_failed"] = to_string(delivery.on_failed);
  json["attempts"] = delivery.attempts;
  json["generation"] = delivery.generation;
  json["failure_code"] = delivery.failure_code;
  json["failure_detail"] = delivery.failure_detail;
  json["ambiguous"] = delivery.ambiguous;
  json["finished_at"] = delivery.finished_at ? Json(finished(delivery)) : Json(nullptr);
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string details_of(const DeadLetter& letter, const Console& console) {
  const auto& delivery = letter.delivery;
  Table table({{"field"}, {"value"}});
  table.add({{"id"}, {delivery.id.value().to_string()}});
  table.add({{"event_id"}, {delivery.event_id.value().to_string()}});
  table.add({{"event_seq"}, {std::to_string(delivery.event_seq.value())}});
  table.add({{"event_type"}, {letter.event_type}});
  table.add({{"aggregate"}, {letter.aggregate_key}});
  table.add({{"route"}, {delivery.route}});
  table.add({{"status"}, {std::string(to_string(delivery.status))}});
  table.add({{"on_failed"}, {std::string(to_string(delivery.on_failed))}});
  table.add({{"attempts"}, {std::to_string(delivery.attempts)}});
  table.add({{"generation"}, {std::to_string(delivery.generation)}});
  table.add({{"failure_code"}, {delivery.failure_code}});
  table.add({{"failure_detail"}, {delivery.failure_detail}});
  table.add({{"ambiguous"}, {delivery.ambiguous ? "yes: it may have arrived" : "no"}});
  table.add({{"finished_at"}, {finished(delivery)}});
  return table.text(console);
}

/// `dead retry` and `dead discard`: select, show, ask, do.
struct Change {
  std::string command;  // "dead retry"
  std::string verb;     // "retry"
  std::string done;     // "retried"
  Result<std::vector<DeliveryId>> (Operations::*apply)(const DeadFilter&, const Operator&,
                                                       std::optional<Timestamp>, Deadline);
};

// Nothing when the change may go on.
std::optional<ExitCode> ask(const Change& change, const DeadOptions& options, std::size_t count,
                            Console& console) {
  if (options.yes) return std::nullopt;
  const auto what = counted(static_cast<std::int64_t>(count), "dead letter");
  const auto answer = console.confirm(fmt::format("{} {}?", change.verb, what));
  if (!answer) {
    console.complain(change.command, "there is no terminal to ask on. Give --yes, or --dry-run.");
    return ExitCode::usage;
  }
  if (*answer) return std::nullopt;
  console.note("Nothing was changed.\n");
  return ExitCode::ok;
}

ExitCode run_change(const Change& change, const Options& options, Console& console) {
  const auto& dead = options.dead;
  if (!selects(dead) && !dead.all) {
    console.complain(change.command, "nothing selects dead letters. Give ids, a filter, or --all.");
    return ExitCode::usage;
  }
  auto filter = filter_of(dead);
  if (!filter) return console.fail(change.command, filter.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto operations = session.backend().operations();
  const auto letters = operations->dead_letters(*filter, session.deadline());
  if (!letters) return console.fail(change.command, letters.error());
  if (letters->empty()) {
    console.print("No dead letter fits.\n");
    return ExitCode::ok;
  }
  if (dead.dry_run || !dead.yes) console.print(table_of(*letters, console));
  if (dead.dry_run) return ExitCode::ok;
  if (const auto stopped = ask(change, dead, letters->size(), console)) return *stopped;

  // Exactly those that were shown: others may have come to fit the filter since.
  filter->ids.clear();
  for (const auto& letter : *letters)
    filter->ids.push_back(letter.delivery.id);
  const Operator who{operator_name(dead.operator_name), dead.reason};
  const auto ids = (*operations.*change.apply)(*filter, who, std::nullopt, session.deadline());
  if (!ids) return console.fail(change.command, ids.error());
  console.print(fmt::format(
      "{} {}.\n", counted(static_cast<std::int64_t>(ids->size()), "dead letter"), change.done));
  return ExitCode::ok;
}

}  // namespace

ExitCode run_dead_list(const Options& options, Console& console) {
  const auto filter = filter_of(options.dead);
  if (!filter) return console.fail("dead list", filter.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto letters = session.backend().operations()->dead_letters(*filter, session.deadline());
  if (!letters) return console.fail("dead list", letters.error());
  if (options.dead.json) {
    auto json = Json::array();
    for (const auto& letter : *letters)
      json.push_back(json_of(letter));
    console.print(dumped(json));
  } else if (letters->empty()) {
    console.print("No dead letters.\n");
  } else {
    console.print(table_of(*letters, console));
  }
  return ExitCode::ok;
}

ExitCode run_dead_show(const Options& options, Console& console) {
  const auto filter = filter_of(options.dead);
  if (!filter) return console.fail("dead show", filter.error());
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto letters = session.backend().operations()->dead_letters(*filter, session.deadline());
  if (!letters) return console.fail("dead show", letters.error());
  if (letters->empty()) {
    console.complain("dead show",
                     "there is no such dead letter. `postrider dead list` shows them.");
    return ExitCode::data;
  }
  console.print(options.dead.json ? dumped(json_of(letters->front()))
                                  : details_of(letters->front(), console));
  return ExitCode::ok;
}

ExitCode run_dead_retry(const Options& options, Console& console) {
  return run_change({"dead retry", "retry", "given a new life", &Operations::dead_retry}, options,
                    console);
}

ExitCode run_dead_discard(const Options& options, Console& console) {
  return run_change({"dead discard", "discard", "given up", &Operations::dead_discard}, options,
                    console);
}

}  // namespace postrider::cli
