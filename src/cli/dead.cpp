#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/fair_turns.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

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
  filter.route = options.route;
  filter.event_type = options.type;
  filter.failure_code = options.code;
  filter.ambiguous = options.ambiguous;
  if (options.limit) filter.limit = static_cast<std::size_t>(*options.limit);
  return filter;
}

bool selects(const DeadOptions& options) {
  return !options.ids.empty() || options.route || options.type || options.code ||
         options.ambiguous.has_value();
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

// Rows that one transaction changes: a settle of a relay waits for as long.
constexpr std::size_t change_rows = 1000;
// Bounds the memory of one command: ids of 16 bytes.
constexpr std::size_t most_changed = 1'000'000;
constexpr std::size_t shown_rows = 20;

/// What tells `dead retry` from `dead discard`.
struct Change {
  std::string command;  // "dead retry"
  std::string verb;     // "retry"
  std::string done;     // "given a new life"
  Result<std::vector<DeliveryId>> (Operations::*apply)(const DeadFilter&, const Operator&,
                                                       std::optional<Timestamp>, Deadline);
};

/// For the audit: "route=orders code=timeout", "all"; empty when only ids were given.
std::string described(const DeadOptions& options) {
  std::string text;
  const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
    if (value) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, *value);
  };
  add("route", options.route);
  add("type", options.type);
  add("code", options.code);
  if (options.ambiguous) add("ambiguous", *options.ambiguous ? "yes" : "no");
  if (text.empty() && options.ids.empty()) text = "all";
  if (!text.empty() && options.limit) add("limit", std::to_string(*options.limit));
  return text;
}

/// Finds what fits, shows it, asks, and changes exactly that, page by page: what comes to fit
/// meanwhile, a letter that fails again for instance, is left alone.
class ChangeRun {
 public:
  ChangeRun(const Change& change, const DeadOptions& options, DeadFilter filter,
            const Session& session, Console& console)
      : change_(change),
        options_(options),
        filter_(std::move(filter)),
        session_(session),
        console_(console),
        operations_(session.backend().operations()) {}

  ExitCode run() {
    if (const auto failed = find()) return *failed;
    if (found_ == 0) {
      console_.print("No dead letter fits.\n");
      return ExitCode::ok;
    }
    if (options_.dry_run || !options_.yes) show();
    if (options_.dry_run) return ExitCode::ok;
    if (const auto stopped = ask()) return *stopped;
    return change_all();
  }

 private:
  struct Page {
    std::optional<DeadPlace> after;
    std::vector<DeliveryId> ids;
  };

  std::optional<ExitCode> find() {
    const auto wanted = std::min(
        most_changed, options_.limit ? static_cast<std::size_t>(*options_.limit) : most_changed);
    for (bool more = true; more && found_ < wanted;) {
      filter_.limit = std::min(change_rows, wanted - found_);
      const auto letters = operations_->dead_letters(filter_, session_.deadline());
      if (!letters) {
        console_.end_progress();
        return console_.fail(change_.command, letters.error());
      }
      keep(*letters);
      more = letters->size() == filter_.limit;
      console_.progress(counted_letters(found_) + " found");
    }
    console_.end_progress();
    return std::nullopt;
  }

  void keep(const std::vector<DeadLetter>& letters) {
    if (letters.empty()) return;
    Page page{filter_.after, {}};
    for (const auto& letter : letters) {
      page.ids.push_back(letter.delivery.id);
      if (shown_.size() < shown_rows) shown_.push_back(letter);
    }
    const auto& last = letters.back().delivery;
    filter_.after = DeadPlace{last.event_seq, last.route};
    found_ += letters.size();
    pages_.push_back(std::move(page));
  }

  void show() {
    console_.print(table_of(shown_, console_));
    if (found_ > shown_.size()) {
      console_.print(fmt::format("and {} more: {} in all.\n", found_ - shown_.size(),
                                 counted_letters(found_)));
    }
  }

  // Nothing when the change may go on.
  std::optional<ExitCode> ask() {
    if (options_.yes) return std::nullopt;
    const auto answer =
        console_.confirm(fmt::format("{} {}?", change_.verb, counted_letters(found_)));
    if (!answer) {
      console_.complain(change_.command,
                        "there is no terminal to ask on. Give --yes, or --dry-run.");
      return ExitCode::usage;
    }
    if (*answer) return std::nullopt;
    console_.note("Nothing was changed.\n");
    return ExitCode::ok;
  }

  ExitCode change_all() {
    const Operator who{operator_name(options_.operator_name), options_.reason, described(options_)};
    std::size_t changed = 0;
    FairTurns turns(system_clock());
    for (auto& page : pages_) {
      if (changed > 0) turns.next();
      filter_.after = page.after;
      filter_.limit = page.ids.size();
      filter_.ids = std::move(page.ids);
      const auto ids =
          (*operations_.*change_.apply)(filter_, who, std::nullopt, session_.deadline());
      if (!ids) return failed_after(changed, ids.error());
      changed += ids->size();
      console_.progress(fmt::format("{} of {} {}", changed, found_, change_.done));
    }
    console_.end_progress();
    console_.print(fmt::format("{} {}.\n", counted_letters(changed), change_.done));
    return ExitCode::ok;
  }

  // Each page is a transaction, so the same command goes on where this one ended.
  ExitCode failed_after(std::size_t changed, const Error& error) {
    console_.end_progress();
    if (changed > 0) {
      console_.print(
          fmt::format("{} {} before a failure; the same command goes on with the rest.\n",
                      counted_letters(changed), change_.done));
    }
    return console_.fail(change_.command, error);
  }

  static std::string counted_letters(std::size_t count) {
    return counted(static_cast<std::int64_t>(count), "dead letter");
  }

  const Change& change_;
  const DeadOptions& options_;
  DeadFilter filter_;
  const Session& session_;
  Console& console_;
  std::unique_ptr<Operations> operations_;
  std::vector<Page> pages_;
  std::vector<DeadLetter> shown_;
  std::size_t found_ = 0;
};

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
  return ChangeRun(change, dead, std::move(filter).value(), session, console).run();
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
