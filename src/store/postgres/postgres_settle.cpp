#include "store/postgres/postgres_settle.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "base/assert.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/postgres/postgres_read_mark.hpp"
#include "store/postgres/postgres_rows.hpp"

namespace postrider::store::postgres {
namespace {

std::optional<std::int64_t> value_of(const std::optional<Seq>& seq) {
  if (!seq) return std::nullopt;
  return seq->value();
}

template <class Id>
std::optional<Uuid> uuid_of(const std::optional<Id>& id) {
  if (!id) return std::nullopt;
  return id->value();
}

std::optional<std::string_view> view_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return std::string_view(*text);
}

using NewRows = std::vector<const NewDelivery*>;

/// One array per column, in the order of the rows.
template <class Row, class Get>
auto column(const std::vector<Row>& rows, Get get) {
  std::vector<decltype(get(rows.front()))> values;
  values.reserve(rows.size());
  for (const auto& row : rows)
    values.push_back(get(row));
  return values;
}

template <class Get>
auto column(const NewRows& rows, Get get) {
  std::vector<decltype(get(*rows.front()))> values;
  values.reserve(rows.size());
  for (const auto* row : rows)
    values.push_back(get(*row));
  return values;
}

/// An empty key is none.
std::optional<std::string_view> key_of(const std::string& key) {
  if (key.empty()) return std::nullopt;
  return std::string_view(key);
}

/// What new rows and changed ones have in common, from dispatch_id on.
template <class Rows>
void add_result_columns(Parameters& parameters, const Rows& rows) {
  parameters.optional_uuids(column(rows, [](const auto& row) { return uuid_of(row.dispatch_id); }));
  parameters.integers(
      column(rows, [](const auto& row) { return std::int64_t{row.available_in.count()}; }));
  parameters.texts(column(rows, [](const auto& row) { return row.failure_code; }));
  parameters.texts(column(rows, [](const auto& row) { return row.failure_detail; }));
  parameters.booleans(column(rows, [](const auto& row) { return row.ambiguous; }));
}

class Settling {
 public:
  Settling(PostgresConnection& connection, const SettleRequest& request)
      : connection_(connection), request_(request) {}

  Result<SettleResult> run(Deadline deadline) {
    if (auto made = make_calls(); !made) return made.error();
    const auto results = connection_.write(calls_, deadline);
    if (results) return read_results(*results);
    if (results.error().native_code != lease_lost_state) return results.error();
    return SettleResult{lost_partitions(), {}, {}};
  }

 private:
  Result<void> make_calls() {
    add_fence();
    for (const auto& row : request_.deliveries)
      (row.job ? jobs_ : deliveries_).push_back(&row);
    if (!deliveries_.empty()) add_deliveries();
    if (!jobs_.empty()) add_jobs();
    if (!request_.routed.empty()) add_routed();
    if (!request_.updates.empty()) add_updates();
    if (!request_.released.empty()) {
      add("deliveries_release");
      calls_.back().parameters.uuids(
          column(request_.released, [](const auto& id) { return id.value(); }));
    }
    if (!request_.stopped_routes.empty()) add_stopped_routes();
    if (!request_.suspicions.empty()) add_suspicions();
    return request_.mark ? add_mark() : Result<void>();
  }

  std::size_t add(std::string_view statement) {
    calls_.push_back({statement});
    return calls_.size() - 1;
  }

  [[nodiscard]] std::vector<std::int32_t> partitions() const {
    return column(request_.leases, [](const auto& lease) { return lease.partition.value(); });
  }

  void add_fence() {
    add("partitions_fence");
    auto& parameters = calls_.back().parameters;
    parameters.small_integers(partitions());
    parameters.integers(
        column(request_.leases, [](const auto& lease) { return lease.token.value(); }));
    parameters.boolean(request_.mark.has_value() || !request_.suspicions.empty());
  }

  void add_routed() {
    auto seqs = column(request_.routed, [](const auto& row) { return row.seq.value(); });
    std::sort(seqs.begin(), seqs.end());
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> last;
    for (const auto seq : seqs) {
      const bool joins = !last.empty() && seq <= last.back() + 1;
      if (!joins) first.push_back(seq);
      if (!joins) last.push_back(seq);
      last.back() = seq;
    }
    routed_at_ = add("events_set_routed");
    calls_.back().parameters.integers(first).integers(last).time_if(request_.now);
  }

