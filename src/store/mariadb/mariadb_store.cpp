#include <utility>

#include <postrider/store/mariadb.hpp>

#include "store/mariadb/mariadb_claim.hpp"
#include "store/mariadb/mariadb_connection.hpp"
#include "store/mariadb/mariadb_due.hpp"
#include "store/mariadb/mariadb_keys.hpp"
#include "store/mariadb/mariadb_lease.hpp"
#include "store/mariadb/mariadb_schema.hpp"
#include "store/mariadb/mariadb_settle.hpp"
#include "store/mariadb/mariadb_writing.hpp"

namespace postrider {
namespace store::mariadb {
namespace {

class MariadbStore final : public Store {
 public:
  explicit MariadbStore(MariadbOptions options)
      : connection_(std::move(options)),
        random_(system_random()),
        session_lock_(static_cast<std::int32_t>(random_->next() & 0x7fffffffU)) {}

  StoreTraits traits() const override {
    return {"mariadb", connection_.options().partitions, true, true, true};
  }

  Result<void> check_schema(Deadline deadline) override {
    if (auto opened = connection_.ready(deadline); !opened) return opened;
    return compare_schema(connection_);
  }

  Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) override {
    return connection_.write(deadline, [&]() -> Result<std::vector<EventId>> {
      std::vector<EventId> ids;
      ids.reserve(events.size());
      for (const auto& event : events)
        ids.push_back(id_of(event));
      if (auto written = insert_events(connection_, events, ids); !written) return written.error();
      return ids;
    });
  }

  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline deadline) override {
    if (auto checked = check(key); !checked) return checked.error();
    return connection_.write(deadline, [&] {
      const auto id = id_of(event);
      return insert_once(connection_, event, id, key, [&] {
        return insert_events(connection_, {&event, 1}, {&id, 1});
      });
    });
  }

  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) override {
    return connection_.write(deadline, [&]() -> Result<LeaseGrant> {
      if (auto asked = hold_session(); !asked) return asked.error();
      const bool held = held_session_ == connection_.session();
      return take_leases(connection_, request, held ? std::optional(session_lock_) : std::nullopt);
    });
  }

  Result<void> release(std::span<const Lease> leases, Deadline deadline) override {
    if (leases.empty()) return {};
    return connection_.write(deadline, [&] { return release_leases(connection_, leases); });
  }

  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) override {
    if (auto opened = connection_.ready(deadline); !opened) return opened.error();
    return ClaimReader(connection_, request, sweep_).read(deadline);
  }

  Result<DueBatch> due(const DueRequest& request, Deadline deadline) override {
    if (auto opened = connection_.ready(deadline); !opened) return opened.error();
    return read_due(connection_, request);
  }

  Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) override {
    if (auto opened = connection_.ready(deadline); !opened) return opened.error();
    return read_held(connection_, request);
  }

  Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) override {
    return connection_.write(deadline, [&] { return apply_settle(connection_, request); });
  }

 private:
  /// Others see at once when this session is gone. While an earlier one of ours is not gone yet,
  /// the lease goes by its time alone.
  Result<void> hold_session() {
    if (held_session_ == connection_.session()) return {};
    auto lock = connection_.query(sql::store_mariadb::partitions_hold_session);
    lock.bind(":session_lock", std::int64_t{session_lock_});
    if (lock.next() && lock.integer(0) == 1) held_session_ = connection_.session();
    return lock.result();
  }

  EventId id_of(const NewEvent& event) { return event.id ? *event.id : EventId(ids_.next()); }

  MariadbConnection connection_;
  std::unique_ptr<Random> random_;
  std::int32_t session_lock_;
  Sweep sweep_;
  std::int64_t held_session_ = 0;  ///< the one that holds the lock
  IdGenerator ids_{system_clock(), *random_};
};

}  // namespace
}  // namespace store::mariadb

std::unique_ptr<Store> make_mariadb_store(MariadbOptions options) {
  return std::make_unique<store::mariadb::MariadbStore>(std::move(options));
}

}  // namespace postrider
