#include "servers/pgbouncer.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

namespace postrider::testing {
namespace {

constexpr std::chrono::seconds start_patience{20};

/// Debian has it where the PATH of an ordinary user does not lead.
std::string program() {
  for (const std::string path : {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return find_program("pgbouncer");
}

bool listens(int port) {
  const int descriptor = connect_to_loopback(port);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

}  // namespace

std::string why_no_pgbouncer() {
  return program().empty() ? "pgbouncer is not installed" : "";
}

Pgbouncer::Pgbouncer(const Postgres& server, const std::string& mode) {
  // As root it refuses to run, and becomes the user that it is told.
  const std::string user = ::geteuid() == 0 ? "user = nobody\n" : "";
  const auto settings = folder_.write(
      "pgbouncer.ini",
      "[databases]\n* = host=127.0.0.1 user=postgres port=" + std::to_string(server.port()) +
          "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " + std::to_string(port_) +
          "\nunix_socket_dir =\nauth_type = any\n" + user + "pool_mode = " + mode +
          "\nignore_startup_parameters = extra_float_digits\n");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  process_.emplace(std::vector<std::string>{program(), settings},
                   Environment{{"PATH", "/usr/bin:/bin"}}, folder_.file("log"));
  const auto until = std::chrono::steady_clock::now() + start_patience;
  while (!listens(port_)) {
    if (std::chrono::steady_clock::now() > until) {
      throw std::runtime_error("pgbouncer does not listen");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // Polls another process.
  }
}

}  // namespace postrider::testing
