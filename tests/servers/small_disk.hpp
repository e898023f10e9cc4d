#pragma once
/// \file
/// A file system of a few megabytes that a test can fill.

#include <cstddef>
#include <string>

#include "servers/loopback.hpp"

namespace postrider::testing {

/// Empty when one can be mounted here, else why not.
[[nodiscard]] std::string why_no_small_disk();

/// Mounted on a folder of its own, for the user that runs test servers; gone with its object.
/// Functions that cannot do what they say throw.
class SmallDisk {
 public:
  explicit SmallDisk(std::size_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// A folder on it that is empty and belongs to the server's user.
  [[nodiscard]] std::string folder() const { return mount_point_.file("data"); }
  /// Leaves no room.
  void fill() const;
  /// Takes back what `fill` took.
  void clear() const;

 private:
  [[nodiscard]] std::string ballast() const { return mount_point_.file("ballast"); }

  TemporaryFolder mount_point_{"disk"};
};

}  // namespace postrider::testing
