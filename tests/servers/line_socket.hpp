#pragma once
/// \file
/// Questions of one line over a Unix socket, and their answers: how tests speak to the programs
/// that serve them. An answer is `ok` and a text, or `error` and a reason; it ends with the
/// connection and may have several lines.

#include <functional>
#include <string>

namespace postrider::testing {

/// The text of an `ok`. Throws what an `error` says, and when nobody listens.
std::string ask_line_socket(const std::string& path, const std::string& line);

/// Listens at `path`, in place of whatever is there.
class LineSocket {
 public:
  explicit LineSocket(const std::string& path);
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  /// Readable when a question waits.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Answers one question. What `handler` throws becomes an `error`.
  void answer(const std::function<std::string(const std::string& line)>& handler) const;

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace postrider::testing
