#pragma once
/// \file
/// Jobs from an event to their end with real processes: `postrider relay --loop`, workers by
/// `postrider worker --exec`, and commands that leave a record of each of their runs. The same on
/// every database.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/program.hpp"
#include "servers/child_process.hpp"

namespace postrider::testing {

/// A database of its own, as long as `keep` lives.
struct JobDatabase {
  std::string store;  ///< its URL
  /// All rows that a statement returns, columns joined by '|'.
  std::function<std::vector<std::string>(const std::string& sql)> rows;
  std::shared_ptr<void> keep;
};

struct JobDatabaseCase {
  std::string name;
  /// With a `clock` that is not empty, the time of this environment is that of the database.
  std::function<JobDatabase(Workshop& shop, const Environment& clock)> make;
};

/// What GoogleTest shows of a case.
inline void PrintTo(const JobDatabaseCase& given, std::ostream* out) {
  *out << given.name;
}

/// SQLite and PostgreSQL.
[[nodiscard]] std::vector<JobDatabaseCase> job_databases();
[[nodiscard]] std::string job_database_name(const ::testing::TestParamInfo<JobDatabaseCase>& info);

/// One run of a command, as it said itself.
struct HandlerRun {
  std::string job;
  std::string delivery;
  std::string dispatch;
  pid_t pid = 0;
  bool last_attempt = false;
};

/// False for a process that has ended and that nobody has waited for yet.
[[nodiscard]] bool is_alive(pid_t pid);

class JobProcesses : public ::testing::TestWithParam<JobDatabaseCase> {
 protected:
  /// Skipped, with the reason told, when the database's server is missing.
  void SetUp() override;

  /// A migrated database and a configuration. `worker` and `routes` are lines of the file.
  void prepare(const std::string& worker, const std::string& routes, const Environment& clock = {});
  /// A route from every event to the job of this name.
  static std::string route(const std::string& job, const std::string& more = "");
  /// Events "order.placed" number `from` to `to`, each of an aggregate of its own.
  void write_events(int from, int to);
  void write_event_of(const std::string& aggregate);

  [[nodiscard]] std::unique_ptr<Running> start_relay();
  /// A worker of the queue "work". The script's text follows a line that records the run.
  [[nodiscard]] std::unique_ptr<Running> start_worker(const std::string& script,
                                                      const std::vector<std::string>& more = {});
  /// The same, told by `from` where its jobs come from.
  [[nodiscard]] std::unique_ptr<Running> start_worker_of(const std::vector<std::string>& from,
                                                         const std::string& script,
                                                         const std::vector<std::string>& more = {});

  /// The first column of the first row; empty when there is none.
  std::string value(const std::string& sql);
  /// How many jobs there are `where` this holds.
  int jobs(const std::string& where);
  /// Waits for that number of jobs.
  bool come_to(int number, const std::string& where);
  /// `columns` of the only job of that name.
  std::string job(const std::string& name, const std::string& columns);

  [[nodiscard]] std::vector<HandlerRun> runs() const;
  /// Waits for so many runs altogether, and returns them; fewer when it does not come to that.
  [[nodiscard]] std::vector<HandlerRun> runs_come_to(std::size_t number) const;

  std::string relay_settings_;  ///< more lines of [relay], set before `prepare`
  Workshop shop_;
  JobDatabase database_;
};

/// How many lines of a log tell of `kind`.
[[nodiscard]] int told(const Running& process, const std::string& kind);
/// The first line that does; empty when there is none.
[[nodiscard]] std::string line_about(const Running& process, const std::string& kind);

/// Kills a process and waits until it is gone.
void kill_9(Running& process);
/// Ends it by SIGTERM and expects the exit code 0.
void stop_cleanly(Running& process);

}  // namespace postrider::testing
