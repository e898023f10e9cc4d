#pragma once
/// \file
/// Runs jobs in threads of this process: the cheapest runner, for C++ handlers that are trusted not
/// to crash.
///
/// A crash of a handler ends the process with all its jobs; other workers notice the death by its
/// missing heartbeats. A handler that does not stop cannot be killed: `close` waits for it.

#include <cstddef>
#include <memory>

#include <postrider/attempt.hpp>
#include <postrider/handlers.hpp>
#include <postrider/job_runner.hpp>
#include <postrider/result.hpp>

namespace postrider {

inline constexpr std::size_t most_runner_threads = 1000;

/// Ownership: keeps a copy of the handlers, whose services stay borrowed; borrows the desk, which
///   must outlive the runner.
/// Requires: 1 to `most_runner_threads` threads.
/// Errors: `config_invalid` with every fault of the handlers, and when none is bound.
[[nodiscard]] Result<std::unique_ptr<JobRunner>> make_thread_runner(Handlers handlers,
                                                                    std::size_t threads,
                                                                    AttemptDesk& desk);

}  // namespace postrider
