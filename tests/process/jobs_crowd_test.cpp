// Several relays and workers on one database, each of which may be killed at any moment.
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include <postrider/clock.hpp>

#include "process/job_line.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

using ::testing::IsEmpty;

constexpr std::size_t relays = 2;
constexpr std::size_t workers = 4;
constexpr int kills = 25;

class JobsCrowd : public JobProcesses {
 protected:
  /// Whatever ends a job leaves a row: who would end one twice is seen.
  void note_ends() {
    if (GetParam().name == "sqlite") {
      database_.rows("CREATE TABLE ends (id, status, dispatch_id)");
      database_.rows(
          "CREATE TRIGGER note_end AFTER UPDATE OF status ON outbox_deliveries "
          "WHEN NEW.status NOT IN ('pending', 'dispatched') "
          "BEGIN INSERT INTO ends VALUES (NEW.id, NEW.status, NEW.dispatch_id); END");
      return;
    }
    database_.rows("CREATE TABLE ends (id uuid, status text, dispatch_id uuid)");
    database_.rows(
        "CREATE FUNCTION note_end() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO ends VALUES (NEW.id, NEW.status, NEW.dispatch_id); RETURN NEW; END $$");
    database_.rows(
        "CREATE TRIGGER note_end AFTER UPDATE OF status ON outbox_deliveries FOR EACH ROW "
        "WHEN (NEW.status NOT IN ('pending', 'dispatched')) EXECUTE FUNCTION note_end()");
  }
  [[nodiscard]] int ends() { return std::stoi(value("SELECT count(*) FROM ends")); }

  std::unique_ptr<Running> start_member(std::size_t number) {
    if (number < relays) return start_relay();
    auto worker = shop_.start_program(
        {POSTRIDER_CROWD_WORKER, database_.store, "effects", std::to_string(dead_after_.count())});
    EXPECT_TRUE(worker->says("started")) << worker->err();
    return worker;
  }
  /// A database, its routes, and everybody at work.
  void start_crowd() {
    relay_settings_ = "lease_time = \"600ms\"\nlease_renewal = \"100ms\"\n";
    prepare(
        "heartbeat = \"100ms\"\ndead_after = \"" + std::to_string(dead_after_.count()) + "ms\"\n",
        route("once", "on_worker_death = \"fail\"\n") +
            route("again",
                  "on_worker_death = \"retry\"\nmax_deaths = 2\n"
                  "retry_delays = [\"1ms\", \"1ms\", \"1ms\", \"1ms\"]\n"));
    note_ends();
    shop_.write("effects", "");
    start_all();
  }
  void start_all() {
    for (std::size_t number = 0; number < members_.size(); ++number)
      members_[number] = start_member(number);
  }
  void kill_one(std::size_t number) {
    kill_9(*members_[number]);
    members_[number] = start_member(number);
  }
  /// Stops a worker until others have declared it dead, and lets it go on.
  void freeze_one(std::size_t number) {
    const std::string dead = "SELECT count(*) FROM outbox_workers WHERE state = 'dead'";
    const auto before = value(dead);
    members_[number]->signal(SIGSTOP);
    // On SQLite it may have been frozen with the lock that they need for it.
    (void)comes_true([&] { return value(dead) != before; }, 4 * dead_after_);
    members_[number]->signal(SIGCONT);
  }
  void stop_all() {
    for (std::size_t number = members_.size(); number-- > 0;)
      stop_cleanly(*members_[number]);
  }

  /// The dispatches of each delivery that got to the end of their handler.
  [[nodiscard]] std::map<std::string, std::set<std::string>> effects() const {
    std::map<std::string, std::set<std::string>> all;
    std::istringstream lines(shop_.read("effects"));
    std::string delivery;
    std::string dispatch;
    while (lines >> delivery >> dispatch)
      EXPECT_TRUE(all[delivery].insert(dispatch).second) << "one dispatch ran twice: " << dispatch;
    return all;
  }
  /// Every completed job that no handler has run in the dispatch that completed it.
  [[nodiscard]] std::set<std::string> completed_without_effect() {
    const auto all = effects();
    std::set<std::string> without;
    for (const auto& row :
         database_.rows("SELECT id, dispatch_id FROM ends WHERE status = 'completed'")) {
      const auto bar = row.find('|');
      const auto found = all.find(row.substr(0, bar));
      if (found == all.end() || found->second.count(row.substr(bar + 1)) == 0) without.insert(row);
    }
    return without;
  }
  /// Deliveries of that job that have run more than once.
  [[nodiscard]] int run_again(const std::string& job) {
    const auto all = effects();
    int again = 0;
    for (const auto& id :
         database_.rows("SELECT id FROM outbox_deliveries WHERE job = '" + job + "'")) {
      const auto found = all.find(id);
      if (found != all.end() && found->second.size() > 1) ++again;
    }
    return again;
  }

