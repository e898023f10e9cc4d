#pragma once
/// \file
/// What `transaction(handle, work)` and `unit_of_work(handle, work)` of every driver have in
/// common.
///
/// `work` may return nothing, a value, or a `Result`. A value commits and comes back; an error
/// rolls back and comes back; an exception, of whatever type, rolls back and goes on to the caller
/// as it is.

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include <postrider/result.hpp>

namespace postrider {

/// The `Result` in which what `work` returned comes back.
template <class T>
struct AsResult {
  static_assert(!std::same_as<T, Error>, "let the work return a Result, not a bare Error");
  using type = Result<T>;
};
template <class T>
struct AsResult<Result<T>> {
  using type = Result<T>;
};

template <class Work, class... Arguments>
using WorkResult =
    typename AsResult<std::remove_cvref_t<std::invoke_result_t<Work, Arguments...>>>::type;

/// Calls `work` and gives its answer as a `Result`.
template <class Work, class... Arguments>
WorkResult<Work, Arguments...> call_work(Work&& work, Arguments&&... arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<Work, Arguments...>>) {
    std::invoke(std::forward<Work>(work), std::forward<Arguments>(arguments)...);
    return {};
  } else {
    return std::invoke(std::forward<Work>(work), std::forward<Arguments>(arguments)...);
  }
}

/// Runs `work` in the transaction that was begun, which rolls back when it is left uncommitted.
template <class Transaction, class Work>
WorkResult<Work> complete_transaction(Result<Transaction> begun, Work&& work) {
  if (!begun) return std::move(begun).error();
  Transaction transaction = std::move(begun).value();
  auto result = call_work(std::forward<Work>(work));
  if (!result) return result;
  if (auto committed = transaction.commit(); !committed) return std::move(committed).error();
  return result;
}

/// The same with an outbox. A unit in which a call of the outbox failed is rolled back with that
/// error, also when `work` took no notice: its other rows must not commit without the event.
template <class Transaction, class Bound, class Work>
WorkResult<Work, Bound&> complete_unit(Result<Transaction> begun, Bound outbox, Work&& work) {
  return complete_transaction(std::move(begun), [&]() -> WorkResult<Work, Bound&> {
    auto result = call_work(std::forward<Work>(work), outbox);
    if (result.ok() && outbox.failure()) return *outbox.failure();
    return result;
  });
}

}  // namespace postrider
