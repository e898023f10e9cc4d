#include <algorithm>
#include <optional>
#include <utility>

#include <postrider/content_hash.hpp>
#include <postrider/store/postgres.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/postgres/postgres_claim.hpp"
#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_due.hpp"
#include "store/postgres/postgres_event_columns.hpp"
#include "store/postgres/postgres_read_mark.hpp"
#include "store/postgres/postgres_rows.hpp"
#include "store/postgres/postgres_schema.hpp"
#include "store/postgres/postgres_settle.hpp"

namespace postrider {
namespace store::postgres {
namespace {

std::vector<Call> calls_of(const NewEventColumns& columns) {
  std::vector<Call> calls;
  if (columns.aggregates() > 1) {
    calls.push_back({"events_lock_aggregates"});
    calls.back().parameters = columns.lock_parameters();
  }
  calls.push_back({"events_insert"});
  calls.back().parameters = columns.insert_parameters();
  return calls;
}

/// From a row of partitions_lease.
ReadMark mark_at(const Rows& rows, int row) {
  if (rows.is_null(row, 5)) return {};
  return mark_of(
      {rows.integer(row, 5), std::string(rows.text(row, 6)), std::string(rows.text(row, 7))});
}

LeaseGrant read_grant(const Rows& rows, const std::string& owner) {
  LeaseGrant grant;
  for (int row = 0; row < rows.size(); ++row) {
    const auto leased_until = rows.time_if(row, 4);
    if (!leased_until) continue;
    const auto now = rows.time(row, 0);
    const Partition partition(rows.small_integer(row, 1));
    // A row of ours that was not renewed was taken over in this very moment.
    const bool renewed = !rows.is_null(row, 9);
    if (renewed) {
      grant.leases.push_back({{partition, FencingToken(rows.integer(row, 3))},
                              rows.boolean(row, 9),
                              mark_at(rows, row),
                              rows.integer(row, 8),
                              read_suspicion(rows, row, 10)});
    } else if (*leased_until > now && rows.text(row, 2) != owner) {
      grant.foreign.push_back(
          {partition, std::string(rows.text(row, 2)), until(*leased_until, now)});
    }
  }
  return grant;
}

class PostgresStore final : public Store {
 public:
  explicit PostgresStore(PostgresOptions options)
      : connection_(std::move(options), Use::relay), random_(system_random()) {
    connection_.use_session_lock(static_cast<std::int32_t>(random_->next()));
  }

  StoreTraits traits() const override {
    return {"postgres", connection_.options().partitions, true, true, true};
  }

  Result<void> check_schema(Deadline deadline) override {
    return compare_schema(connection_, deadline);
  }

  Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) override {
    std::vector<EventId> ids;
    NewEventColumns columns;
    for (const auto& event : events) {
      ids.push_back(event.id ? *event.id : EventId(ids_.next()));
      if (auto added = columns.add(event, ids.back()); !added) return added.error();
    }
    if (ids.empty()) return ids;
    const auto written = connection_.write(calls_of(columns), deadline);
    if (!written) return written.error();
    return ids;
  }

  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline deadline) override {
    if (auto checked = check(key); !checked) return checked.error();
    const auto id = event.id ? *event.id : EventId(ids_.next());
    NewEventColumns columns;
    if (auto added = columns.add(event, id); !added) return added.error();
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto earlier = claim_key(event, id, key, deadline);
    if (!earlier || *earlier) {
      connection_.rollback(deadline);
      if (!earlier) return earlier.error();
      return **earlier;
    }
    const auto written = connection_.run(calls_of(columns), deadline);
    if (!written) return written.error();
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return id;
  }

  /// Leases, and what is known under them, are of one server. On another one (a standby that was
  /// promoted, a restored dump) a number may belong to another event, so nothing is said to it
  /// before all leases are gained anew there, under tokens that were never ours.
  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    connection_.hold_to(std::nullopt);
    auto grant = lease_anywhere(request, deadline);
    if (grant.ok()) leased_on_ = connection_.identity();
    connection_.hold_to(leased_on_);
    return grant;
  }

