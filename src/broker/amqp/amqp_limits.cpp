#include "broker/amqp/amqp_limits.hpp"

#include <string_view>

#include <fmt/format.h>

namespace postrider::amqp {
namespace {

constexpr milliseconds least_heartbeat{1'000};
constexpr milliseconds most_heartbeat{600'000};
constexpr milliseconds least_connect_timeout{1};
constexpr milliseconds most_connect_timeout{600'000};

void check_time(std::string_view name, milliseconds value, milliseconds least, milliseconds most,
                std::vector<std::string>& faults) {
  if (value >= least && value <= most) return;
  faults.push_back(fmt::format("{} is {} ms; set {} to {} ms.", name, value.count(), least.count(),
                               most.count()));
}

}  // namespace

void check_tls_files(const TlsFiles& files, bool tls, std::vector<std::string>& faults) {
  const bool certificate = !files.certificate_file.empty();
  if (certificate != !files.key_file.empty()) {
    faults.emplace_back("certificate_file and key_file belong together; set both or neither.");
  }
  if (!tls && (certificate || !files.ca_file.empty())) {
    faults.emplace_back(
        "Certificates are given but the URL asks for no TLS; write amqps:// or remove them.");
  }
}

void check_times(milliseconds heartbeat, milliseconds connect_timeout,
                 std::vector<std::string>& faults) {
  check_time("heartbeat", heartbeat, least_heartbeat, most_heartbeat, faults);
  check_time("connect_timeout", connect_timeout, least_connect_timeout, most_connect_timeout,
             faults);
}

}  // namespace postrider::amqp
