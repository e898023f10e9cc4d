#include <algorithm>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/event_record.hpp"
#include "cli/given.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"
#include "config/time_text.hpp"

namespace postrider::cli {
namespace {

constexpr std::size_t most_batch = 500;              // events per transaction
constexpr std::size_t most_batch_bytes = 8U << 20U;  // payload bytes per transaction
// A payload of 1 MiB in which every byte is escaped as \u00xx, and the other members.
constexpr std::size_t most_line_bytes = 8U << 20U;
constexpr milliseconds longest_delay = std::chrono::hours(24 * 3650);

Error wrong(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "emit", ""};
}

// One byte more than the limit is enough to know that it is too much.
std::string read_all(std::istream& stream) {
  std::string content(EventLimits{}.payload_bytes + 1, '\0');
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(stream.gcount()));
  return content;
}

Result<std::string> payload_of(const std::string& given) {
  if (given == "-") return read_all(std::cin);
  if (!given.starts_with('@')) return given;
  std::ifstream file(given.substr(1), std::ios::binary);
  auto content = read_all(file);
  if (!file.is_open() || file.bad()) {
    return Error{ErrorCode::storage_failed, Disposition::reject,
                 given.substr(1) + " cannot be read. Check its path and rights.", "emit", ""};
  }
  return content;
}

Result<IdempotencyKey> key_of(const std::string& given) {
  const auto slash = given.find('/');
  if (slash == std::string::npos) {
    return wrong("--key has no slash. Write SCOPE/KEY, such as orders-api/request-17.");
  }
  IdempotencyKey key{given.substr(0, slash), given.substr(slash + 1)};
  if (auto checked = check(key); !checked) return checked.error();
  return key;
}

Result<std::optional<Timestamp>> available_at_of(const EmitOptions& options) {
  if (options.delay) {
    const auto delay = config::parse_duration(*options.delay);
    if (!delay || *delay > longest_delay) {
      return wrong("--delay is no duration up to 3650d. Write 500ms, 5s, 2m, 1h or 7d.");
    }
    return std::optional(system_clock().wall() + *delay);
  }
  if (!options.available_at) return std::optional<Timestamp>();
  const auto time = config::parse_time(*options.available_at);
  if (!time) {
    return wrong("--available-at is no time. Write 2026-12-01T08:00:00Z or ...+02:00.");
  }
  return time;
}

Result<Headers> headers_of(const std::vector<std::string>& given) {
  Headers headers;
  for (const auto& header : given) {
    const auto equals = header.find('=');
    if (equals == std::string::npos) {
      return wrong("a --header has no '='. Write NAME=VALUE.");
    }
    if (!headers.emplace(header.substr(0, equals), header.substr(equals + 1)).second) {
      return wrong(fmt::format("header {} is given twice. Remove one.", header.substr(0, equals)));
    }
  }
  return headers;
}

Result<NewEvent> event_of(const EmitOptions& options) {
  NewEvent event;
  event.type = options.type;
  event.content_type = options.content_type;
  event.aggregate_version = options.aggregate_version;
  if (!options.aggregate.empty()) {
    auto aggregate = aggregate_of(options.aggregate);
    if (!aggregate) return aggregate.error();
    event.aggregate = std::move(aggregate).value();
  }
  if (!options.id.empty()) {
    const auto id = Uuid::parse(options.id);
    if (!id) return wrong("--id is no UUID. Leave it out for a new one.");
    event.id = EventId(*id);
  }
  auto available_at = available_at_of(options);
  if (!available_at) return available_at.error();
  event.available_at = *available_at;
  auto headers = headers_of(options.headers);
  if (!headers) return headers.error();
  event.headers = std::move(headers).value();
  auto payload = payload_of(options.payload);
  if (!payload) return payload.error();
  event.payload = std::move(payload).value();
  if (auto checked = check(event); !checked) return checked.error();
  return event;
}

Result<EventId> write_one(const NewEvent& event, const std::optional<std::string>& given_key,
                          Session& session) {
  const auto store = session.backend().store();
  if (given_key) {
    const auto key = key_of(*given_key);
    if (!key) return key.error();
    return store->add_once(event, *key, session.deadline());
  }
  const auto ids = store->add({&event, 1}, session.deadline());
  if (!ids) return ids.error();
  return ids->front();
}

ExitCode emit_one(const EmitOptions& options, Session& session, Console& console) {
  const auto event = event_of(options);
  if (!event) return console.fail("emit", event.error());
  const auto id = write_one(*event, options.key, session);
  if (!id) return console.fail("emit", id.error());
  console.print(id->value().to_string() + "\n");
  return ExitCode::ok;
}

