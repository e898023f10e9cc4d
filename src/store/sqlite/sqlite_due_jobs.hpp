#pragma once
/// \file
/// Due rows of jobs in the order in which they are taken, read page by page, and the rules that may
/// hold one back: serial keys, paused queues, rate limits.
///
/// The caller holds a writing transaction, so nothing changes under these objects but by itself.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

#include "store/common/token_bucket.hpp"
#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// A row that may be dispatched, before it is read whole.
struct DueJob {
  std::string id;
  std::string available_at;
  std::string queue;
  std::optional<std::string> serial_key;
  std::int64_t serial_limit = 0;
  milliseconds timeout{0};
};

/// One range of an index: a priority of a queue, or a broker route.
class DueRange {
 public:
  struct Place {
    std::string_view due;       ///< statement for a page
    std::string_view next_due;  ///< statement for the first delayed row
    std::string queue;          ///< of the first kind
    int priority = 0;
    std::string route;  ///< of the second
  };
  /// `wanted` rows are probably enough; more are read when they are not.
  DueRange(SqliteConnection& connection, Place place, std::string now_text, std::size_t wanted);

  /// The next row; null at the end. Valid until `pop`.
  Result<const DueJob*> front();
  void pop() { ++position_; }
  /// When the first of the rows that are not due yet will be; nothing when there is none.
  Result<std::optional<std::string>> next_due();
  [[nodiscard]] int priority() const noexcept { return place_.priority; }

 private:
  Result<void> read_page();
  void bind_place(SqliteQuery& row) const;

  SqliteConnection& connection_;
  Place place_;
  std::string now_text_;
  std::size_t page_size_;
  std::vector<DueJob> page_;
  std::size_t position_ = 0;
  bool last_page_ = false;
};

/// The ranges of one queue: by priority, or merged by how long each row has waited.
class DueQueue {
 public:
  DueQueue(SqliteConnection& connection, std::string queue, milliseconds ageing, Timestamp now,
           std::size_t wanted);

  Result<const DueJob*> front();
  void pop();
  /// Requires: `front` has come to the end, or to a row that has to wait.
  Result<std::optional<std::string>> next_due();

 private:
  /// Less is more urgent.
  struct Urgency {
    std::int64_t priority = 0;
    std::string available_at;
    std::string id;
    friend auto operator<=>(const Urgency&, const Urgency&) = default;
  };

  Result<bool> open_next_range();
  Result<void> open_all_ranges();
  Result<const DueJob*> front_by_priority();
  Result<const DueJob*> front_by_urgency();
  [[nodiscard]] Urgency urgency_of(const DueJob& job, int priority) const;

  SqliteConnection& connection_;
  std::string queue_;
  milliseconds ageing_;
  Timestamp now_;
  std::string now_text_;
  std::size_t wanted_;
  std::vector<DueRange> ranges_;  ///< by priority
  std::size_t current_ = 0;       ///< that of the front
  bool all_open_ = false;
};

/// Which jobs of a serial key may run. Asks the database once per key.
///
/// Only the first `serial_limit` open rows of a key may: that keeps their order, and one that waits
/// for its retry in front.
class SerialKeys {
 public:
  explicit SerialKeys(SqliteConnection& connection) : connection_(connection) {}

  /// The slot for a job with a key; nothing when it has to wait.
  Result<std::optional<std::int64_t>> free_slot(const DueJob& job);
  void occupy(const DueJob& job, std::int64_t slot);

 private:
  struct Key {
    std::int64_t read = 0;           ///< as many of the first rows were asked for
    std::vector<std::string> first;  ///< their ids, in order
    std::set<std::int64_t> occupied;
  };
  Result<void> read(const DueJob& job, Key& key);

  SqliteConnection& connection_;
  std::map<std::pair<std::string, std::string>, Key> keys_;
};

/// What was said of queues: paused ones give nothing, others as fast as their limit.
class QueueRules {
 public:
  QueueRules(SqliteConnection& connection, Timestamp now) : connection_(connection), now_(now) {}

  Result<bool> is_paused(const std::string& queue);
  /// Takes a token. False: none is left.
  Result<bool> admit(const std::string& queue);
  /// Until the queue has a token again. Requires: `admit` has said false.
  [[nodiscard]] milliseconds next_token_in(const std::string& queue) const;
  /// Writes what is left of the tokens that were taken.
  Result<void> store();

 private:
  struct Rule {
    bool paused = false;
    std::optional<TokenBucket> bucket;
    bool changed = false;
  };
  Result<Rule*> rule_of(const std::string& queue);
  Result<Rule> read(const std::string& queue);

  SqliteConnection& connection_;
  Timestamp now_;
  std::map<std::string, Rule> rules_;
};

}  // namespace postrider::store::sqlite
