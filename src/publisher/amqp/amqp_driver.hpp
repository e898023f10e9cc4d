#pragma once
/// \file
/// The thread that owns the connection: opens it when asked, writes what is queued, hands on what
/// the broker answers, and keeps the heartbeat going while nothing else happens.

#include <memory>

#include "publisher/amqp/amqp_connection.hpp"
#include "publisher/amqp/mailbox.hpp"

namespace postrider::amqp {

/// Runs until the mailbox tells it to end. It shares everything that it uses, because a name
/// resolution cannot be broken: who closes the publisher then leaves it behind.
void drive(DriverNumber number, const ConnectionSettings& settings,
           const std::shared_ptr<Mailbox>& mailbox, const std::shared_ptr<SocketGuard>& guard);

}  // namespace postrider::amqp
