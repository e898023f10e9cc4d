#include "store/postgres/postgres_job_rows.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/postgres/postgres_rows.hpp"
#include "values/job_hooks.hpp"

namespace postrider::store::postgres {
namespace {

constexpr int now_column = job_columns;
constexpr int timeout_column = job_columns + 1;
constexpr int checkpoint_column = job_columns + 2;
constexpr int task_event_column = job_columns + 3;

void read_hooks(std::string_view text, JobColumns& read) {
  auto hooks = decode_hooks(text);
  if (hooks) {
    read.hooks = std::move(hooks).value();
  } else {
    read.malformed = hooks.error().message;
  }
}

}  // namespace

JobColumns read_job_columns(const Rows& rows, int row) {
  JobColumns read;
  Job& job = read.job;
  job.delivery_id = DeliveryId(rows.uuid(row, 0));
  job.event_seq = Seq(rows.integer(row, 1));
  job.event_id = EventId(rows.uuid(row, 2));
  job.route = rows.text(row, 3);
  job.job = rows.text(row, 4);
  job.queue = rows.text(row, 5);
  job.attempts = rows.small_integer(row, 6);
  job.timeout = milliseconds(rows.integer(row, 8));
  job.timeout_limit = milliseconds(rows.integer(row, 9));
  // The constraints of the table are this enumeration.
  job.on_worker_death = parse_on_worker_death(rows.text(row, 10)).value_or(OnWorkerDeath::fail);
  job.max_deaths = rows.smallest_integer(row, 11);
  job.deaths = std::max(rows.small_integer(row, 12) - 1, 0);
  job.snoozes = rows.small_integer(row, 13);
  job.interruptions = rows.small_integer(row, 14);
  job.cancel_requested = rows.boolean(row, 15);
  if (!rows.is_null(row, 16)) read_hooks(rows.text(row, 16), read);
  read.dispatch_id = DispatchId(rows.uuid(row, 17));
  auto delays = decode_durations(rows.text(row, 7));
  if (delays) {
    job.retry_delays = std::move(delays).value();
  } else {
    read.malformed = delays.error().message;
  }
  return read;
}

void set_hooks(JobColumns& columns, const Event& event) {
  columns.job.hooks = hook_context(std::move(columns.hooks), event);
}

Task read_task(const Rows& rows, int row) {
  auto columns = read_job_columns(rows, row);
  auto event = read_event_columns(rows, row, task_event_column);
  set_hooks(columns, *event.event);
  Task task;
  task.job = std::move(columns.job);
  task.dispatch_id = columns.dispatch_id;
  task.event = std::move(event.event);
  task.checkpoint = rows.text(row, checkpoint_column);
  task.until_timeout = until(rows.time(row, timeout_column), rows.time(row, now_column));
  task.malformed = columns.malformed.empty() ? std::move(event.malformed) : columns.malformed;
  return task;
}

std::string storable_text(std::string_view text) {
  std::string storable(text);
  std::replace(storable.begin(), storable.end(), '\0', '?');
  // A replaced byte cannot make a sound one before it unsound, so the search goes on behind it.
  for (std::size_t from = 0;;) {
    const auto at = first_invalid_utf8(std::string_view(storable).substr(from));
    if (!at) return storable;
    from += *at;
    storable[from++] = '?';
  }
}

}  // namespace postrider::store::postgres
