// Workers that are stopped by SIGTERM while they are busy, as every deploy does.
#include <array>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "process/job_line.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

using ::testing::Eq;

constexpr int deploys = 50;
constexpr int events_per_deploy = 3;

// Each run holds a lock as long as any process of it lives, and says when another run of the same
// delivery is still alive. A "stubborn" job cannot be asked to stop, a "long" one can.
constexpr const char* handler =
    "exec 9> \"lock.$POSTRIDER_DELIVERY_ID\"\n"
    "flock -n 9 || echo \"$POSTRIDER_DELIVERY_ID\" >> overlaps\n"
    "case $POSTRIDER_JOB in\n"
    "long) exec sleep 0.4;;\n"
    "stubborn) trap '' TERM; exec sleep 0.4;;\n"
    "esac\n";

class JobsDeploy : public JobProcesses {
 protected:
  [[nodiscard]] std::unique_ptr<Running> start_one() {
    return start_worker(handler, {"--concurrency", "4"});
  }
  /// Ends it in whatever it does; 75 says that it gave something back.
  static int stop(Running& worker) {
    worker.signal(SIGTERM);
    const auto ended = worker.finish();
    EXPECT_TRUE(ended.code == 0 || ended.code == 75) << ended.code << ended.err;
    return ended.code;
  }
};

TEST_P(JobsDeploy, JT_15_JT_16_JT_17_fifty_deploys_under_load_use_no_attempt_and_lose_no_job) {
  prepare("grace = \"100ms\"\nhard_grace = \"100ms\"\n",
          route("short") + route("long") + route("stubborn"));
  shop_.write("overlaps", "");
  const auto relay = start_relay();
  std::array<std::unique_ptr<Running>, 2> workers = {start_one(), start_one()};
  int released = 0;
  int written = 0;
  for (int deploy = 0; deploy < deploys; ++deploy) {
    write_events(written, written + events_per_deploy);
    written += events_per_deploy;
    // It stops amid its work: somebody has begun something since the last deploy.
    const auto before = runs().size();
    ASSERT_TRUE(comes_true([&] { return runs().size() > before; })) << relay->err();
    auto& worker = workers[static_cast<std::size_t>(deploy % 2)];
    if (stop(*worker) == 75) ++released;
    worker = start_one();
  }
  EXPECT_TRUE(come_to(3 * written, "status = 'completed'"));
  EXPECT_EQ(jobs("attempts > 0 OR deaths > 0"), 0) << "a deploy used an attempt";
  EXPECT_EQ(jobs("1 = 1"), 3 * written);
  EXPECT_THAT(shop_.read("overlaps"), Eq(""));
  EXPECT_GT(released, deploys / 5) << "too few deploys met a job longer than the grace";
  EXPECT_GT(jobs("interruptions > 0"), released / 2);
  std::set<std::string> dispatches;
  for (const auto& run : runs())
    dispatches.insert(run.dispatch);
  EXPECT_EQ(dispatches.size(), runs().size()) << "a dispatch ran twice";
  for (const auto& worker : workers)
    stop_cleanly(*worker);
  stop_cleanly(*relay);
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsDeploy, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
