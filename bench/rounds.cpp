#include "bench/rounds.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "bench/machine.hpp"
#include "servers/child_process.hpp"

namespace postrider::bench {
namespace {

constexpr std::chrono::minutes patience{5};

/// Sized as a small production server, so that no checkpoint falls into a run; fsync stays on. Old
/// segments of the log are kept for reuse, as those of a server that has run for an hour are.
std::vector<std::string> server_settings() {
  return {"shared_buffers=1GB", "max_wal_size=16GB", "min_wal_size=4GB", "checkpoint_timeout=30min",
          "fsync=on"};
}

nlohmann::json read_result(const std::string& file, const std::string& program) {
  std::ifstream output(file);
  std::string line;
  std::string last;
  while (std::getline(output, line)) {
    if (!line.empty()) last = line;
  }
  auto result = nlohmann::json::parse(last, nullptr, false);
  if (!result.is_object()) throw std::runtime_error(program + " printed no result: " + last);
  return result;
}

}  // namespace

Run::Run(Sizes sizes, std::string programs)
    : sizes_(std::move(sizes)),
      programs_(std::move(programs)),
      folder_("bench"),
      postgres_(server_settings()) {
  std::filesystem::create_directory(folder_.file("rabbitmq"));
  rabbitmq_ = testing::start_rabbitmq(folder_.file("rabbitmq"));
}

Run::~Run() = default;

void Run::say(const std::string& line) const {
  std::cerr << line << std::endl;
}

nlohmann::json Run::run_program(const std::vector<std::string>& arguments) {
  auto all = arguments;
  all.front() = programs_ + "/" + all.front();
  const auto output = folder_.file("output");
  std::ofstream(output, std::ios::trunc).close();
  testing::ChildProcess program(all, {{"PATH", "/usr/bin:/bin"}}, output);
  const int code = program.wait(patience);
  if (code != 0) {
    std::ifstream file(output);
    const std::string said((std::istreambuf_iterator<char>(file)), {});
    throw std::runtime_error(arguments.front() + " failed: " + said);
  }
  return read_result(output, arguments.front());
}

void Run::report(const Figure& figure) {
  auto json = to_json(figure);
  if (isatty(STDERR_FILENO) != 0) std::cerr << table_line(json) << std::flush;
  results_["figures"].push_back(std::move(json));
}

void Run::block(const std::string& name, const std::function<void()>& measure) {
  const auto& only = sizes_.only;
  if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) return;
  say("block " + name);
  nlohmann::ordered_json block = {{"name", name}};
  const auto probe = [&] { return probe_machine(folder_.path(), postgres_.conninfo("postgres")); };
  block["start"] = probe();
  const auto begun = std::chrono::steady_clock::now();
  measure();
  block["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  block["end"] = probe();
  results_["blocks"].push_back(std::move(block));
  keep_(results_);
}

nlohmann::ordered_json Run::measure(const Keep& keep) {
  keep_ = keep;
  results_ = {{"cores", sysconf(_SC_NPROCESSORS_ONLN)},
              {"events_small", sizes_.small},
              {"events_large", sizes_.large},
              {"jobs", sizes_.jobs},
              {"pairs", sizes_.pairs},
              {"blocks", nlohmann::ordered_json::array()},
              {"figures", nlohmann::ordered_json::array()}};
  block("writer", [this] { measure_writer(); });
  block("jobs", [this] { measure_jobs(); });
  say("filling");
  small_ = postgres_.create_database();
  fill(small_, sizes_.small);
  block("held_writer", [this] { measure_held_writer(); });
  block("rabbitmq_small",
        [this] { measure_rabbitmq("rabbitmq_small", small_, sizes_.small, sizes_.pairs); });
  large_ = postgres_.create_database();
  fill(large_, sizes_.large);
  block("memory", [this] { measure_memory(); });
  block("rabbitmq_large", [this] {
    measure_rabbitmq("rabbitmq_large", large_, sizes_.large, sizes_.large_broker_pairs);
  });
  if (most_resident_mib_ > 0) report({"resident_mib", "MiB", {{0, most_resident_mib_}}});
  keep_(results_);
  return std::move(results_);
}

}  // namespace postrider::bench
