#include "servers/http_endpoint.hpp"

#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "servers/loopback.hpp"

namespace postrider::testing {
namespace {

constexpr std::chrono::seconds request_patience{60};
constexpr std::string_view head_end = "\r\n\r\n";

void send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

SeenRequest parse_head(std::string_view head) {
  SeenRequest request;
  while (!head.empty()) {
    const auto line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    const auto colon = line.find(':');
    if (request.line.empty()) {
      request.line = line;
    } else if (colon != std::string_view::npos) {
      auto value = line.substr(colon + 1);
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      request.headers.emplace_back(line.substr(0, colon), value);
    }
  }
  return request;
}

/// Reads requests off one connection; what comes too early stays for the next.
class RequestReader {
 public:
  explicit RequestReader(int descriptor) : descriptor_(descriptor) {}

  /// False when the client has left.
  bool read(SeenRequest& request) {
    while (buffer_.find(head_end) == std::string::npos) {
      if (!receive()) return false;
    }
    const auto head = buffer_.find(head_end);
    request = parse_head(std::string_view(buffer_).substr(0, head));
    buffer_.erase(0, head + head_end.size());
    const auto length = request.header("Content-Length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (buffer_.size() < size) {
      if (!receive()) return false;
    }
    request.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }

 private:
  bool receive() {
    std::array<char, 65'536> part{};
    const auto size = recv(descriptor_, part.data(), part.size(), 0);
    if (size <= 0) return false;
    buffer_.append(part.data(), static_cast<std::size_t>(size));
    return true;
  }

  const int descriptor_;
  std::string buffer_;
};

bool has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

std::string bytes_of(const Reply& reply) {
  auto bytes = "HTTP/1.1 " + std::to_string(reply.status) + " Said\r\n";
  for (const auto& [name, value] : reply.headers)
    bytes += name + ": " + value + "\r\n";
  if (has_body(reply.status)) {
    bytes += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  return bytes + "\r\n" + reply.body;
}

}  // namespace

std::string SeenRequest::header(const std::string& name) const {
  for (const auto& [known, value] : headers) {
    if (strcasecmp(known.c_str(), name.c_str()) == 0) return value;
  }
  return {};
}

HttpEndpoint::HttpEndpoint(Script script)
    : script_(std::move(script)),
      listener_(listen_on_loopback(port_)),
      thread_([this] { run(); }) {}

HttpEndpoint::HttpEndpoint(std::vector<Reply> replies)
    : HttpEndpoint([replies = std::move(replies)](const SeenRequest&, std::size_t before) {
        return replies.at(std::min(before, replies.size() - 1));
      }) {}

HttpEndpoint::~HttpEndpoint() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& connection : connections_)
      shutdown(connection.descriptor, SHUT_RDWR);
  }
  changed_.notify_all();
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  for (auto& connection : connections_) {
    connection.thread.join();
    close(connection.descriptor);
  }
  close(listener_);
}

std::string HttpEndpoint::url(const std::string& target) const {
  return "http://127.0.0.1:" + std::to_string(port_) + target;
}

std::vector<SeenRequest> HttpEndpoint::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::vector<SeenRequest> HttpEndpoint::await_requests(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, request_patience, [&] { return requests_.size() >= count; });
  return requests_;
}

int HttpEndpoint::connections() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(connections_.size());
}

std::size_t HttpEndpoint::most_at_once() {
  const std::lock_guard lock(mutex_);
  return most_at_once_;
}

void HttpEndpoint::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

void HttpEndpoint::run() {
  for (;;) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) return;
    const std::lock_guard lock(mutex_);
    auto& connection = connections_.emplace_back();
    connection.descriptor = descriptor;
    connection.number = static_cast<int>(connections_.size());
    if (stopping_) shutdown(descriptor, SHUT_RDWR);
    connection.thread =
        std::thread([this, descriptor, number = connection.number] { serve(descriptor, number); });
  }
}

/// The descriptor stays open until the end, so that no other connection gets its number.
void HttpEndpoint::serve(int descriptor, int number) {
  RequestReader reader(descriptor);
  for (SeenRequest request; reader.read(request);) {
    request.connection = number;
    if (!answer(descriptor, request)) break;
  }
  shutdown(descriptor, SHUT_RDWR);
}

/// False when the connection is to end.
bool HttpEndpoint::answer(int descriptor, const SeenRequest& request) {
  std::size_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    before = requests_.size();
    requests_.push_back(request);
    most_at_once_ = std::max(most_at_once_, ++at_once_);
  }
  changed_.notify_all();
  const auto reply = script_(request, before);
  const bool wanted = !reply.hold || wait_for_release(descriptor);
  {  // Before the client can know, so that it cannot be counted twice.
    const std::lock_guard lock(mutex_);
    --at_once_;
  }
  if (!wanted || reply.cut) return false;
  send_all(descriptor, reply.raw.empty() ? bytes_of(reply) : reply.raw);
  std::array<char, 1> more{};
  while (reply.stay && recv(descriptor, more.data(), more.size(), 0) > 0)
    continue;
  return reply.raw.empty() && !reply.close;
}

/// False when the client has left in the meantime, or the test is over.
bool HttpEndpoint::wait_for_release(int descriptor) {
  constexpr std::chrono::milliseconds look_again{20};
  std::unique_lock lock(mutex_);
  for (;;) {
    if (changed_.wait_for(lock, look_again, [&] { return released_ || stopping_; })) {
      return !stopping_;
    }
    std::array<char, 1> byte{};
    if (recv(descriptor, byte.data(), byte.size(), MSG_PEEK | MSG_DONTWAIT) == 0) return false;
  }
}

}  // namespace postrider::testing
