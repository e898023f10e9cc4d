#include "store/sqlite/sqlite_due_jobs.hpp"

#include <algorithm>

#include <postrider/job.hpp>

#include "base/timestamp_text.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// Pages grow to this many rows when a take finds many that have to wait behind their serial keys.
constexpr std::size_t most_page_rows = 1000;

DueJob read_due_job(const SqliteQuery& row) {
  return {row.text(0),          row.text(1),    row.text(2),
          row.optional_text(3), row.integer(4), milliseconds(row.integer(5))};
}

}  // namespace

DueRange::DueRange(SqliteConnection& connection, Place place, std::string now_text,
                   std::size_t wanted)
    : connection_(connection),
      place_(std::move(place)),
      now_text_(std::move(now_text)),
      // One more tells whether there are more.
      page_size_(std::min(wanted, most_page_rows - 1) + 1) {}

Result<const DueJob*> DueRange::front() {
  if (position_ == page_.size() && !last_page_) {
    if (auto read = read_page(); !read) return read.error();
  }
  return position_ == page_.size() ? nullptr : &page_[position_];
}

Result<void> DueRange::read_page() {
  const auto last = page_.empty() ? DueJob{} : std::move(page_.back());
  page_.clear();
  position_ = 0;
  auto rows = connection_.query(place_.due);
  bind_place(rows);
  rows.bind(":after_time", last.available_at).bind(":after_id", last.id);
  rows.bind(":limit", static_cast<std::int64_t>(page_size_));
  while (rows.next())
    page_.push_back(read_due_job(rows));
  last_page_ = page_.size() < page_size_;
  page_size_ = std::min(page_size_ * 4, most_page_rows);
  return rows.result();
}

Result<std::optional<std::string>> DueRange::next_due() {
  auto row = connection_.query(place_.next_due);
  bind_place(row);
  std::optional<std::string> at;
  if (row.next()) at = row.optional_text(0);
  if (auto read = row.result(); !read) return read.error();
  return at;
}

void DueRange::bind_place(SqliteQuery& row) const {
  row.bind(":now", now_text_);
  if (place_.route.empty()) {
    row.bind(":queue", place_.queue).bind(":priority", std::int64_t{place_.priority});
  } else {
    row.bind(":route", place_.route);
  }
}

DueQueue::DueQueue(SqliteConnection& connection, std::string queue, milliseconds ageing,
                   Timestamp now, std::size_t wanted)
    : connection_(connection),
      queue_(std::move(queue)),
      ageing_(ageing),
      now_(now),
      now_text_(timestamp_text(now)),
      wanted_(wanted) {}

Result<const DueJob*> DueQueue::front() {
  return ageing_ > milliseconds::zero() ? front_by_urgency() : front_by_priority();
}

void DueQueue::pop() {
  ranges_[current_].pop();
}

/// Looks at a less urgent priority only when the more urgent ones have nothing.
Result<const DueJob*> DueQueue::front_by_priority() {
  for (;;) {
    if (current_ < ranges_.size()) {
      auto job = ranges_[current_].front();
      if (!job || *job != nullptr) return job;
    }
    auto opened = open_next_range();
    if (!opened) return opened.error();
    if (!*opened) return nullptr;
    current_ = ranges_.size() - 1;
  }
}

/// Within a range rows stand by urgency, too, so that the fronts are enough.
Result<const DueJob*> DueQueue::front_by_urgency() {
  if (auto opened = open_all_ranges(); !opened) return opened.error();
  const DueJob* best = nullptr;
  Urgency best_urgency;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const auto job = ranges_[i].front();
    if (!job) return job;
    if (*job == nullptr) continue;
    auto urgency = urgency_of(**job, ranges_[i].priority());
    if (best != nullptr && best_urgency <= urgency) continue;
    best = *job;
    best_urgency = std::move(urgency);
    current_ = i;
  }
  return best;
}

DueQueue::Urgency DueQueue::urgency_of(const DueJob& job, int priority) const {
  const auto since = parse_timestamp(job.available_at);
  const auto waited = since ? now_ - *since : Timestamp::duration::zero();
  return {priority - waited / ageing_, job.available_at, job.id};
}

Result<bool> DueQueue::open_next_range() {
  if (all_open_) return false;
  auto row = connection_.query(statements::jobs_next_priority);
  row.bind(":queue", queue_);
  row.bind(":after", std::int64_t{ranges_.empty() ? JobPolicy::least_priority - 1
                                                  : ranges_.back().priority()});
  std::optional<std::int64_t> priority;
  if (row.next()) priority = row.optional_integer(0);
  if (auto read = row.result(); !read) return read.error();
  if (!priority) {
    all_open_ = true;
    return false;
  }
  DueRange::Place place{statements::jobs_due, statements::jobs_next_due, queue_,
                        static_cast<int>(*priority), ""};
  ranges_.emplace_back(connection_, std::move(place), now_text_, wanted_);
  return true;
}

