#include <utility>

#include <postrider/content_hash.hpp>
#include <postrider/libpq.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/common/sql_names.hpp"
#include "store/postgres/libpq_driver.hpp"
#include "store/postgres/postgres_event_columns.hpp"
#include "store_postgres_sql.hpp"

namespace postrider {
namespace {

namespace statements = sql::store_postgres;
using store::postgres::LibpqDriver;
using store::postgres::NewEventColumns;
using store::postgres::Parameters;

std::string_view bytes_of(const ContentHash& hash) {
  return {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()};
}

std::vector<std::string> values_of(const Parameters& parameters) {
  const auto raw = parameters.raw();
  std::vector<std::string> values;
  for (std::size_t i = 0; i < raw.values.size(); ++i) {
    values.emplace_back(raw.values[i], static_cast<std::size_t>(raw.lengths[i]));
  }
  return values;
}

}  // namespace

class PostgresOutbox::Impl {
 public:
  explicit Impl(OutboxOptions options)
      : options_(std::move(options)),
        names_checked_(store::validate(options_.names, store::SchemaSupport::optional)) {}

  Result<EventId> add(PostgresDriver& driver, const NewEvent& event) {
    const auto ids = add_all(driver, {&event, 1});
    if (!ids) return ids.error();
    return ids->front();
  }

  Result<EventId> add(PostgresDriver& driver, const NewEvent& event, const IdempotencyKey& key) {
    if (auto checked = check_values({&event, 1}); !checked) return checked.error();
    if (auto checked = check(key); !checked) return checked.error();
    if (auto checked = driver.check_transaction(); !checked) return checked.error();

    const auto id = ids_.id_of(event);
    const auto hash = content_hash(event);
    Parameters claim;
    claim.text(key.scope).text(key.key).uuid(id.value()).bytes(bytes_of(hash));
    const auto claimed = driver.run(call("keys_claim", statements::keys_claim, claim));
    if (!claimed) return claimed.error();
    if (claimed->affected == 0) return earlier_id(driver, key, hash);
    if (auto written = insert(driver, {&event, 1}, {&id, 1}); !written) return written.error();
    return id;
  }

  Result<std::vector<EventId>> add_all(PostgresDriver& driver, std::span<const NewEvent> events) {
    if (auto checked = check_values(events); !checked) return checked.error();
    if (auto checked = driver.check_transaction(); !checked) return checked.error();
    std::vector<EventId> ids;
    for (const auto& event : events)
      ids.push_back(ids_.id_of(event));
    if (ids.empty()) return ids;
    if (auto written = insert(driver, events, ids); !written) return written.error();
    return ids;
  }

 private:
  [[nodiscard]] Result<void> check_values(std::span<const NewEvent> events) const {
    if (!names_checked_) return names_checked_;
    for (const auto& event : events) {
      if (auto checked = check(event, options_.limits); !checked) return checked;
    }
    return {};
  }

  [[nodiscard]] PostgresCall call(std::string_view name, std::string_view statement,
                                  const Parameters& parameters) const {
    return {name, store::substitute_names(statement, options_.names), values_of(parameters)};
  }

  Result<void> insert(PostgresDriver& driver, std::span<const NewEvent> events,
                      std::span<const EventId> ids) {
    NewEventColumns columns;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (auto added = columns.add(events[i], ids[i]); !added) return added;
    }
    if (columns.aggregates() > 1) {
      const auto locked = driver.run(call(
          "events_lock_aggregates", statements::events_lock_aggregates, columns.lock_parameters()));
      if (!locked) return locked.error();
    }
    const auto written =
        driver.run(call("events_insert", statements::events_insert, columns.insert_parameters()));
    if (!written) return written.error();
    if (written->affected == static_cast<std::int64_t>(events.size())) return {};
    return store::nothing_written("postgres");
  }

  Result<EventId> earlier_id(PostgresDriver& driver, const IdempotencyKey& key,
                             const ContentHash& hash) {
    Parameters parameters;
    parameters.text(key.scope).text(key.key).bytes(bytes_of(hash));
    const auto found = driver.run(call("keys_get", statements::keys_get, parameters));
    if (!found) return found.error();
    if (found->first_row.empty()) return store::key_vanished("postgres");
    if (found->first_row[1] != "same") return store::key_was_reused("postgres");
    const auto id = Uuid::parse(found->first_row[0].value_or(""));
    if (!id) return id.error();
    return EventId(*id);
  }

  OutboxOptions options_;
  Result<void> names_checked_;
  store::OutboxIds ids_;
};

PostgresOutbox::PostgresOutbox(OutboxOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
PostgresOutbox::~PostgresOutbox() = default;
PostgresOutbox::PostgresOutbox(PostgresOutbox&&) noexcept = default;
PostgresOutbox& PostgresOutbox::operator=(PostgresOutbox&&) noexcept = default;

Result<EventId> PostgresOutbox::add(pg_conn* connection, const NewEvent& event) const {
  LibpqDriver driver(connection);
  return impl_->add(driver, event);
}

Result<EventId> PostgresOutbox::add(pg_conn* connection, const NewEvent& event,
                                    const IdempotencyKey& key) const {
  LibpqDriver driver(connection);
  return impl_->add(driver, event, key);
}

Result<std::vector<EventId>> PostgresOutbox::add_all(pg_conn* connection,
                                                     std::span<const NewEvent> events) const {
  LibpqDriver driver(connection);
  return impl_->add_all(driver, events);
}

Result<EventId> PostgresOutbox::add(PostgresDriver& driver, const NewEvent& event) const {
  return impl_->add(driver, event);
}

Result<EventId> PostgresOutbox::add(PostgresDriver& driver, const NewEvent& event,
                                    const IdempotencyKey& key) const {
  return impl_->add(driver, event, key);
}

Result<std::vector<EventId>> PostgresOutbox::add_all(PostgresDriver& driver,
                                                     std::span<const NewEvent> events) const {
  return impl_->add_all(driver, events);
}

}  // namespace postrider
