#pragma once
/// \file
/// What every option of a connection has to keep to, whether it publishes or reads.

#include <string>
#include <vector>

#include <postrider/clock.hpp>

#include "broker/amqp/amqp_tls.hpp"

namespace postrider::amqp {

/// Adds a sentence for each fault. `tls`: whether the URL asks for it.
void check_tls_files(const TlsFiles& files, bool tls, std::vector<std::string>& faults);
void check_times(milliseconds heartbeat, milliseconds connect_timeout,
                 std::vector<std::string>& faults);

}  // namespace postrider::amqp
