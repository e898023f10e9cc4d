// Holds a MariaDB for all test processes of a CTest run.
//
//   mariadb-supervisor start DIR   starts one in the background and writes its address below DIR;
//                                   it ends with the calling process
//   mariadb-supervisor stop DIR    ends it and removes DIR; fails when tests left something on it

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "servers/line_socket.hpp"
#include "servers/mariadb_server.hpp"
#include "servers/report_leftovers.hpp"

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds patience{90};

std::string control_socket(const std::string& folder) {
  return folder + "/control";
}

/// Polls an external process.
template <class Condition>
bool comes_true(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

/// Written whole or not at all, as it is what tests wait for.
void write_address(const std::string& folder, const MariadbServer& server) {
  const auto file = supervised_mariadb_address(folder);
  std::ofstream(file + ".new") << server.folder() << "\n" << server.port() << "\n";
  std::filesystem::rename(file + ".new", file);
}

/// Serves until a question comes, which can only be that it end, or until `parent` is gone.
void serve(const std::string& folder, pid_t parent) {
  // Silent from here on: CTest waits until nobody holds its pipe any more.
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : {0, 1, 2})
    dup2(nowhere, descriptor);
  const int parent_descriptor = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  const MariadbServer server;
  const LineSocket socket(control_socket(folder));
  write_address(folder, server);
  std::array<pollfd, 2> waiting{pollfd{socket.descriptor(), POLLIN, 0},
                                pollfd{parent_descriptor, POLLIN, 0}};
  while (poll(waiting.data(), waiting.size(), -1) < 0) {
  }
  if (waiting[0].revents != 0) socket.answer([](const std::string&) { return std::string(); });
}

int start(const std::string& folder) {
  if (const auto why = why_no_mariadb(); !why.empty()) {
    std::cout << "no MariaDB: " << why << "\n";  // The tests say so too, each by itself.
    return 0;
  }
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const pid_t parent = getppid();
  if (fork() == 0) {
    setsid();
    try {
      serve(folder, parent);
    } catch (const std::exception& failure) {
      std::ofstream(folder + "/failure") << failure.what() << "\n";
      return 1;
    }
    std::filesystem::remove_all(folder);
    return 0;
  }
  const bool there = comes_true([&] {
    return std::filesystem::exists(supervised_mariadb_address(folder)) ||
           std::filesystem::exists(folder + "/failure");
  });
  if (there && !std::filesystem::exists(folder + "/failure")) return 0;
  std::cout << "MariaDB did not start; see " << folder << "/failure\n";
  return 1;
}

int stop(const std::string& folder) {
  if (!std::filesystem::exists(control_socket(folder))) return 0;
  const bool clean = nothing_is_left([&] { return supervised_mariadb(folder)->leftovers(); });
  ask_line_socket(control_socket(folder), "end");
  const bool ended = comes_true([&] { return !std::filesystem::exists(folder); });
  return ended && clean ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "start") return start(words[1]);
  if (words.size() == 2 && words[0] == "stop") return stop(words[1]);
  std::cout << "usage: mariadb-supervisor start|stop DIR\n";
  return 64;
}

}  // namespace
}  // namespace postrider::testing

int main(int count, char** arguments) {
  try {
    return postrider::testing::run({arguments + 1, arguments + count});
  } catch (const std::exception& failure) {
    std::cout << failure.what() << "\n";
    return 1;
  }
}
