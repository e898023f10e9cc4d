#pragma once
/// \file
/// The limits that relay and worker are compared with: what libpq and rabbitmq-c can do by
/// themselves.

#include <cstdint>
#include <string>

namespace postrider::bench {

/// Reads `events` rows in order, a thousand at a time, touches each field, and marks each batch in
/// a transaction of its own. Binary, prepared, one connection. Returns the seconds from connecting
/// to the last commit; throws what the server refuses, and when there are fewer rows.
[[nodiscard]] double read_and_mark(const std::string& conninfo, std::int64_t events);

/// Does the row changes of `jobs` due jobs that complete, on so many connections at once: each
/// takes a batch with its events in one statement (SKIP LOCKED), touches each field, and completes
/// the batch in another, both committed at once. Binary, prepared. Returns the seconds from
/// connecting to the last commit; throws what the server refuses, and when there are more or fewer.
[[nodiscard]] double take_and_complete(const std::string& conninfo, std::int64_t jobs,
                                       std::int64_t connections, std::int64_t batch);

/// Publishes `messages` from memory into `queue` with confirms, persistent, at most `window`
/// unconfirmed. Each has the properties and headers of a message of the relay. Returns the seconds
/// from connecting to the last confirm; throws what the broker refuses.
[[nodiscard]] double publish(int port, const std::string& queue, std::int64_t messages,
                             std::int64_t window);

}  // namespace postrider::bench
