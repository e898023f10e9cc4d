#include "servers/loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace postrider::testing {
namespace {

// A path to a socket has at most 107 bytes, and the name that PostgreSQL gives to its own takes 15.
constexpr std::size_t most_path_bytes = 92;

sockaddr_in loopback_address(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* as_sockaddr(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: how sockets are written in C
}

}  // namespace

int hold_port(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = loopback_address(port);
  if (bind(descriptor, as_sockaddr(address), sizeof address) == 0) return descriptor;
  close(descriptor);
  return -1;
}

int listen_on_loopback(int& port) {
  const int descriptor = hold_port(port);
  if (descriptor < 0) return -1;
  if (listen(descriptor, 64) != 0) {
    close(descriptor);
    return -1;
  }
  auto address = loopback_address(port);
  socklen_t size = sizeof address;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);  // NOLINT: as above
  port = ntohs(address.sin_port);
  return descriptor;
}

int connect_to_loopback(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback_address(port);
  if (connect(descriptor, as_sockaddr(address), sizeof address) == 0) return descriptor;
  close(descriptor);
  return -1;
}

int free_port() {
  int port = 0;
  const int descriptor = listen_on_loopback(port);
  if (descriptor < 0) throw std::runtime_error("no free port on loopback");
  close(descriptor);
  return port;
}

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  const auto name = "postrider-" + std::string(purpose) + "-XXXXXX";
  path_ = (std::filesystem::temp_directory_path() / name).string();
  if (path_.size() > most_path_bytes) throw std::runtime_error("TMPDIR is too long for sockets");
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

std::string TemporaryFolder::write(std::string_view name, std::string_view content) const {
  const auto path = file(name);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  return path;
}

}  // namespace postrider::testing
