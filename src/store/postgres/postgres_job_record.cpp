#include "store/postgres/postgres_job_record.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "store/postgres/postgres_event_columns.hpp"
#include "store/postgres/postgres_job_rows.hpp"

namespace postrider::store::postgres {
namespace {

/// One array for a column of `updates`.
template <class Get>
auto array_of(const std::vector<const JobUpdate*>& updates, Get get) {
  std::vector<decltype(get(*updates.front()))> values;
  values.reserve(updates.size());
  for (const auto* update : updates)
    values.push_back(get(*update));
  return values;
}

class Recording {
 public:
  Recording(PostgresConnection& connection, IdGenerator& ids, const RecordRequest& request)
      : connection_(connection), ids_(ids), request_(request) {}

  Result<std::vector<RecordAnswer>> run(Deadline deadline) {
    if (request_.updates.empty()) return std::vector<RecordAnswer>();
    choose_first_ones();
    const bool has_more = std::any_of(first_.begin(), first_.end(), [](const auto* update) {
      return update->keeps_failure || !update->events.empty();
    });
    const auto applied = has_more ? apply_with_more(deadline) : apply(deadline);
    if (!applied) return applied.error();
    if (auto looked = look_at_the_rest(deadline); !looked) return looked.error();
    return answers();
  }

 private:
  /// Of each dispatch the first update counts. In the order of rows, so that two callers with the
  /// same rows wait for each other and never in a ring.
  void choose_first_ones() {
    std::unordered_set<DispatchId> seen;
    for (const auto& update : request_.updates) {
      if (seen.insert(update.dispatch_id).second) first_.push_back(&update);
    }
    std::sort(first_.begin(), first_.end(), [](const auto* left, const auto* right) {
      return left->delivery_id < right->delivery_id;
    });
  }

  [[nodiscard]] Call record_call() const {
    Call call{"jobs_record"};
    auto& parameters = call.parameters;
    parameters.time_if(request_.now);
    parameters.uuids(array_of(first_, [](const auto& row) { return row.delivery_id.value(); }));
    parameters.uuids(array_of(first_, [](const auto& row) { return row.dispatch_id.value(); }));
    parameters.texts(
        array_of(first_, [](const auto& row) { return std::string(to_string(row.status)); }));
    const auto counts = [&](int JobUpdate::*member) {
      parameters.small_integers(
          array_of(first_, [&](const auto& row) { return std::int32_t{row.*member}; }));
    };
    counts(&JobUpdate::attempts);
    counts(&JobUpdate::deaths);
    counts(&JobUpdate::snoozes);
    counts(&JobUpdate::interruptions);
    parameters.integers(
        array_of(first_, [](const auto& row) { return std::int64_t{row.available_in.count()}; }));
    const auto texts = [&](std::string JobUpdate::*member) {
      parameters.texts(
          array_of(first_, [&](const auto& row) { return storable_text(row.*member); }));
    };
    texts(&JobUpdate::failure_code);
    texts(&JobUpdate::failure_detail);
    texts(&JobUpdate::result);
    parameters.booleans(array_of(first_, [](const auto& row) { return row.unless_started; }));
    return call;
  }

  Result<void> apply(Deadline deadline) {
    const auto results = connection_.write(std::vector<Call>{record_call()}, deadline);
    if (!results) return results.error();
    note_applied(results->at(0));
    return {};
  }

  /// With what the ends that were applied bring along, and nothing of the others.
  Result<void> apply_with_more(Deadline deadline) {
    if (auto begun = connection_.begin(deadline); !begun) return begun;
    const auto results = connection_.run(std::vector<Call>{record_call()}, deadline);
    if (!results) return results.error();
    note_applied(results->at(0));
    const auto calls = calls_for_more();
    if (!calls) {
      connection_.rollback(deadline);
      return calls.error();
    }
    if (!calls->empty()) {
      if (auto written = connection_.run(*calls, deadline); !written) return written.error();
    }
    return connection_.commit(deadline);
  }

  void note_applied(const Rows& rows) {
    for (int row = 0; row < rows.size(); ++row)
      applied_.insert(DispatchId(rows.uuid(row, 0)));
  }