  void add_deliveries() {
    for (const auto& routed : request_.routed)
      routed_.insert(routed.seq.value());
    const auto& rows = deliveries_;
    add("deliveries_insert");
    auto& parameters = calls_.back().parameters;
    parameters.time_if(request_.now);
    parameters.uuids(column(rows, [](const auto& row) { return row.id.value(); }));
    parameters.integers(column(rows, [](const auto& row) { return row.event_seq.value(); }));
    parameters.uuids(column(rows, [](const auto& row) { return row.event_id.value(); }));
    parameters.texts(column(rows, [](const auto& row) { return row.route; }));
    parameters.optional_texts(
        column(rows, [](const auto& row) { return view_of(row.ordering_key); }));
    parameters.texts(
        column(rows, [](const auto& row) { return std::string(to_string(row.status)); }));
    parameters.integers(column(rows, [](const auto& row) { return std::int64_t{row.attempts}; }));
    parameters.texts(
        column(rows, [](const auto& row) { return encode_durations(row.retry_delays); }));
    parameters.integers(
        column(rows, [](const auto& row) { return std::int64_t{row.timeout.count()}; }));
    parameters.texts(
        column(rows, [](const auto& row) { return std::string(to_string(row.on_failed)); }));
    add_result_columns(parameters, rows);
    parameters.booleans(column(rows, [&](const auto& row) {
      return row.status == DeliveryStatus::held || routed_.contains(row.event_seq.value());
    }));
    stored_at_ = add("deliveries_get");
    calls_.back().parameters.uuids(column(rows, [](const auto& row) { return row.id.value(); }));
  }

  void add_jobs() {
    add("deliveries_insert_jobs");
    auto& parameters = calls_.back().parameters;
    parameters.time_if(request_.now);
    add_new_row_columns(parameters);
    add_policy_columns(parameters);
  }

  void add_new_row_columns(Parameters& parameters) const {
    const auto& rows = jobs_;
    parameters.uuids(column(rows, [](const auto& row) { return row.id.value(); }));
    parameters.integers(column(rows, [](const auto& row) { return row.event_seq.value(); }));
    parameters.uuids(column(rows, [](const auto& row) { return row.event_id.value(); }));
    parameters.texts(column(rows, [](const auto& row) { return row.route; }));
    parameters.texts(
        column(rows, [](const auto& row) { return std::string(to_string(row.status)); }));
    parameters.texts(
        column(rows, [](const auto& row) { return encode_durations(row.retry_delays); }));
    parameters.integers(
        column(rows, [](const auto& row) { return std::int64_t{row.timeout.count()}; }));
    parameters.texts(
        column(rows, [](const auto& row) { return std::string(to_string(row.on_failed)); }));
    parameters.integers(
        column(rows, [](const auto& row) { return std::int64_t{row.available_in.count()}; }));
    parameters.texts(column(rows, [](const auto& row) { return row.failure_code; }));
    parameters.texts(column(rows, [](const auto& row) { return row.failure_detail; }));
  }

  void add_policy_columns(Parameters& parameters) const {
    const auto policy_column = [&](auto get) {
      return column(jobs_, [&](const auto& row) { return get(row.job->policy); });
    };
    parameters.texts(policy_column([](const auto& policy) { return policy.job; }));
    parameters.texts(policy_column([](const auto& policy) { return policy.queue; }));
    parameters.texts(
        column(jobs_, [](const auto& row) { return std::string(to_string(row.job->transport)); }));
    parameters.small_integers(
        policy_column([](const auto& policy) { return std::int32_t{policy.priority}; }));
    parameters.optional_texts(
        policy_column([](const auto& policy) { return key_of(policy.serial_key); }));
    parameters.small_integers(
        policy_column([](const auto& policy) { return std::int32_t{policy.serial_limit}; }));
    parameters.optional_texts(
        policy_column([](const auto& policy) { return key_of(policy.unique_key); }));
    parameters.texts(policy_column(
        [](const auto& policy) { return std::string(to_string(policy.on_worker_death)); }));
    parameters.small_integers(
        policy_column([](const auto& policy) { return std::int32_t{policy.max_deaths}; }));
    parameters.integers(policy_column(
        [](const auto& policy) { return std::int64_t{policy.timeout_limit.count()}; }));
    add_hooks(parameters);
  }

  void add_hooks(Parameters& parameters) const {
    const auto hooks =
        column(jobs_, [](const auto& row) { return encode_hooks(row.job->policy.hooks); });
    parameters.optional_texts(
        std::vector<std::optional<std::string_view>>(hooks.begin(), hooks.end()));
  }

  void add_updates() {
    const auto& rows = request_.updates;
    updated_at_ = add("deliveries_update");
    auto& parameters = calls_.back().parameters;
    parameters.time_if(request_.now);
    parameters.uuids(column(rows, [](const auto& row) { return row.id.value(); }));
    parameters.texts(
        column(rows, [](const auto& row) { return std::string(to_string(row.expected_status)); }));
    parameters.optional_uuids(
        column(rows, [](const auto& row) { return uuid_of(row.expected_dispatch_id); }));
    parameters.texts(
        column(rows, [](const auto& row) { return std::string(to_string(row.status)); }));
    parameters.integers(column(rows, [](const auto& row) { return std::int64_t{row.attempts}; }));
    add_result_columns(parameters, rows);
  }

