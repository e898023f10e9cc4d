#include "servers/chaos_proxy.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "servers/line_socket.hpp"

namespace postrider::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// More than any socket buffer, so that a delayed stream is not also a throttled one.
constexpr std::size_t most_waiting_bytes = 64U << 20U;

enum class Mode : std::uint8_t { pass, delay, hold, black_hole, drop, drop_after, cut_after };

struct Behaviour {
  Mode mode = Mode::pass;
  std::uint64_t number = 0;
};

Behaviour parse_behaviour(const std::string& word, std::uint64_t number) {
  if (word == "pass" || word == "release") return {Mode::pass, 0};
  if (word == "delay") return {Mode::delay, number};
  if (word == "hold") return {Mode::hold, 0};
  if (word == "black-hole") return {Mode::black_hole, 0};
  if (word == "drop") return {Mode::drop, 0};
  if (word == "drop-after") return {Mode::drop_after, number};
  if (word == "cut-after") return {Mode::cut_after, number};
  throw std::runtime_error("no such command");
}

void close_with_reset(int descriptor) {
  const linger at_once{1, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(descriptor);
}

/// One direction of one connection: what was read from `source` and waits to be written to `sink`.
class Direction {
 public:
  Direction(int source, int sink, Behaviour behaviour)
      : source_(source), sink_(sink), behaviour_(behaviour) {}

  void behave(Behaviour behaviour) { behaviour_ = behaviour; }
  [[nodiscard]] int source() const { return source_; }
  [[nodiscard]] int sink() const { return sink_; }
  /// The whole connection has to go.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool wants_to_read() const {
    return !ended_ && behaviour_.mode != Mode::black_hole && waiting_bytes_ < most_waiting_bytes;
  }
  [[nodiscard]] bool wants_to_write() const {
    return !finished_ && (due(Clock::now()) || (ended_ && pieces_.empty()));
  }
  /// When the first delayed piece is due.
  [[nodiscard]] std::optional<Clock::time_point> next_due() const {
    if (pieces_.empty() || behaviour_.mode == Mode::hold) return std::nullopt;
    return pieces_.front().due;
  }

  void read() {
    std::array<char, 65536> buffer{};
    const auto received = recv(source_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (received > 0) return take({buffer.data(), static_cast<std::size_t>(received)});
    if (received == 0) ended_ = true;
    if (received < 0 && errno != EAGAIN && errno != EINTR) broken_ = true;
  }

  void write() {
    while (due(Clock::now())) {
      auto& text = pieces_.front().text;
      const auto sent = send(sink_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) {
        broken_ = errno != EAGAIN && errno != EINTR;
        return;
      }
      text.erase(0, static_cast<std::size_t>(sent));
      waiting_bytes_ -= static_cast<std::size_t>(sent);
      if (text.empty()) pieces_.pop_front();
    }
    if (pieces_.empty() && cut_when_written_) broken_ = true;
    if (pieces_.empty() && ended_) finish();
  }

  /// Hands on the end of the stream.
  void finish() {
    if (finished_) return;
    finished_ = true;
    ended_ = true;
    shutdown(sink_, SHUT_WR);
  }

 private:
  struct Piece {
    Clock::time_point due;
    std::string text;
  };

  [[nodiscard]] bool due(Clock::time_point now) const {
    return !pieces_.empty() && behaviour_.mode != Mode::hold && pieces_.front().due <= now;
  }

  void take(std::string text) {
    const auto mode = behaviour_.mode;
    if (mode == Mode::drop) return;
    if (mode == Mode::drop_after || mode == Mode::cut_after) {
      const auto allowed = std::min<std::uint64_t>(behaviour_.number, text.size());
      text.resize(allowed);
      behaviour_.number -= allowed;
      if (behaviour_.number == 0 && mode == Mode::cut_after) cut_when_written_ = true;
    }
    const auto delay = milliseconds(mode == Mode::delay ? behaviour_.number : 0);
    waiting_bytes_ += text.size();
    pieces_.push_back({Clock::now() + delay, std::move(text)});
  }

  int source_;
  int sink_;
  Behaviour behaviour_;
  std::deque<Piece> pieces_;
  std::size_t waiting_bytes_ = 0;
  bool ended_ = false;     ///< the source has sent its end
  bool finished_ = false;  ///< and the sink has it
  bool cut_when_written_ = false;
  bool broken_ = false;
};

struct Connection {
  Connection(int client, int server, const std::array<Behaviour, 2>& behaviours)
      : up(client, server, behaviours[0]), down(server, client, behaviours[1]) {}
  Direction up;
  Direction down;
  bool reset = false;

  [[nodiscard]] bool gone() const {
    return reset || up.broken() || down.broken() || (up.finished() && down.finished());
  }
  void end() const {
    for (const int descriptor : {up.source(), down.source()}) {
      if (reset) {
        close_with_reset(descriptor);
      } else {
        close(descriptor);
      }
    }
  }
};

}  // namespace

class ChaosProxyServer::Loop {
 public:
  Loop(int port, int target_port, const std::string& control_path)
      : port_(port),
        target_port_(target_port),
        listener_(listen_on_loopback(port_)),
        control_(control_path) {
    if (listener_ < 0) throw std::runtime_error("the proxy's port is taken");
  }
  ~Loop() {
    for (const auto& connection : connections_)
      connection.end();
    close(listener_);
    close(held_port_);
  }

