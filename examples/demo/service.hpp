#pragma once
/// \file
/// A service of the demo as a process of its own. It ends with its object, and with this program,
/// however that ends.

#include <sys/types.h>

#include <string>
#include <vector>

namespace examples::demo {

class Service {
 public:
  /// Starts a program that stands beside this one, and waits until it says where it listens. Its
  /// standard error goes into `log_file`. Throws when it does not come up.
  Service(const std::string& program, const std::vector<std::string>& arguments,
          const std::string& log_file);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  /// As `kill -9`.
  void kill();

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace examples::demo
