#pragma once
/// \file
/// Ports, sockets and folders for servers that live as long as a test.

#include <string>
#include <string_view>

namespace postrider::testing {

/// A port on 127.0.0.1 that nobody listened on a moment ago.
[[nodiscard]] int free_port();

/// A descriptor that listens on 127.0.0.1; `port` 0 means any and becomes the one it got. -1 when
/// the port is taken.
[[nodiscard]] int listen_on_loopback(int& port);

/// A descriptor that has the port and does not listen: who connects is refused, and nobody else
/// gets it, while `listen_on_loopback` may still be called for it. -1 when the port is taken.
[[nodiscard]] int hold_port(int port);

/// A connected descriptor, -1 when nobody listens.
[[nodiscard]] int connect_to_loopback(int port);

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  /// The path is short enough for a Unix socket in it.
  explicit TemporaryFolder(std::string_view purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const;
  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view content) const;

 private:
  std::string path_;
};

}  // namespace postrider::testing
