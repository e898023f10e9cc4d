#include "store/postgres/postgres_job_listener.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/assert.hpp"

namespace postrider::store::postgres {
namespace {

bool concerns(const std::vector<std::string>& said, const std::vector<std::string>& queues) {
  return std::any_of(said.begin(), said.end(), [&](const auto& queue) {
    return std::find(queues.begin(), queues.end(), queue) != queues.end();
  });
}

}  // namespace

PostgresJobListener::PostgresJobListener(PostgresOptions options)
    : connection_(std::move(options), Use::relay), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  POSTRIDER_ASSERT(wake_ >= 0);
}

PostgresJobListener::~PostgresJobListener() {
  ::close(wake_);
}

void PostgresJobListener::wake() noexcept {
  const std::uint64_t one = 1;
  // Full means that a wake waits already.
  static_cast<void>(::write(wake_, &one, sizeof one));
}

bool PostgresJobListener::take_wake() noexcept {
  std::uint64_t times = 0;
  return ::read(wake_, &times, sizeof times) == sizeof times;
}

Result<void> PostgresJobListener::listen(Deadline deadline) {
  if (auto begun = connection_.begin(deadline); !begun) return begun;
  const auto channel = connection_.run(std::vector<Call>{{"jobs_channel"}}, deadline);
  if (!channel) return channel.error();
  if (channel->at(0).empty()) return {};
  // A name that we made: letters, digits and '_'.
  const auto sql = "LISTEN " + std::string(channel->at(0).text(0, 0));
  if (auto told = connection_.run_script(sql, "LISTEN", deadline); !told) return told;
  if (auto committed = connection_.commit(deadline); !committed) return committed;
  listening_ = true;
  return {};
}

Result<void> PostgresJobListener::await(const std::vector<std::string>& queues, Deadline deadline) {
  if (take_wake() || deadline.passed()) return {};
  if (!listening_) {
    const auto begun = listen(deadline);
    if (!begun && begun.error().code != ErrorCode::timeout) return begun;
    return {};
  }
  for (;;) {
    const auto said = connection_.await_notification(wake_, deadline);
    if (!said) {
      listening_ = false;
      return listen(deadline);
    }
    if (take_wake() || concerns(*said, queues) || deadline.passed()) return {};
  }
}

}  // namespace postrider::store::postgres
