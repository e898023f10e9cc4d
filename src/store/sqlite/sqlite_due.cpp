#include "store/sqlite/sqlite_due.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/timestamp_text.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// A row that may be attempted, before its payload is read.
struct Candidate {
  std::int64_t event_seq = 0;
  const std::string* route = nullptr;
  bool overdue = false;
};

class DueReader {
 public:
  DueReader(SqliteConnection& connection, const DueRequest& request, Timestamp now)
      : connection_(connection),
        request_(request),
        now_(now),
        limit_(std::max<std::size_t>(request.limit, 1)),
        now_text_(timestamp_text(now)) {}

  Result<DueBatch> read() {
    for (const auto& route : request_.routes) {
      if (auto done = find_pending(route); !done) return done.error();
      if (auto done = find_overdue(route); !done) return done.error();
      if (auto done = find_next_deadline(route); !done) return done.error();
    }
    cut_to_limit();
    if (auto done = read_rows(); !done) return done.error();
    // What did not fit is due already.
    if (batch_.more) batch_.next_in = milliseconds::zero();
    return std::move(batch_);
  }

 private:
  /// How far the unbroken run of a key reaches; a broken one takes no more.
  struct Run {
    std::int64_t last_seq = 0;
    bool broken = false;
  };

  Result<void> find_pending(const std::string& route) {
    std::map<std::string, Run, std::less<>> runs;
    std::size_t found = 0;
    auto rows = connection_.query(statements::deliveries_pending);
    rows.bind(":route", route);
    while (rows.next()) {
      auto free = is_free(route, rows, runs);
      if (!free) return free.error();
      if (!*free) continue;
      if (found++ == limit_) {
        batch_.more = true;
        break;
      }
      candidates_.push_back({rows.integer(0), &route, false});
    }
    return rows.result();
  }

  /// Whether the row is due and everything before it in its key is in the result.
  Result<bool> is_free(const std::string& route, const SqliteQuery& row,
                       std::map<std::string, Run, std::less<>>& runs) {
    const auto key = row.optional_text(2);
    const auto available_at = row.text(1);
    if (!key) return is_due(available_at);

    Run& run = runs[*key];
    if (run.broken) return false;
    const std::int64_t seq = row.integer(0);
    auto next = next_blocking(route, *key, run.last_seq);
    if (!next) return next.error();
    run.last_seq = seq;
    // Pending rows come in order, so a blocking one in between is dispatched or dead.
    run.broken = *next != seq || !is_due(available_at);
    return !run.broken;
  }

  /// Notes when a row that only waits for its time will be due.
  bool is_due(const std::string& available_at) {
    if (available_at <= now_text_) return true;
    note_time(available_at);
    return false;
  }

  Result<std::int64_t> next_blocking(const std::string& route, const std::string& key,
                                     std::int64_t after) {
    auto head = connection_.query(statements::heads_next);
    head.bind(":route", route).bind(":ordering_key", key).bind(":after", after);
    if (head.next()) return head.integer(0);
    if (auto read = head.result(); !read) return read.error();
    return std::int64_t{0};
  }

  Result<void> find_overdue(const std::string& route) {
    std::size_t found = 0;
    auto rows = connection_.query(statements::deliveries_overdue);
    rows.bind(":route", route).bind(":now", now_text_);
    rows.bind(":limit", static_cast<std::int64_t>(limit_) + 1);
    while (rows.next()) {
      if (found++ == limit_) {
        batch_.more = true;
        break;
      }
      candidates_.push_back({rows.integer(0), &route, true});
    }
    return rows.result();
  }

  Result<void> find_next_deadline(const std::string& route) {
    auto deadline = connection_.query(statements::deliveries_next_deadline);
    deadline.bind(":route", route).bind(":now", now_text_);
    if (deadline.next() && !deadline.is_null(0)) note_time(deadline.text(0));
    return deadline.result();
  }

  void note_time(const std::string& text) {
    const auto at = parse_timestamp(text);
    if (!at) return;
    const auto wait = until(*at, now_);
    batch_.next_in = std::min(batch_.next_in.value_or(wait), wait);
  }

  /// A prefix by seq keeps every run unbroken.
  void cut_to_limit() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.event_seq < b.event_seq; });
    if (candidates_.size() <= limit_) return;
    candidates_.resize(limit_);
    batch_.more = true;
  }

  Result<void> read_rows() {
    std::size_t bytes = 0;
    for (const auto& candidate : candidates_) {
      DueDelivery due;
      auto weight = read_event_of(candidate, due);
      if (!weight) return weight.error();
      bytes += *weight;
      if (!batch_.deliveries.empty() && bytes > request_.bytes) {
        batch_.more = true;
        return {};
      }
      if (auto done = read_delivery_of(candidate, due); !done) return done;
      batch_.deliveries.push_back(std::move(due));
    }
    return {};
  }

  Result<std::size_t> read_event_of(const Candidate& candidate, DueDelivery& due) {
    auto& cached = events_[candidate.event_seq];
    if (!cached.event) {
      auto row = connection_.query(statements::events_get);
      row.bind(":seq", candidate.event_seq);
      // The foreign key keeps the event there.
      if (!row.next()) return missing(row, "events");
      cached = read_event_columns(row);
    }
    due.event = cached.event;
    due.malformed = cached.malformed;
    return cached.event->payload.size();
  }

  Result<void> read_delivery_of(const Candidate& candidate, DueDelivery& due) {
    auto row = connection_.query(statements::deliveries_get);
    row.bind(":event_seq", candidate.event_seq).bind(":route", *candidate.route);
    if (!row.next()) return missing(row, "deliveries");
    auto read = read_delivery_columns(row);
    due.delivery = std::move(read.delivery);
    due.partition = only_partition;
    due.overdue = candidate.overdue;
    if (due.malformed.empty()) due.malformed = std::move(read.malformed);
    return {};
  }

  static Error missing(const SqliteQuery& row, std::string_view table) {
    if (auto read = row.result(); !read) return read.error();
    return {ErrorCode::storage_failed, Disposition::stop,
            "a row of the outbox's " + std::string(table) +
                " that an index shows is not there. Run PRAGMA integrity_check and restore the "
                "file if it complains.",
            "sqlite", ""};
  }

  SqliteConnection& connection_;
  const DueRequest& request_;
  Timestamp now_;
  std::size_t limit_;
  std::string now_text_;
  std::vector<Candidate> candidates_;
  std::map<std::int64_t, ReadEvent> events_;  ///< one event may go by several routes
  DueBatch batch_;
};

}  // namespace

Result<DueBatch> read_due(SqliteConnection& connection, const DueRequest& request, Timestamp now) {
  return DueReader(connection, request, now).read();
}

}  // namespace postrider::store::sqlite