Result<void> DueQueue::open_all_ranges() {
  for (;;) {
    auto opened = open_next_range();
    if (!opened) return opened.error();
    if (!*opened) return {};
  }
}

Result<std::optional<std::string>> DueQueue::next_due() {
  if (auto opened = open_all_ranges(); !opened) return opened.error();
  std::optional<std::string> first;
  for (auto& range : ranges_) {
    const auto at = range.next_due();
    if (!at) return at;
    if (*at && (!first || **at < *first)) first = *at;
  }
  return first;
}

Result<std::optional<std::int64_t>> SerialKeys::free_slot(const DueJob& job) {
  constexpr std::optional<std::int64_t> none;
  auto& key = keys_[{job.queue, job.serial_key.value_or("")}];
  if (key.read < job.serial_limit) {
    if (auto done = read(job, key); !done) return done.error();
  }
  const auto end =
      key.first.begin() + std::min<std::ptrdiff_t>(job.serial_limit, std::ssize(key.first));
  if (std::find(key.first.begin(), end, job.id) == end) return none;
  std::int64_t slot = 0;
  for (const auto occupied : key.occupied) {
    if (occupied != slot) break;
    ++slot;
  }
  return slot < job.serial_limit ? std::optional(slot) : none;
}

void SerialKeys::occupy(const DueJob& job, std::int64_t slot) {
  keys_.at({job.queue, job.serial_key.value_or("")}).occupied.insert(slot);
}

/// Called again only for a row with a greater limit than those before it.
Result<void> SerialKeys::read(const DueJob& job, Key& key) {
  const auto bind_key = [&](SqliteQuery& rows) {
    rows.bind(":queue", job.queue).bind(":serial_key", *job.serial_key);
  };
  key.first.clear();
  auto first = connection_.query(statements::jobs_serial_first);
  bind_key(first);
  first.bind(":limit", job.serial_limit);
  while (first.next())
    key.first.push_back(first.text(0));
  if (auto read = first.result(); !read) return read;

  auto slots = connection_.query(statements::jobs_serial_slots);
  bind_key(slots);
  while (slots.next())
    key.occupied.insert(slots.integer(0));
  key.read = job.serial_limit;
  return slots.result();
}

Result<bool> QueueRules::is_paused(const std::string& queue) {
  const auto rule = rule_of(queue);
  if (!rule) return rule.error();
  return (*rule)->paused;
}

Result<bool> QueueRules::admit(const std::string& queue) {
  const auto rule = rule_of(queue);
  if (!rule) return rule.error();
  if (!(*rule)->bucket) return true;
  if (!(*rule)->bucket->take()) return false;
  (*rule)->changed = true;
  return true;
}

milliseconds QueueRules::next_token_in(const std::string& queue) const {
  return rules_.at(queue).bucket->next_in();
}

Result<void> QueueRules::store() {
  for (const auto& [queue, rule] : rules_) {
    // An empty look writes nothing, or it would wake all who wait for a commit, and so on.
    if (!rule.changed) continue;
    auto row = connection_.query(statements::queues_store_tokens);
    row.bind(":queue", queue).bind(":now", timestamp_text(now_));
    row.bind_real(":tokens", rule.bucket->tokens());
    if (auto done = row.run(); !done) return done;
  }
  return {};
}

Result<QueueRules::Rule*> QueueRules::rule_of(const std::string& queue) {
  if (const auto known = rules_.find(queue); known != rules_.end()) return &known->second;
  auto rule = read(queue);
  if (!rule) return rule.error();
  return &rules_.emplace(queue, std::move(rule).value()).first->second;
}

Result<QueueRules::Rule> QueueRules::read(const std::string& queue) {
  Rule rule;
  auto row = connection_.query(statements::queues_get);
  row.bind(":queue", queue);
  if (!row.next()) {
    if (auto read = row.result(); !read) return read.error();
    return rule;
  }
  rule.paused = !row.is_null(0);
  if (row.is_null(1)) return rule;
  const auto refilled_at =
      row.is_null(4) ? std::optional<Timestamp>() : parse_timestamp(row.text(4));
  // The clock went back: counting starts anew, or the queue would stand still until it has caught
  // up.
  rule.changed = refilled_at && *refilled_at > now_;
  rule.bucket = TokenBucket(static_cast<int>(row.integer(1)), milliseconds(row.integer(2)),
                            row.real(3), refilled_at, now_);
  return rule;
}

}  // namespace postrider::store::sqlite
