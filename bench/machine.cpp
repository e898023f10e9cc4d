#include "bench/machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "bench/figures.hpp"
#include "servers/postgres_server.hpp"

namespace postrider::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

double flushes_per_second(const std::string& path) {
  constexpr double enough_s = 0.3;
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("cannot write " + path);
  const std::array<char, 8192> page{};
  int flushes = 0;
  const auto begun = Clock::now();
  for (; seconds_since(begun) < enough_s; ++flushes) {
    const bool written =
        ::pwrite(file, page.data(), page.size(), 0) == static_cast<ssize_t>(page.size());
    if (!written || ::fdatasync(file) != 0) throw std::runtime_error("cannot write " + path);
  }
  const double elapsed = seconds_since(begun);
  ::close(file);
  ::unlink(path.c_str());
  return flushes / elapsed;
}

double commit_ms(const std::string& conninfo) {
  constexpr int commits = 100;
  testing::PostgresSession session(conninfo);
  session.run("CREATE TABLE IF NOT EXISTS bench_probe (at timestamptz)");
  std::vector<double> times;
  for (int i = 0; i < commits; ++i) {
    const auto begun = Clock::now();
    session.run("INSERT INTO bench_probe VALUES (now())");
    times.push_back(seconds_since(begun) * 1000);
  }
  session.run("DROP TABLE bench_probe");
  return median(std::move(times));
}

}  // namespace

nlohmann::ordered_json probe_machine(const std::string& folder, const std::string& conninfo) {
  return {{"fdatasync_per_s", flushes_per_second(folder + "/probe")},
          {"commit_ms", commit_ms(conninfo)}};
}

}  // namespace postrider::bench