  [[nodiscard]] Result<std::vector<Call>> calls_for_more() const {
    std::vector<const JobUpdate*> failures;
    NewEventColumns events;
    bool has_events = false;
    for (const auto* update : first_) {
      if (!applied_.contains(update->dispatch_id)) continue;
      if (update->keeps_failure) failures.push_back(update);
      for (const auto& event : update->events) {
        const auto id = event.id ? *event.id : EventId(ids_.next());
        if (auto added = events.add(event, id); !added) return added.error();
        has_events = true;
      }
    }
    std::vector<Call> calls;
    if (!failures.empty()) calls.push_back(failures_call(failures));
    if (has_events) {
      calls.push_back({"jobs_tell_unordered"});
      calls.push_back({"events_insert", events.insert_parameters()});
    }
    return calls;
  }

  [[nodiscard]] Call failures_call(const std::vector<const JobUpdate*>& rows) const {
    Call call{"jobs_keep_failures"};
    auto& parameters = call.parameters;
    parameters.time_if(request_.now);
    parameters.uuids(array_of(rows, [](const auto& row) { return row.delivery_id.value(); }));
    parameters.uuids(array_of(rows, [](const auto& row) { return row.dispatch_id.value(); }));
    parameters.small_integers(
        array_of(rows, [](const auto& row) { return std::int32_t{row.attempts}; }));
    parameters.texts(
        array_of(rows, [](const auto& row) { return storable_text(row.failure_code); }));
    parameters.texts(
        array_of(rows, [](const auto& row) { return storable_text(row.failure_detail); }));
    parameters.optional_uuids(array_of(rows, [](const auto& row) {
      return row.worker ? std::optional(row.worker->value()) : std::nullopt;
    }));
    parameters.small_integer(JobFailure::most_kept);
    return call;
  }

  Result<void> look_at_the_rest(Deadline deadline) {
    std::vector<Uuid> rest;
    for (const auto* update : first_) {
      if (applied_.contains(update->dispatch_id)) {
        results_.emplace(update->dispatch_id, storable_text(update->result));
      } else {
        rest.push_back(update->delivery_id.value());
      }
    }
    if (rest.empty()) return {};
    Call call{"jobs_get"};
    call.parameters.uuids(rest);
    const auto results = connection_.read(std::vector<Call>{std::move(call)}, deadline);
    if (!results) return results.error();
    const auto& rows = results->at(0);
    for (int row = 0; row < rows.size(); ++row) {
      if (rows.is_null(row, 2)) continue;
      if (rows.text(row, 1) == "dispatched") {
        if (rows.boolean(row, 6)) wanted_cancelled_.insert(DispatchId(rows.uuid(row, 2)));
      } else if (!rows.is_null(row, 5)) {
        results_.emplace(DispatchId(rows.uuid(row, 2)), std::string(rows.text(row, 5)));
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<RecordAnswer> answers() const {
    std::unordered_set<DispatchId> fresh = applied_;
    std::vector<RecordAnswer> answers;
    answers.reserve(request_.updates.size());
    for (const auto& update : request_.updates) {
      const bool recorded = fresh.erase(update.dispatch_id) > 0;
      answers.push_back(recorded ? RecordAnswer::recorded : compare(update));
    }
    return answers;
  }

  [[nodiscard]] RecordAnswer compare(const JobUpdate& update) const {
    const bool pending = update.status == DeliveryStatus::pending;
    if (pending && wanted_cancelled_.contains(update.dispatch_id)) {
      return RecordAnswer::cancel_requested;
    }
    const auto stored = results_.find(update.dispatch_id);
    if (stored == results_.end()) return RecordAnswer::stale;
    const bool same = stored->second == storable_text(update.result);
    return same ? RecordAnswer::repeated : RecordAnswer::conflict;
  }

  PostgresConnection& connection_;
  IdGenerator& ids_;
  const RecordRequest& request_;
  std::vector<const JobUpdate*> first_;
  std::unordered_set<DispatchId> applied_;
  std::unordered_set<DispatchId> wanted_cancelled_;      // and still running
  std::unordered_map<DispatchId, std::string> results_;  // of dispatches that have ended
};

}  // namespace

Result<std::vector<RecordAnswer>> record_ends(PostgresConnection& connection, IdGenerator& ids,
                                              const RecordRequest& request, Deadline deadline) {
  return Recording(connection, ids, request).run(deadline);
}

}  // namespace postrider::store::postgres