  Result<void> release(std::span<const Lease> leases, Deadline deadline) override {
    if (leases.empty()) return {};
    std::vector<std::int32_t> partitions;
    std::vector<std::int64_t> tokens;
    for (const auto& lease : leases) {
      partitions.push_back(lease.partition.value());
      tokens.push_back(lease.token.value());
    }
    Call call{"partitions_release"};
    call.parameters.small_integers(partitions).integers(tokens);
    const auto released = connection_.write(std::vector<Call>{std::move(call)}, deadline);
    if (!released) return released.error();
    return {};
  }

  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) override {
    if (auto opened = connection_.open(deadline); !opened) return opened.error();
    return ClaimReader(connection_, request, claim_weighed_).read(deadline);
  }

  Result<DueBatch> due(const DueRequest& request, Deadline deadline) override {
    return read_due(connection_, request, deadline);
  }

  Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) override {
    return read_held(connection_, request, deadline);
  }

  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    return apply_settle(connection_, request, deadline);
  }

 private:
  /// The id of the event that took the key before; none if it is ours now.
  Result<std::optional<EventId>> claim_key(const NewEvent& event, const EventId& id,
                                           const IdempotencyKey& key, Deadline deadline) {
    const auto hash = content_hash(event);
    const std::string_view bytes(reinterpret_cast<const char*>(hash.bytes.data()),
                                 hash.bytes.size());
    Call claim{"keys_claim"};
    claim.parameters.text(key.scope).text(key.key).uuid(id.value()).bytes(bytes);
    Call get{"keys_get"};
    get.parameters.text(key.scope).text(key.key).bytes(bytes);
    const auto results =
        connection_.run(std::vector<Call>{std::move(claim), std::move(get)}, deadline);
    if (!results) return results.error();
    if (!results->at(0).empty()) return std::optional<EventId>();
    const auto& found = results->at(1);
    if (found.empty()) return key_vanished("postgres");
    if (found.text(0, 1) != "same") return key_was_reused("postgres");
    const auto first = Uuid::parse(found.text(0, 0));
    if (!first) return first.error();
    return std::optional(EventId(*first));
  }

  Result<LeaseGrant> lease_anywhere(const LeaseRequest& request, Deadline deadline) {
    const auto lock = connection_.session_lock(deadline);
    if (!lock) return lock.error();
    connection_.hold_to(connection_.identity());
    const auto results =
        connection_.write(std::vector<Call>{lease_call(request, *lock), {"routes_list"}}, deadline);
    if (!results) return results.error();
    auto grant = read_grant(results->at(0), request.owner);
    for (const auto& granted : grant.leases)
      highest_token_ = std::max(highest_token_, granted.lease.token.value());
    const auto& routes = results->at(1);
    for (int row = 0; row < routes.size(); ++row) {
      grant.paused_routes.emplace_back(routes.text(row, 0));
    }
    return grant;
  }

  [[nodiscard]] Call lease_call(const LeaseRequest& request,
                                std::optional<std::int32_t> session_lock) const {
    const auto most = static_cast<std::size_t>(connection_.options().partitions);
    const bool elsewhere = leased_on_ && *leased_on_ != connection_.identity();
    Call call{"partitions_lease"};
    call.parameters.time_if(request.now).text(request.owner);
    call.parameters.integer(request.lease_time.count());
    call.parameters.small_integer(static_cast<std::int32_t>(std::min(request.at_most, most)));
    if (session_lock) {
      call.parameters.small_integer(*session_lock);
    } else {
      call.parameters.null();
    }
    call.parameters.boolean(elsewhere).integer(highest_token_);
    return call;
  }

  PostgresConnection connection_;
  std::optional<ServerIdentity> leased_on_;  // by the last lease
  std::int64_t highest_token_ = 0;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
  bool claim_weighed_ = false;
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<Store> make_postgres_store(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresStore>(std::move(options));
}

}  // namespace postrider
