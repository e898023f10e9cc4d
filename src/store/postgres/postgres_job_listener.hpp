#pragma once
/// \file
/// Hears of new jobs: LISTEN on a connection of its own, waited for with poll.
///
/// NOTIFY reaches only who listens at that moment. So whenever it has begun to listen, the first
/// time or after a lost connection, `await` ends at once: the caller looks for what it has missed.
///
/// Thread safety: one thread at a time, except `wake`.

#include <string>
#include <vector>

#include <postrider/clock.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

class PostgresJobListener {
 public:
  explicit PostgresJobListener(PostgresOptions options);
  ~PostgresJobListener();
  PostgresJobListener(const PostgresJobListener&) = delete;
  PostgresJobListener& operator=(const PostgresJobListener&) = delete;

  /// See `JobStore::await_work`.
  Result<void> await(const std::vector<std::string>& queues, Deadline deadline);
  /// Thread safety: any thread.
  void wake() noexcept;

 private:
  Result<void> listen(Deadline deadline);
  /// Whether somebody has called `wake` since the last time.
  [[nodiscard]] bool take_wake() noexcept;

  PostgresConnection connection_;
  bool listening_ = false;
  int wake_;  // an eventfd
};

}  // namespace postrider::store::postgres
