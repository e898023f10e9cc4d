#include "core/purge_plan.hpp"

#include <utility>

#include "base/assert.hpp"

namespace postrider::core {

PurgePlan::PurgePlan(const Retention& retention) {
  for (const auto kept : all_kept) {
    const auto age = retention.of(kept);
    if (age > milliseconds::zero()) kinds_.push_back({kept, age, false});
  }
}

std::optional<Instant> PurgePlan::due_at() const {
  if (asked_ || kinds_.empty()) return std::nullopt;
  return due_at_;
}

PurgeRequest PurgePlan::ask() {
  POSTRIDER_ASSERT(!asked_ && !kinds_.empty());
  asked_ = true;
  const auto& kind = kinds_[current_];
  PurgeRequest request;
  request.kept = kind.kept;
  request.older_than = kind.age;
  request.after = after_;
  request.rows = slice_rows;
  return request;
}

std::optional<Notice> PurgePlan::on_slice(const PurgeSlice& slice, Instant now) {
  POSTRIDER_ASSERT(asked_);
  asked_ = false;
  kinds_[current_].failing = false;
  untold_ += slice.rows;
  if (slice.more) {
    after_ = slice.last;
    due_at_ = now + slice_pause;
    return untold_ >= most_untold ? told() : std::nullopt;
  }
  auto notice = told();
  next_kind(now);
  return notice;
}

std::optional<Notice> PurgePlan::on_failure(const Error& error, Instant now) {
  POSTRIDER_ASSERT(asked_);
  asked_ = false;
  const bool first = !std::exchange(kinds_[current_].failing, true);
  Notice notice;
  notice.kind = NoticeKind::purge_failed;
  notice.code = to_string(error.code);
  notice.detail = std::string(to_string(kinds_[current_].kept)) + ": " + error.message;
  notice.wait = sweep_interval;
  if (untold_ > 0) notice.rows = std::exchange(untold_, 0);
  next_kind(now);
  return first || notice.rows ? std::optional(std::move(notice)) : std::nullopt;
}

std::optional<Notice> PurgePlan::told() {
  if (untold_ == 0) return std::nullopt;
  Notice notice;
  notice.kind = NoticeKind::rows_purged;
  notice.code = to_string(kinds_[current_].kept);
  notice.rows = std::exchange(untold_, 0);
  return notice;
}

void PurgePlan::next_kind(Instant now) {
  after_ = {};
  current_ = (current_ + 1) % kinds_.size();
  due_at_ = now + (current_ == 0 ? sweep_interval : slice_pause);
}

}  // namespace postrider::core
