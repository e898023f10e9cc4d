#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/event_record.hpp"
#include "cli/given_event.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

constexpr std::size_t most_batch = 500;              // events per transaction
constexpr std::size_t most_batch_bytes = 8U << 20U;  // payload bytes per transaction
// A payload of 1 MiB in which every byte is escaped as \u00xx, and the other members.
constexpr std::size_t most_line_bytes = 8U << 20U;

Error wrong(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "emit", ""};
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
