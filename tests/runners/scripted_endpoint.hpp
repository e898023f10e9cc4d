#pragma once
/// \file
/// An HTTP endpoint that answers what a test wants, also what is no HTTP.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace postrider::testing {

struct ScriptedAnswer {
  std::string bytes;
  bool keep_open = false;  ///< until the client leaves; else the connection is closed behind it
};

/// Serves one connection after the other. Thread safety: any thread.
class ScriptedEndpoint {
 public:
  /// The last answer is given to all further requests.
  explicit ScriptedEndpoint(std::vector<ScriptedAnswer> answers);
  ~ScriptedEndpoint();
  ScriptedEndpoint(const ScriptedEndpoint&) = delete;
  ScriptedEndpoint& operator=(const ScriptedEndpoint&) = delete;

  [[nodiscard]] std::string url(const std::string& target = "/") const;
  /// Waits until there are so many; each with its headers and body.
  std::vector<std::string> requests(std::size_t count);
  /// Waits until so many clients have left a connection that was kept open.
  bool clients_have_left(std::size_t count);

 private:
  void run();
  void serve(int client);
  template <class Condition>
  bool await(Condition condition);

  const std::vector<ScriptedAnswer> answers_;
  int port_ = 0;
  int listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> requests_;
  std::size_t left_ = 0;
  int client_ = -1;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::testing