/// Reads lines of standard input, writes events batch by batch, and knows which line is at fault.
class LineEmitter {
 public:
  LineEmitter(Session& session, Console& console)
      : session_(session), console_(console), store_(session.backend().store()) {}

  ExitCode run(std::int64_t from_line) {
    std::string line;
    while (read_line(line)) {
      ++line_;
      if (line_ < from_line || line.empty()) continue;
      if (const auto failed = take(line)) return *failed;
    }
    if (line.size() > most_line_bytes) {
      ++line_;
      return at_fault(
          wrong(fmt::format("it is longer than {} bytes. Shorten it.", most_line_bytes)));
    }
    if (std::cin.bad()) {
      return at_fault({ErrorCode::storage_failed, Disposition::reject,
                       "standard input cannot be read. Try again.", "emit", ""});
    }
    if (const auto failed = flush()) return *failed;
    console_.end_progress();
    console_.print(counted(written_, "event") + " written.\n");
    return ExitCode::ok;
  }

 private:
  // False at the end, and for a line that is too long, which then stays in `line`.
  static bool read_line(std::string& line) {
    line.clear();
    auto* buffer = std::cin.rdbuf();
    for (int c = buffer->sbumpc(); c != EOF; c = buffer->sbumpc()) {
      if (c == '\n') return true;
      line.push_back(static_cast<char>(c));
      if (line.size() > most_line_bytes) return false;
    }
    return !line.empty();
  }

  std::optional<ExitCode> take(const std::string& line) {
    auto event = parse_event_record(line);
    if (!event) return at_fault(event.error());
    if (const auto checked = check(*event); !checked) return at_fault(checked.error());
    bytes_ += event->payload.size();
    events_.push_back(std::move(event).value());
    lines_.push_back(line_);
    if (events_.size() < most_batch && bytes_ < most_batch_bytes) return std::nullopt;
    return flush();
  }

  std::optional<ExitCode> flush() {
    if (events_.empty()) return std::nullopt;
    const auto written = store_->add(events_, session_.deadline());
    if (written) {
      note_written(events_.size());
    } else if (written.error().disposition == Disposition::reject && events_.size() > 1) {
      if (const auto failed = write_one_by_one()) return failed;
    } else {
      return not_written(written.error());
    }
    events_.clear();
    lines_.clear();
    bytes_ = 0;
    console_.progress(fmt::format("{} written", counted(written_, "event")));
    return std::nullopt;
  }

  // One of the lines is at fault, and only by itself it says which.
  std::optional<ExitCode> write_one_by_one() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const auto written = store_->add({&events_[i], 1}, session_.deadline());
      if (!written) {
        return refused(fmt::format("line {}", lines_[i]), written.error(), advice(lines_[i]));
      }
      note_written(1);
    }
    return std::nullopt;
  }

  ExitCode not_written(const Error& error) {
    const auto lines = lines_.size() == 1
                           ? fmt::format("line {}", lines_.front())
                           : fmt::format("lines {} to {}", lines_.front(), lines_.back());
    if (error.disposition != Disposition::in_doubt) {
      return refused(lines, error, advice(lines_.front()));
    }
    return refused(lines, error,
                   fmt::format("{} written before; look whether these are there, and go on with "
                               "--from-line {} or {}.",
                               counted(written_, "event"), lines_.front(), lines_.back() + 1));
  }

  ExitCode refused(const std::string& lines, const Error& error, const std::string& what_now) {
    console_.end_progress();
    console_.complain("emit", fmt::format("{}: {} {}", lines, error.message, what_now));
    return exit_code_of(error.code);
  }

  void note_written(std::size_t events) { written_ += static_cast<std::int64_t>(events); }

  // The sound lines before it are written, so that the advice is the same in every case.
  ExitCode at_fault(const Error& error) {
    if (const auto failed = flush()) return *failed;
    return refused(fmt::format("line {}", line_), error, advice(line_));
  }

  std::string advice(std::int64_t line) const {
    return written_ == 0 ? "Nothing is written."
                         : fmt::format("{} written before it; go on with --from-line {}.",
                                       counted(written_, "event"), line);
  }

  Session& session_;
  Console& console_;
  std::unique_ptr<Store> store_;
  std::vector<NewEvent> events_;     // of the next transaction
  std::vector<std::int64_t> lines_;  // where each of them stood
  std::size_t bytes_ = 0;
  std::int64_t line_ = 0;
  std::int64_t written_ = 0;
};

}  // namespace

ExitCode run_emit(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  if (options.emit.jsonl) return LineEmitter(session, console).run(options.emit.from_line);
  return emit_one(options.emit, session, console);
}

}  // namespace postrider::cli
