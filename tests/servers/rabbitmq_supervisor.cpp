// Holds a RabbitMQ for all test processes of a CTest run, or for a person.
//
//   rabbitmq-supervisor start DIR [--with-parent]   starts one below DIR, in the background; with
//                                                   --with-parent it ends with the calling process
//   rabbitmq-supervisor stop DIR                    ends it and removes DIR; fails when tests left
//                                                   something on it
//   rabbitmq-supervisor ask DIR COMMAND [ARG...]    start, stop, kill, freeze, thaw, running,
//                                                   ports, or control with arguments for
//                                                   rabbitmqctl

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "servers/line_socket.hpp"
#include "servers/rabbitmq_server.hpp"
#include "servers/report_leftovers.hpp"

namespace postrider::testing {
namespace {

/// Empty words count, also at the end.
std::vector<std::string> split_at_tabs(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t begin = 0;;) {
    const auto tab = line.find('\t', begin);
    words.push_back(line.substr(begin, tab - begin));
    if (tab == std::string::npos) return words;
    begin = tab + 1;
  }
}

std::string obey(Rabbitmq& server, const std::string& line) {
  const auto words = split_at_tabs(line);
  const auto& command = words.front();
  if (command == "start") return server.start(), "";
  if (command == "stop") return server.stop(), "";
  if (command == "kill") return server.kill(), "";
  if (command == "freeze") return server.freeze(), "";
  if (command == "thaw") return server.thaw(), "";
  if (command == "running") return server.running() ? "yes" : "no";
  if (command == "ports") {
    return std::to_string(server.ports().amqp) + " " + std::to_string(server.ports().amqps);
  }
  if (command == "control") return server.control({words.begin() + 1, words.end()});
  throw std::runtime_error("no such command");
}

/// Serves until `end` is asked for or the process `with` is gone.
void serve(const std::string& folder, pid_t with) {
  // Silent from here on: CTest waits until nobody holds its pipe any more.
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : {0, 1, 2})
    dup2(nowhere, descriptor);
  const int parent = with > 0 ? static_cast<int>(syscall(SYS_pidfd_open, with, 0)) : -1;
  const auto server = start_rabbitmq(folder);
  const LineSocket socket(supervisor_socket(folder));
  bool ending = false;
  while (!ending) {
    std::array<pollfd, 2> waiting{pollfd{socket.descriptor(), POLLIN, 0},
                                  pollfd{parent, POLLIN, 0}};
    (void)poll(waiting.data(), waiting.size(), -1);
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents == 0) continue;
    socket.answer([&](const std::string& line) {
      ending = line == "end";
      return ending ? "" : obey(*server, line);
    });
  }
}

int start(const std::string& folder, bool with_parent) {
  if (const auto why = why_no_rabbitmq(); !why.empty()) {
    std::cout << "no RabbitMQ: " << why << "\n";  // The tests say so too, each by itself.
    return 0;
  }
  std::filesystem::create_directories(folder);
  const pid_t parent = with_parent ? getppid() : 0;
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    setsid();
    try {
      serve(folder, parent);
    } catch (const std::exception&) {
      return 1;  // `start` sees that nobody answers, and the log stays.
    }
    std::filesystem::remove_all(folder);
    return 0;
  }
  for (int tenths = 0; tenths < 1200; ++tenths) {
    try {
      const auto ports = ask_line_socket(supervisor_socket(folder), "ports");
      std::cout << "ports " << ports << "\n";
      return 0;
    } catch (const std::exception&) {
      usleep(100'000);  // Polls an external process.
    }
  }
  std::cout << "RabbitMQ did not start; see " << folder << "/server.log\n";
  return 1;
}

int stop(const std::string& folder) {
  if (!std::filesystem::exists(supervisor_socket(folder))) return 0;
  const bool clean = nothing_is_left([&] {
    const auto server = attach_to_rabbitmq(folder);
    server->start();  // A test may have ended while it was down.
    return server->leftovers();
  });
  ask_line_socket(supervisor_socket(folder), "end");
  for (int tenths = 0; tenths < 300 && std::filesystem::exists(folder); ++tenths)
    usleep(100'000);
  return std::filesystem::exists(folder) || !clean ? 1 : 0;
}

int run(const std::vector<std::string>& words) {
  const auto command = words.size() < 2 ? "" : words[0];
  if (command == "start") return start(words[1], words.back() == "--with-parent");
  if (command == "stop") return stop(words[1]);
  if (command == "ask" && words.size() > 2) {
    std::string line = words[2];
    for (std::size_t i = 3; i < words.size(); ++i)
      line += "\t" + words[i];
    std::cout << ask_line_socket(supervisor_socket(words[1]), line) << "\n";
    return 0;
  }
  std::cout << "usage: rabbitmq-supervisor start|stop DIR, or ask DIR COMMAND [ARG...]\n";
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
