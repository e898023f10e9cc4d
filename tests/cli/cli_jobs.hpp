#pragma once
/// \file
/// The commands of jobs as people run them, the same on every database.

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace postrider::testing {

/// A database of its own: as long as `keep` lives, `store` leads to it.
struct CliDatabase {
  std::string store;
  std::shared_ptr<void> keep;
};

struct CliJobsCase {
  std::string name;
  /// Nothing when its server is missing: the test is skipped or has failed then.
  std::function<std::optional<CliDatabase>()> make;
};

/// What GoogleTest shows of a case.
inline void PrintTo(const CliJobsCase& given, std::ostream* out) {
  *out << given.name;
}

[[nodiscard]] inline std::string cli_jobs_case_name(
    const ::testing::TestParamInfo<CliJobsCase>& info) {
  return info.param.name;
}

class CliJobs : public ::testing::TestWithParam<CliJobsCase> {
 protected:
  void SetUp() override;

  /// Writes a configuration with one route, quick heartbeats and these settings of the worker.
  void configure(const std::string& worker = "");
  /// The same with a migrated database.
  void prepare(const std::string& worker = "");
  /// The id of a new job "ship_order" in the queue "shipping".
  std::string enqueue(const std::vector<std::string>& more = {});
  nlohmann::json show(const std::string& id);
  /// Its status, once it is `status`; that of the end when it does not come to that.
  std::string will_be(const std::string& id, const std::string& status);
  /// A worker for "shipping" that runs this shell script for each job.
  std::unique_ptr<Running> start_worker(const std::string& script,
                                        const std::vector<std::string>& more = {});

  CliDatabase database_;
  Workshop shop_;
};

}  // namespace postrider::testing
