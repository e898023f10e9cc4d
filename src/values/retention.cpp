#include <fmt/format.h>

#include <postrider/retention.hpp>

namespace postrider {

std::string_view to_string(Kept kept) noexcept {
  switch (kept) {
    case Kept::events:
      return "events";
    case Kept::keys:
      return "keys";
    case Kept::receipts:
      return "receipts";
    case Kept::workers:
      return "workers";
  }
  return "events";
}

milliseconds Retention::of(Kept kept) const noexcept {
  switch (kept) {
    case Kept::events:
      return events;
    case Kept::keys:
      return keys;
    case Kept::receipts:
      return receipts;
    case Kept::workers:
      return workers;
  }
  return events;
}

Result<void> check(const PurgeRequest& request) {
  if (request.older_than < milliseconds::zero()) {
    return Error{ErrorCode::invalid_argument, Disposition::reject,
                 "the age is negative. Give 0 or more.", "purge", ""};
  }
  if (request.rows >= 1 && request.rows <= PurgeRequest::most_rows) return {};
  return Error{
      request.rows == 0 ? ErrorCode::invalid_argument : ErrorCode::limit_exceeded,
      Disposition::reject,
      fmt::format("a slice has {} rows. Give 1 to {}.", request.rows, PurgeRequest::most_rows),
      "purge", ""};
}

}  // namespace postrider
