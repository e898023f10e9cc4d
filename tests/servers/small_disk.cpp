#include "servers/small_disk.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace postrider::testing {
namespace {

/// Empty, or what is wrong.
std::string mount_memory(const std::string& folder, std::size_t bytes) {
  const auto size = "mode=0755,size=" + std::to_string(bytes);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, size.c_str()) == 0) return {};
  return "a file system cannot be mounted: " + std::string(std::strerror(errno));
}

}  // namespace

std::string why_no_small_disk() {
  if (::geteuid() != 0) return "only root can mount a small file system";
  const TemporaryFolder probe("disk");
  auto why = mount_memory(probe.path(), 1 << 20);
  if (why.empty()) ::umount2(probe.path().c_str(), MNT_DETACH);
  return why;
}

SmallDisk::SmallDisk(std::size_t bytes) {
  if (const auto why = mount_memory(mount_point_.path(), bytes); !why.empty()) {
    throw std::runtime_error(why);
  }
  const auto* const user = ::getpwnam("postgres");
  if (::chmod(mount_point_.path().c_str(), 0755) != 0 || ::mkdir(folder().c_str(), 0700) != 0 ||
      user == nullptr || ::chown(folder().c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw std::runtime_error("the small disk cannot be given to the user postgres");
  }
}

SmallDisk::~SmallDisk() {
  // Before its folder is removed; whoever still has a file open on it keeps that file.
  ::umount2(mount_point_.path().c_str(), MNT_DETACH);
}

void SmallDisk::fill() const {
  const int file = ::open(ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::vector<char> block(4096);
  while (::write(file, block.data(), block.size()) > 0) {
  }
  const bool full = file >= 0 && errno == ENOSPC;
  ::close(file);
  if (!full) throw std::runtime_error("the small disk cannot be filled");
}

void SmallDisk::clear() const {
  ::unlink(ballast().c_str());
}

}  // namespace postrider::testing
