#pragma once
/// \file
/// For applications on PostgreSQL with libpqxx (6.4): events and receipts inside a transaction of
/// their own.
///
///     postrider::PqxxOutbox outbox;
///     pqxx::work transaction(connection);
///     … INSERT INTO orders …
///     const auto id = outbox.add(transaction, event);
///     if (id) transaction.commit();
///
/// Header-only and compiled by its user alone, so that Postrider itself does not depend on libpqxx.
/// Exceptions: what libpqxx throws is turned into an `Error`.
/// Thread safety: as `PostgresOutbox`.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include <postrider/libpq.hpp>
#include <postrider/outbox.hpp>
#include <postrider/postgres_driver.hpp>

namespace postrider {

/// A transaction of libpqxx as a driver. Ownership: borrows the transaction.
class PqxxDriver final : public PostgresDriver {
 public:
  explicit PqxxDriver(pqxx::transaction_base& transaction) : transaction_(&transaction) {}

  Result<void> check_transaction() override {
    if (dynamic_cast<pqxx::nontransaction*>(transaction_) != nullptr) {
      return Error{ErrorCode::no_transaction, Disposition::reject,
                   "a pqxx::nontransaction commits each statement by itself. Use pqxx::work.",
                   "postgres", ""};
    }
    // Asked by `exec`, which refuses a transaction that has ended: `exec_params` of libpqxx 6.4
    // does not, and would commit the event by itself.
    return guarded<void>("client_encoding", [&]() -> Result<void> {
      const auto encoding = transaction_->exec("SELECT current_setting('client_encoding')");
      return check_client_encoding(encoding.at(0).at(0).c_str());
    });
  }

  Result<PostgresAnswer> run(const PostgresCall& call) override {
    return guarded<PostgresAnswer>(call.name, [&]() -> Result<PostgresAnswer> {
      std::vector<pqxx::binarystring> values;
      for (const auto& parameter : call.parameters) {
        values.emplace_back(parameter.data(), parameter.size());
      }
      return read(transaction_->exec_params(call.sql, pqxx::prepare::make_dynamic_params(values)));
    });
  }

 private:
  static PostgresAnswer read(const pqxx::result& result) {
    PostgresAnswer answer;
    answer.affected = static_cast<std::int64_t>(result.affected_rows());
    if (result.empty()) return answer;
    for (const auto& field : result.front()) {
      if (field.is_null()) {
        answer.first_row.emplace_back(std::nullopt);
      } else {
        answer.first_row.emplace_back(std::string(field.c_str(), field.size()));
      }
    }
    return answer;
  }

  /// The words of an exception are not shown: they quote the server, which may quote values.
  template <class T, class Call>
  static Result<T> guarded(std::string_view doing, Call call) {
    try {
      return call();
    } catch (const pqxx::sql_error& error) {
      return postgres_error(error.sqlstate(), "", "", doing);
    } catch (const pqxx::broken_connection&) {
      return postgres_error("", "", "", doing);
    } catch (const pqxx::failure&) {
      return postgres_error("XX000", "", "", doing);
    } catch (const pqxx::usage_error&) {
      return Error{ErrorCode::no_transaction, Disposition::reject,
                   "libpqxx does not take statements in this transaction now: it has ended, or "
                   "something else of it is still open. Use a fresh one.",
                   "postgres", ""};
    }
  }

  pqxx::transaction_base* transaction_;
};

/// Writes events. The contract stands at `Outbox`, the errors at `PostgresOutbox`. Cost: one more
/// round trip than that.
class PqxxOutbox {
 public:
  explicit PqxxOutbox(OutboxOptions options = {}) : outbox_(std::move(options)) {}

  Result<EventId> add(pqxx::transaction_base& transaction, const NewEvent& event) const {
    PqxxDriver driver(transaction);
    return outbox_.add(driver, event);
  }
  Result<EventId> add(pqxx::transaction_base& transaction, const NewEvent& event,
                      const IdempotencyKey& key) const {
    PqxxDriver driver(transaction);
    return outbox_.add(driver, event, key);
  }
  Result<std::vector<EventId>> add_all(pqxx::transaction_base& transaction,
                                       std::span<const NewEvent> events) const {
    PqxxDriver driver(transaction);
    return outbox_.add_all(driver, events);
  }

 private:
  PostgresOutbox outbox_;
};

/// Receipts of messages. The contract stands in postrider/inbox.hpp.
class PqxxInbox {
 public:
  explicit PqxxInbox(SchemaNames names = {}) : inbox_(std::move(names)) {}

  Result<InboxResult> claim(pqxx::transaction_base& transaction,
                            const InboxMessage& message) const {
    PqxxDriver driver(transaction);
    return inbox_.claim(driver, message);
  }

  template <class Handler>
  Result<InboxResult> process(pqxx::transaction_base& transaction, const InboxMessage& message,
                              Handler&& handler) const {
    return process_in(*this, transaction, message, std::forward<Handler>(handler));
  }

 private:
  PostgresInbox inbox_;
};

}  // namespace postrider
