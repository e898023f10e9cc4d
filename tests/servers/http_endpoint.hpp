#pragma once
/// \file
/// A double of an HTTP endpoint on a real socket: serves many connections at once, keeps a journal
/// of what it was sent, and answers what a test wants, also what is no HTTP.

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace postrider::testing {

/// A request as it came.
struct SeenRequest {
  std::string line;  ///< "POST /path HTTP/1.1"
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  int connection = 0;  ///< numbered from 1

  /// Names are compared without case; "" when it is not there.
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// What becomes of a request.
struct Reply {
  int status = 204;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// Sent in place of all that when it is not empty, and the connection then closed.
  std::string raw;
  bool cut = false;    ///< the connection is closed without an answer
  bool close = false;  ///< … is closed behind the answer, without having said so
  bool hold = false;   ///< answered only after `release`, or never
  bool stay = false;   ///< behind `raw` the connection stays open until the client leaves

  static Reply of(int status) {
    Reply reply;
    reply.status = status;
    return reply;
  }
  static Reply of(int status, std::string name, std::string value) {
    auto reply = of(status);
    reply.headers.emplace_back(std::move(name), std::move(value));
    return reply;
  }
  static Reply of_bytes(std::string bytes, bool stay = false) {
    Reply reply;
    reply.raw = std::move(bytes);
    reply.stay = stay;
    return reply;
  }
  static Reply cutting() {
    Reply reply;
    reply.cut = true;
    return reply;
  }
  static Reply holding() {
    Reply reply;
    reply.hold = true;
    return reply;
  }
};

/// Thread safety: any thread.
class HttpEndpoint {
 public:
  /// Told the request and how many came before it.
  using Script = std::function<Reply(const SeenRequest&, std::size_t before)>;

  /// Answers 204 to everything.
  HttpEndpoint() : HttpEndpoint([](const auto&, std::size_t) { return Reply(); }) {}
  explicit HttpEndpoint(Script script);
  /// The last one is given to all further requests.
  explicit HttpEndpoint(std::vector<Reply> replies);
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string url(const std::string& target = "/hook") const;

  [[nodiscard]] std::vector<SeenRequest> requests();
  /// Waits until there are so many; fewer only after a long patience.
  std::vector<SeenRequest> await_requests(std::size_t count);
  /// Connections that were ever accepted.
  [[nodiscard]] int connections();
  /// The most requests that were being answered at one time.
  [[nodiscard]] std::size_t most_at_once();
  /// Lets everything go that is held, and holds nothing any more.
  void release();

 private:
  struct Connection {
    int descriptor = -1;
    int number = 0;
    std::thread thread;
  };

  void run();
  void serve(int descriptor, int number);
  bool answer(int descriptor, const SeenRequest& request);
  bool wait_for_release(int descriptor);

  const Script script_;
  int port_ = 0;
  int listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<SeenRequest> requests_;
  std::list<Connection> connections_;
  std::size_t at_once_ = 0;
  std::size_t most_at_once_ = 0;
  bool released_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::testing
