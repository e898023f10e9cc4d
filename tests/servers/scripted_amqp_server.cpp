#include "servers/scripted_amqp_server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "servers/loopback.hpp"

namespace postrider::testing {
namespace {

constexpr int method_frame = 1;
constexpr int header_frame = 2;
constexpr int body_frame = 3;
constexpr char frame_end = '\xCE';

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>((value >> static_cast<unsigned>(shift)) & 0xFFU));
  }
  return text;
}

std::uint64_t number_at(const std::string& text, std::size_t begin, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = begin; i < begin + bytes && i < text.size(); ++i) {
    value = (value << 8U) | static_cast<unsigned char>(text[i]);
  }
  return value;
}

std::string short_string(std::string_view text) {
  return number(text.size(), 1) + std::string(text);
}
std::string long_string(std::string_view text) {
  return number(text.size(), 4) + std::string(text);
}

std::string frame(int type, int channel, const std::string& payload) {
  return number(static_cast<std::uint64_t>(type), 1) +
         number(static_cast<std::uint64_t>(channel), 2) + number(payload.size(), 4) + payload +
         frame_end;
}

std::string method(int channel, std::uint64_t class_id, std::uint64_t method_id,
                   const std::string& arguments = "") {
  return frame(method_frame, channel, number(class_id, 2) + number(method_id, 2) + arguments);
}

std::string close_arguments(std::uint16_t code) {
  return number(code, 2) + short_string("as scripted") + number(0, 4);
}

}  // namespace

namespace amqp_frames {

std::string ack(std::uint64_t tag, bool multiple) {
  return method(1, 60, 80, number(tag, 8) + number(multiple ? 1 : 0, 1));
}
std::string nack(std::uint64_t tag, bool multiple) {
  return method(1, 60, 120, number(tag, 8) + number(multiple ? 1 : 0, 1));
}
std::string channel_close(std::uint16_t code) {
  return method(1, 20, 40, close_arguments(code));
}
std::string connection_close(std::uint16_t code) {
  return method(0, 10, 50, close_arguments(code));
}
std::string blocked() {
  return method(0, 10, 60, short_string("as scripted"));
}
std::string unblocked() {
  return method(0, 10, 61);
}
std::string returned(const std::string& message_id) {
  constexpr std::uint64_t only_message_id = 1U << 7U;
  return method(
             1, 60, 50,
             number(312, 2) + short_string("NO_ROUTE") + short_string("") + short_string("key")) +
         frame(header_frame, 1,
               number(60, 2) + number(0, 2) + number(0, 8) + number(only_message_id, 2) +
                   short_string(message_id));
}

}  // namespace amqp_frames

ScriptedAmqpServer::ScriptedAmqpServer(Script script)
    : script_(std::move(script)), listener_(listen_on_loopback(port_)) {
  if (listener_ < 0) throw std::runtime_error("no free port on loopback");
  thread_ = std::thread([this] { run(); });
}

ScriptedAmqpServer::~ScriptedAmqpServer() {
  ending_ = true;
  shutdown(listener_, SHUT_RDWR);
  if (client_ >= 0) shutdown(client_, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

void ScriptedAmqpServer::run() {
  while (!ending_) {
    client_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client_ < 0) return;
    messages_ = 0;
    ++connections_;
    if (!ending_) serve();
    const std::lock_guard lock(sending_);
    close(client_.exchange(-1));
  }
}

void ScriptedAmqpServer::serve() {
  std::string greeting;
  if (!read_exactly(greeting, 8)) return;
  send(method(
      0, 10, 10,
      number(0, 1) + number(9, 1) + number(0, 4) + long_string("PLAIN") + long_string("en_US")));
  for (Frame frame; read_frame(frame);) {
    const auto bytes = answer(frame);
    if (!bytes.empty()) send(bytes);
  }
}

bool ScriptedAmqpServer::read_exactly(std::string& into, std::size_t bytes) {
  into.assign(bytes, '\0');
  return bytes == 0 ||
         recv(client_, into.data(), bytes, MSG_WAITALL) == static_cast<std::ptrdiff_t>(bytes);
}

bool ScriptedAmqpServer::read_frame(Frame& frame) {
  std::string head;
  if (!read_exactly(head, 7)) return false;
  frame.type = head[0];
  frame.channel = static_cast<std::uint16_t>(number_at(head, 1, 2));
  if (!read_exactly(frame.payload, number_at(head, 3, 4) + 1)) return false;
  frame.payload.pop_back();
  return true;
}

std::string ScriptedAmqpServer::answer(const Frame& frame) {
  switch (frame.type) {
    case method_frame:
      return answer_method(frame);
    case header_frame:
      body_left_ = number_at(frame.payload, 4, 8);
      body_.clear();
      return body_left_ == 0 ? message_complete() : "";
    case body_frame:
      body_left_ -= frame.payload.size();
      body_ += frame.payload;
      return body_left_ == 0 ? message_complete() : "";
    default:
      return "";
  }
}

std::string ScriptedAmqpServer::message_complete() {
  return script_(connections_, ++messages_);
}

std::string ScriptedAmqpServer::answer_method(const Frame& frame) {
  switch (number_at(frame.payload, 0, 4)) {
    case 0x000A000B:
      return method(0, 10, 30, number(16, 2) + number(131072, 4) + number(0, 2));
    case 0x000A0028:
      return method(0, 10, 41, short_string(""));
    case 0x000A0032:
      return method(0, 10, 51);
    case 0x0014000A:
      messages_ = 0;
      return method(1, 20, 11, long_string(""));
    case 0x0055000A:
      return method(1, 85, 11);
    case 0x0028000A:
      return method(1, 40, 11);
    default:
      return "";  // tune-ok, publish, close-ok: nothing is expected.
  }
}

void ScriptedAmqpServer::send(const std::string& bytes) {
  const std::lock_guard lock(sending_);
  if (client_ >= 0) (void)::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

}  // namespace postrider::testing