  /// What is still open, and in whose hands.
  [[nodiscard]] std::string open_jobs() {
    std::string all;
    for (const auto& row : database_.rows(
             "SELECT d.status, w.state, w.pid, w.last_seen_at, count(*) FROM outbox_deliveries d "
             "LEFT JOIN outbox_workers w ON w.id = d.worker "
             "WHERE d.status IN ('pending', 'dispatched') "
             "GROUP BY d.status, w.state, w.pid, w.last_seen_at"))
      all += row + "\n";
    return all;
  }
  /// Waits as long as jobs go on ending; how many do in a second is the machine's business.
  [[nodiscard]] bool all_end(int jobs_altogether) {
    for (int ended = ends(); ended < jobs_altogether; ended = ends())
      if (!comes_true([&] { return ends() > ended; })) return false;
    return true;
  }
  void expect_one_end_each(int jobs_altogether) {
    EXPECT_EQ(jobs("1 = 1"), jobs_altogether);
    EXPECT_EQ(jobs("status = 'completed' OR (status = 'failed' AND failure_code = 'worker_died')"),
              jobs_altogether);
    EXPECT_EQ(ends(), jobs_altogether) << "a result was accepted twice";
    EXPECT_EQ(value("SELECT count(DISTINCT id) FROM ends"), std::to_string(jobs_altogether));
    EXPECT_THAT(completed_without_effect(), IsEmpty());
    EXPECT_EQ(run_again("once"), 0) << "a death is the end of it";
    EXPECT_GT(jobs("deaths > 0"), 0) << "no worker was struck at work";
    RecordProperty("failed", jobs("status = 'failed'"));
    RecordProperty("run_again", run_again("again"));
  }

  /// A worker that starts on the host of a dead one finds it at once; this is for the others.
  std::chrono::milliseconds dead_after_{30'000};
  std::array<std::unique_ptr<Running>, relays + workers> members_;
};

TEST_P(JobsCrowd, F129_F134_F135_under_random_kills_every_job_ends_once_completed_or_worker_died) {
  const int jobs_altogether = GetParam().name == "sqlite" ? 2000 : 20'000;
  const int portion = jobs_altogether / 2 / kills;  // events, of two jobs each
  start_crowd();
  const auto random = seeded_random(20261130);
  for (int number = 0; number < kills; ++number) {
    const int aim = ends() + 1 + static_cast<int>(random->next() % static_cast<unsigned>(portion));
    write_events(portion * number, portion * (number + 1));
    ASSERT_TRUE(comes_true([&] { return ends() >= aim; })) << "nothing goes on after " << number;
    kill_one(random->next() % members_.size());
  }
  EXPECT_TRUE(all_end(jobs_altogether)) << open_jobs();
  stop_all();
  expect_one_end_each(jobs_altogether);
}

TEST_P(JobsCrowd, F131_JT_10_workers_that_were_frozen_and_taken_for_dead_change_nothing_any_more) {
  constexpr int freezes = 6;
  const int jobs_altogether = GetParam().name == "sqlite" ? 1200 : 6000;
  const int portion = jobs_altogether / 2 / freezes;
  dead_after_ = std::chrono::milliseconds(1000);
  start_crowd();
  const auto random = seeded_random(20261130);
  for (int number = 0; number < freezes; ++number) {
    const int aim = ends() + 1 + static_cast<int>(random->next() % static_cast<unsigned>(portion));
    write_events(portion * number, portion * (number + 1));
    ASSERT_TRUE(comes_true([&] { return ends() >= aim; })) << "nothing goes on after " << number;
    freeze_one(relays + random->next() % workers);
  }
  EXPECT_TRUE(all_end(jobs_altogether)) << open_jobs();
  stop_all();
  expect_one_end_each(jobs_altogether);
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsCrowd, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
