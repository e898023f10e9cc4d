#pragma once
/// \file
/// A wall clock that the test moves, for processes that are started with its environment.

#include <filesystem>
#include <string>
#include <system_error>

#include "servers/child_process.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {

/// Empty when it is not installed.
[[nodiscard]] inline std::string faketime_library() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib", ignored)) {
    const auto library = entry.path() / "faketime" / "libfaketime.so.1";
    if (std::filesystem::exists(library)) return library.string();
  }
  return {};
}

/// Why no clock can be moved here; empty when one can.
[[nodiscard]] inline std::string why_no_moved_clock() {
  return faketime_library().empty() ? "libfaketime is not installed" : "";
}

/// Intervals run on as they do.
class MovedClock {
 public:
  MovedClock() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    move("+0");
  }
  [[nodiscard]] Environment environment() const {
    return {{"LD_PRELOAD", faketime_library()},
            {"FAKETIME_TIMESTAMP_FILE", folder_.file("offset")},
            {"FAKETIME_NO_CACHE", "1"},
            {"FAKETIME_DONT_FAKE_MONOTONIC", "1"}};
  }
  /// Such as "+1h"; written at once, as it is read at any time.
  void move(const std::string& offset) const {
    std::filesystem::rename(folder_.write("new", offset + "\n"), folder_.file("offset"));
  }

 private:
  TemporaryFolder folder_{"clock"};
};

}  // namespace postrider::testing
