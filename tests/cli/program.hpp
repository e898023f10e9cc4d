#pragma once
/// \file
/// The built postrider as a process in a folder of its own, for tests of what people see.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::testing {

/// What a process came to.
struct Finished {
  int code = -1;  ///< exit code; 128 + number for a signal
  std::string out;
  std::string err;
};

/// A process that runs. Ended when the object goes, should it still be there.
class Running {
 public:
  Running(const std::filesystem::path& folder, const std::vector<std::string>& words,
          const std::map<std::string, std::string>& variables, const std::string& input,
          const std::filesystem::path& streams);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void signal(int number) const;
  /// The most memory that it has held at once.
  [[nodiscard]] std::int64_t peak_memory_bytes() const;
  /// What has been written to standard error so far.
  [[nodiscard]] std::string err() const;
  /// Waits until standard error holds `text`; false when it does not come to that.
  [[nodiscard]] bool says(const std::string& text) const;
  /// The same of standard output.
  [[nodiscard]] bool prints(const std::string& text) const;
  /// Waits for the end.
  Finished finish();

 private:
  [[nodiscard]] bool ended();

  std::filesystem::path streams_;
  pid_t pid_ = -1;
  int status_ = 0;
};

/// A temporary folder in which commands are run, with a clean environment.
class Workshop {
 public:
  Workshop();
  ~Workshop();
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// Runs `postrider WORDS…` to its end.
  Finished run(const std::vector<std::string>& words, const std::string& input = {});
  /// Starts `postrider WORDS…`.
  std::unique_ptr<Running> start(const std::vector<std::string>& words,
                                 const std::string& input = {});
  /// Runs another program.
  Finished run_program(const std::vector<std::string>& words);
  /// Starts another program.
  std::unique_ptr<Running> start_program(const std::vector<std::string>& words,
                                         const std::string& input = {});

  void write(const std::string& name, std::string_view content) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  /// Waits until the file holds `text`; false when it does not come to that.
  [[nodiscard]] bool will_hold(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  std::map<std::string, std::string> variables;  ///< of the environment

 private:
  std::filesystem::path folder_;
  int runs_ = 0;
};

}  // namespace postrider::testing