  [[nodiscard]] int port() const { return port_; }
  void run() {
    while (!ending_)
      turn();
  }

 private:
  void turn();
  void accept_one();
  /// Ends the connections that are over.
  void sweep();
  std::string obey(const std::string& line);
  void leave();
  void come_back();
  void misbehave(const std::string& direction, const std::string& word, std::uint64_t number);
  [[nodiscard]] int patience() const;

  int port_;
  int target_port_;
  int listener_;
  int held_port_ = -1;  ///< while there is no listener
  LineSocket control_;
  std::list<Connection> connections_;
  std::array<Behaviour, 2> behaviours_{};
  bool refusing_ = false;
  bool ending_ = false;
};

int ChaosProxyServer::Loop::patience() const {
  std::optional<Clock::time_point> first;
  for (const auto& connection : connections_) {
    for (const auto* direction : {&connection.up, &connection.down}) {
      const auto due = direction->next_due();
      if (due && (!first || *due < *first)) first = due;
    }
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void ChaosProxyServer::Loop::turn() {
  std::vector<pollfd> waiting = {{control_.descriptor(), POLLIN, 0}, {listener_, POLLIN, 0}};
  std::vector<Direction*> readers;
  for (auto& connection : connections_) {
    for (auto* direction : {&connection.up, &connection.down}) {
      // Two entries each, as the two ends are ready at different times.
      waiting.push_back({direction->wants_to_read() ? direction->source() : -1, POLLIN, 0});
      waiting.push_back({direction->wants_to_write() ? direction->sink() : -1, POLLOUT, 0});
      readers.push_back(direction);
    }
  }
  (void)poll(waiting.data(), waiting.size(), patience());
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (waiting[2 + 2 * i].revents != 0) readers[i]->read();
    if (waiting[3 + 2 * i].revents != 0) readers[i]->write();
  }
  sweep();
  if (waiting[1].revents != 0) accept_one();
  if (waiting[0].revents != 0) {
    control_.answer([this](const std::string& line) { return obey(line); });
  }
}

void ChaosProxyServer::Loop::sweep() {
  connections_.remove_if([](const Connection& connection) {
    if (connection.gone()) connection.end();
    return connection.gone();
  });
}

void ChaosProxyServer::Loop::accept_one() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = refusing_ ? -1 : connect_to_loopback(target_port_);
  if (server < 0) return close_with_reset(client);
  connections_.emplace_back(client, server, behaviours_);
}

std::string ChaosProxyServer::Loop::obey(const std::string& line) {
  std::istringstream words(line);
  std::string direction;
  std::string word;
  std::uint64_t number = 0;
  words >> direction >> word >> number;
  if (line == "end") {
    ending_ = true;
  } else if (line == "refuse" || line == "accept") {
    refusing_ = line == "refuse";
  } else if (line == "leave") {
    leave();
  } else if (line == "return") {
    come_back();
  } else if (line == "connections") {
    return std::to_string(connections_.size());
  } else {
    misbehave(direction, word, number);
  }
  return "";
}

void ChaosProxyServer::Loop::leave() {
  close(listener_);
  listener_ = -1;
  held_port_ = hold_port(port_);
  if (held_port_ < 0) throw std::runtime_error("the proxy's port was taken away");
}

void ChaosProxyServer::Loop::come_back() {
  listener_ = listen_on_loopback(port_);
  if (listener_ < 0) throw std::runtime_error("the proxy's port is taken");
  close(held_port_);
  held_port_ = -1;
}

void ChaosProxyServer::Loop::misbehave(const std::string& direction, const std::string& word,
                                       std::uint64_t number) {
  const bool up = direction == "up" || direction == "both";
  const bool down = direction == "down" || direction == "both";
  if (!up && !down) throw std::runtime_error("no such direction");
  if (word == "cut" || word == "reset") {
    for (auto& connection : connections_) {
      connection.reset = connection.reset || word == "reset";
      if (word == "cut" && up) connection.up.finish();
      if (word == "cut" && down) connection.down.finish();
    }
    return sweep();
  }
  const auto behaviour = parse_behaviour(word, number);
  if (up) behaviours_[0] = behaviour;
  if (down) behaviours_[1] = behaviour;
  for (auto& connection : connections_) {
    if (up) connection.up.behave(behaviour);
    if (down) connection.down.behave(behaviour);
  }
}

ChaosProxyServer::ChaosProxyServer(int port, int target_port, const std::string& control_path)
    : loop_(std::make_unique<Loop>(port, target_port, control_path)) {}

ChaosProxyServer::~ChaosProxyServer() = default;

int ChaosProxyServer::port() const {
  return loop_->port();
}

void ChaosProxyServer::run() {
  loop_->run();
}

ChaosProxy::ChaosProxy(int target_port)
    : server_(0, target_port, folder_.file("control")), thread_([this] { server_.run(); }) {}

ChaosProxy::~ChaosProxy() {
  tell("end");
  thread_.join();
}

std::string ChaosProxy::tell(const std::string& command) {
  return ask_line_socket(folder_.file("control"), command);
}

}  // namespace postrider::testing