  void add_stopped_routes() {
    add("routes_pause");
    auto& parameters = calls_.back().parameters;
    parameters.texts(request_.stopped_routes).text("stopped").text("postrider");
    parameters.text("a dead letter on a route with on_failed = stop").time_if(request_.now);
  }

  void add_suspicions() {
    const auto& rows = request_.suspicions;
    add("partitions_set_suspicion");
    auto& parameters = calls_.back().parameters;
    parameters.small_integers(column(rows, [](const auto& row) { return row.partition.value(); }));
    parameters.small_integers(
        column(rows, [](const auto& row) { return std::int32_t{row.suspicion.crashes}; }));
    parameters.optional_integers(
        column(rows, [](const auto& row) { return value_of(row.suspicion.probe_seq); }));
  }

  Result<void> add_mark() {
    const auto columns = mark_columns(*request_.mark);
    if (!columns) return columns.error();
    add("partitions_store_mark");
    auto& parameters = calls_.back().parameters;
    parameters.small_integers(partitions()).integer(columns->position);
    parameters.text(columns->in_flight).text(columns->server_identity);
    return {};
  }

  [[nodiscard]] SettleResult read_results(const std::vector<Rows>& results) const {
    SettleResult settled;
    std::unordered_set<std::int64_t> stale;
    if (routed_at_ && results.at(*routed_at_).size() < std::ssize(request_.routed)) {
      std::unordered_set<std::int64_t> marked;
      const auto& rows = results.at(*routed_at_);
      for (int row = 0; row < rows.size(); ++row)
        marked.insert(rows.integer(row, 0));
      for (const auto& routed : request_.routed) {
        if (marked.contains(routed.seq.value())) continue;
        settled.stale_events.push_back(routed.seq);
        stale.insert(routed.seq.value());
      }
    }
    if (stored_at_) {
      // What is missing gave way to a row of somebody else, unless its event says why.
      const auto there = ids_in(results.at(*stored_at_));
      for (const auto* row : deliveries_) {
        if (there.contains(row->id.value()) || stale.contains(row->event_seq.value())) continue;
        settled.stale_deliveries.push_back(row->id);
      }
    }
    if (updated_at_) {
      const auto updated = ids_in(results.at(*updated_at_));
      for (const auto& update : request_.updates) {
        if (!updated.contains(update.id.value())) settled.stale_deliveries.push_back(update.id);
      }
    }
    return settled;
  }

  static std::unordered_set<Uuid> ids_in(const Rows& rows) {
    const auto ids = uuids_in(rows, 0);
    return {ids.begin(), ids.end()};
  }

  /// The fence puts them into the error's DETAIL: "3,17".
  [[nodiscard]] std::vector<Partition> lost_partitions() const {
    std::vector<Partition> lost;
    const std::string& detail = connection_.error_detail();
    const char* at = detail.data();
    const char* const end = at + detail.size();
    for (std::int32_t number = 0; at < end; ++at) {
      const auto read = std::from_chars(at, end, number);
      if (read.ec != std::errc()) break;
      lost.emplace_back(number);
      at = read.ptr;
    }
    return lost;
  }

  PostgresConnection& connection_;
  const SettleRequest& request_;
  std::vector<Call> calls_;
  NewRows deliveries_;  ///< of publish routes, and held ones
  NewRows jobs_;
  std::unordered_set<std::int64_t> routed_;
  std::optional<std::size_t> routed_at_;
  std::optional<std::size_t> stored_at_;
  std::optional<std::size_t> updated_at_;
};

/// Requires: every partition in the request has its lease.
void assert_leases(const SettleRequest& request) {
  std::unordered_set<Partition> leased;
  for (const auto& lease : request.leases)
    leased.insert(lease.partition);
  const auto is_leased = [&](const auto& row) { return leased.contains(row.partition); };
  POSTRIDER_ASSERT(std::all_of(request.routed.begin(), request.routed.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.deliveries.begin(), request.deliveries.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.updates.begin(), request.updates.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.suspicions.begin(), request.suspicions.end(), is_leased));
}

}  // namespace

Result<SettleResult> apply_settle(PostgresConnection& connection, const SettleRequest& request,
                                  Deadline deadline) {
  assert_leases(request);
  return Settling(connection, request).run(deadline);
}

}  // namespace postrider::store::postgres
