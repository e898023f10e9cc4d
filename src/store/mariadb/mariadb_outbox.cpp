#include <utility>

#include <postrider/mariadb.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/common/sql_names.hpp"
#include "store/mariadb/mariadb_borrowed.hpp"
#include "store/mariadb/mariadb_keys.hpp"
#include "store/mariadb/mariadb_writing.hpp"

namespace postrider {

using store::mariadb::BorrowedMariadb;
using store::mariadb::insert_events;

class MariadbOutbox::Impl {
 public:
  explicit Impl(OutboxOptions options)
      : options_(std::move(options)),
        names_checked_(store::validate(options_.names, store::SchemaSupport::none)) {}

  Result<EventId> add(st_mysql* database, const NewEvent& event) {
    if (auto checked = check_values({&event, 1}); !checked) return checked.error();
    BorrowedMariadb connection(database, options_.names);
    if (auto checked = connection.check_transaction(); !checked) return checked.error();
    const auto id = ids_.id_of(event);
    auto written = insert_events(connection, {&event, 1}, {&id, 1});
    if (!written) return written.error();
    return id;
  }

  Result<EventId> add(st_mysql* database, const NewEvent& event, const IdempotencyKey& key) {
    if (auto checked = check_values({&event, 1}); !checked) return checked.error();
    if (auto checked = check(key); !checked) return checked.error();
    BorrowedMariadb connection(database, options_.names);
    if (auto checked = connection.check_transaction(); !checked) return checked.error();
    return connection.all_or_nothing([&] {
      const auto id = ids_.id_of(event);
      return store::mariadb::insert_once(connection, event, id, key, [&] {
        return insert_events(connection, {&event, 1}, {&id, 1});
      });
    });
  }

  Result<std::vector<EventId>> add_all(st_mysql* database, std::span<const NewEvent> events) {
    if (auto checked = check_values(events); !checked) return checked.error();
    BorrowedMariadb connection(database, options_.names);
    if (auto checked = connection.check_transaction(); !checked) return checked.error();
    return connection.all_or_nothing([&]() -> Result<std::vector<EventId>> {
      std::vector<EventId> ids;
      ids.reserve(events.size());
      for (const auto& event : events)
        ids.push_back(ids_.id_of(event));
      if (auto written = insert_events(connection, events, ids); !written) return written.error();
      return ids;
    });
  }

 private:
  [[nodiscard]] Result<void> check_values(std::span<const NewEvent> events) const {
    if (!names_checked_) return names_checked_;
    for (const auto& event : events) {
      if (auto checked = check(event, options_.limits); !checked) return checked;
    }
    return {};
  }

  OutboxOptions options_;
  Result<void> names_checked_;
  store::OutboxIds ids_;
};

MariadbOutbox::MariadbOutbox(OutboxOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
MariadbOutbox::~MariadbOutbox() = default;
MariadbOutbox::MariadbOutbox(MariadbOutbox&&) noexcept = default;
MariadbOutbox& MariadbOutbox::operator=(MariadbOutbox&&) noexcept = default;

Result<EventId> MariadbOutbox::add(st_mysql* connection, const NewEvent& event) const {
  return impl_->add(connection, event);
}

Result<EventId> MariadbOutbox::add(st_mysql* connection, const NewEvent& event,
                                   const IdempotencyKey& key) const {
  return impl_->add(connection, event, key);
}

Result<std::vector<EventId>> MariadbOutbox::add_all(st_mysql* connection,
                                                    std::span<const NewEvent> events) const {
  return impl_->add_all(connection, events);
}

}  // namespace postrider
