#include "runners/scripted_endpoint.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runners/runner_kit.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {
namespace {

constexpr std::string_view length_name = "Content-Length: ";

/// Whether a request is whole.
bool is_whole(const std::string& request) {
  const auto end = request.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const auto length = request.find(length_name);
  const auto size = length < end ? std::stoul(request.substr(length + length_name.size())) : 0;
  return request.size() >= end + 4 + size;
}

std::string read_request(int client) {
  std::string request;
  std::array<char, 65'536> part{};
  while (!is_whole(request)) {
    const auto size = recv(client, part.data(), part.size(), 0);
    if (size <= 0) break;
    request.append(part.data(), static_cast<std::size_t>(size));
  }
  return request;
}

}  // namespace

ScriptedEndpoint::ScriptedEndpoint(std::vector<ScriptedAnswer> answers)
    : answers_(std::move(answers)),
      listener_(listen_on_loopback(port_)),
      thread_([this] { run(); }) {}

ScriptedEndpoint::~ScriptedEndpoint() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (client_ >= 0) shutdown(client_, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

std::string ScriptedEndpoint::url(const std::string& target) const {
  return "http://127.0.0.1:" + std::to_string(port_) + target;
}

template <class Condition>
bool ScriptedEndpoint::await(Condition condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, report_patience, condition);
}

std::vector<std::string> ScriptedEndpoint::requests(std::size_t count) {
  await([&] { return requests_.size() >= count; });
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool ScriptedEndpoint::clients_have_left(std::size_t count) {
  return await([&] { return left_ >= count; });
}

void ScriptedEndpoint::run() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    {
      const std::lock_guard lock(mutex_);
      client_ = client;
      if (stopping_) shutdown(client, SHUT_RDWR);
    }
    serve(client);
    const std::lock_guard lock(mutex_);
    client_ = -1;
    close(client);
  }
}

void ScriptedEndpoint::serve(int client) {
  auto request = read_request(client);
  ScriptedAnswer answer;
  {
    const std::lock_guard lock(mutex_);
    answer = answers_.at(std::min(requests_.size(), answers_.size() - 1));
    requests_.push_back(std::move(request));
  }
  changed_.notify_all();
  send(client, answer.bytes.data(), answer.bytes.size(), MSG_NOSIGNAL);
  if (!answer.keep_open) return;
  std::array<char, 1> more{};
  while (recv(client, more.data(), more.size(), 0) > 0)
    continue;
  {
    const std::lock_guard lock(mutex_);
    ++left_;
  }
  changed_.notify_all();
}

}  // namespace postrider::testing
