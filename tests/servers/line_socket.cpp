#include "servers/line_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace postrider::testing {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: how sockets are written in C
}

void send_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto sent = send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // Whoever asked has gone.
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// Up to the end of the stream, or of the first line.
std::string receive(int descriptor, bool one_line) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (!one_line || text.find('\n') == std::string::npos) {
    const auto received = recv(descriptor, buffer.data(), buffer.size(), 0);
    if (received <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(received));
  }
  return one_line ? text.substr(0, text.find('\n')) : text;
}

}  // namespace

std::string ask_line_socket(const std::string& path, const std::string& line) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of(path);
  if (connect(descriptor, as_sockaddr(address), sizeof address) != 0) {
    close(descriptor);
    throw std::runtime_error("nobody listens at " + path);
  }
  send_all(descriptor, line + "\n");
  const auto answer = receive(descriptor, false);
  close(descriptor);
  if (answer.starts_with("ok")) return answer.size() > 3 ? answer.substr(3) : "";
  throw std::runtime_error(line + ": " + (answer.empty() ? "no answer" : answer));
}

LineSocket::LineSocket(const std::string& path)
    : path_(path), descriptor_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  unlink(path.c_str());
  const auto address = address_of(path);
  if (bind(descriptor_, as_sockaddr(address), sizeof address) != 0 || listen(descriptor_, 8) != 0) {
    close(descriptor_);
    throw std::runtime_error("cannot listen at " + path);
  }
}

LineSocket::~LineSocket() {
  close(descriptor_);
  unlink(path_.c_str());
}

void LineSocket::answer(const std::function<std::string(const std::string& line)>& handler) const {
  const int descriptor = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) return;
  std::string answer;
  try {
    answer = "ok " + handler(receive(descriptor, true));
  } catch (const std::exception& failure) {
    answer = std::string("error ") + failure.what();
  }
  send_all(descriptor, answer);
  close(descriptor);
}

}  // namespace postrider::testing
