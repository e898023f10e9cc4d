#include <algorithm>
#include <set>
#include <utility>

#include <postrider/store/sqlite.hpp>

#include "base/timestamp_text.hpp"
#include "store/common/attempt_check.hpp"
#include "store/common/strings_codec.hpp"
#include "store/sqlite/sqlite_commit_watch.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_job_recording.hpp"
#include "store/sqlite/sqlite_job_taking.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store/sqlite/sqlite_schema.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// Between two looks where no watch can be had: the user has used up fs.inotify.max_user_instances
/// or max_user_watches, or this process its descriptors. A fifth of the shortest wait between two
/// polls that a worker makes anyway.
constexpr milliseconds look_without_watch{200};

bool lives(std::string_view state) {
  const auto known = parse_worker_state(state);
  return known && *known != WorkerState::stopped && *known != WorkerState::dead;
}

class SqliteJobStore final : public JobStore {
 public:
  explicit SqliteJobStore(SqliteOptions options)
      : connection_(std::move(options), Access::read_write), random_(system_random()) {}

  JobStoreTraits traits() const override { return {"sqlite", true, false}; }

  Result<void> check_schema(Deadline deadline) override {
    return connection_.read(deadline, [&] { return compare_schema(connection_); });
  }

  Result<HeartbeatAnswer> heartbeat(const HeartbeatRequest& request, Deadline deadline) override {
    return connection_.write(deadline, [&] { return beat(request); });
  }

  Result<void> declare_dead(WorkerId worker, std::optional<Timestamp> /*now*/,
                            Deadline deadline) override {
    return connection_.write(deadline, [&] {
      auto row = connection_.query(statements::workers_declare_dead);
      row.bind(":id", id_text(worker.value()));
      return row.run();
    });
  }

  Result<std::vector<WorkerInfo>> workers_on(const std::string& host, Deadline deadline) override {
    return connection_.read(deadline, [&] { return read_workers_on(host); });
  }

  Result<TaskBatch> take(const TakeRequest& request, Deadline deadline) override {
    return write_at(request.now, deadline, [&](Timestamp now) -> Result<TaskBatch> {
      const auto may = is_alive(request.worker);
      if (!may) return may.error();
      if (!*may) return TaskBatch{};
      return take_jobs(connection_, request, ids_, now);
    });
  }

  Result<StartAnswer> start(const StartRequest& request, Deadline deadline) override {
    return write_at(request.now, deadline, [&](Timestamp now) -> Result<StartAnswer> {
      const auto may = is_alive(request.worker);
      if (!may) return may.error();
      if (!*may) return StartAnswer{StartAnswer::Kind::worker_gone, std::nullopt};
      return start_job(connection_, request, now);
    });
  }

  Result<TaskBatch> hand_out(const HandOutRequest& request, Deadline deadline) override {
    return write_at(request.now, deadline,
                    [&](Timestamp now) { return hand_out_jobs(connection_, request, ids_, now); });
  }

  Result<std::vector<RecordAnswer>> record(const RecordRequest& request,
                                           Deadline deadline) override {
    if (request.updates.empty()) return std::vector<RecordAnswer>{};
    using Answers = std::vector<RecordAnswer>;
    return write_at(request.now, deadline, [&](Timestamp now) -> Result<Answers> {
      Answers answers;
      answers.reserve(request.updates.size());
      for (const auto& update : request.updates) {
        const auto answer = record_end(connection_, update, ids_, now);
        if (!answer) return answer.error();
        answers.push_back(*answer);
      }
      return answers;
    });
  }

  Result<AttemptState> touch(const AttemptUpdate& update, Deadline deadline) override {
    if (auto checked = check_attempt(update, "sqlite"); !checked) return checked.error();
    const auto body = [&]() -> Result<AttemptState> {
      const auto now = connection_.now(update.now);
      if (!now) return now.error();
      return touch_attempt(connection_, update, *now);
    };
    return writes(update) ? connection_.write(deadline, body) : connection_.read(deadline, body);
  }

  Result<LostBatch> lost(const LostRequest& request, Deadline deadline) override {
    return write_at(request.now, deadline, [&](Timestamp now) -> Result<LostBatch> {
      auto died = expire_workers(now - request.dead_after);
      if (!died) return died.error();
      auto batch = find_lost(connection_, request.limit, now);
      if (batch) batch->died = std::move(died).value();
      return batch;
    });
  }

  Result<void> await_work(const std::vector<std::string>& /*queues*/, Deadline deadline) override;
  void wake() noexcept override { watch_.wake(); }

 private:
  template <class Body>
  std::invoke_result_t<Body, Timestamp> write_at(std::optional<Timestamp> given, Deadline deadline,
                                                 Body body) {
    return connection_.write(deadline, [&]() -> std::invoke_result_t<Body, Timestamp> {
      const auto now = connection_.now(given);
      if (!now) return now.error();
      return body(*now);
    });
  }

  Result<HeartbeatAnswer> beat(const HeartbeatRequest& request);
  Result<bool> is_known(const WorkerInfo& worker);
  Result<bool> is_alive(WorkerId worker);
  Result<std::optional<std::string>> state_of(WorkerId worker);
  Result<std::vector<WorkerInfo>> read_workers_on(const std::string& host);
  Result<std::vector<WorkerId>> expire_workers(Timestamp before);
  Result<bool> others_have_committed();

  SqliteConnection connection_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
  SqliteCommitWatch watch_;
  std::optional<std::int64_t> seen_version_;  ///< for waits without a watch
};

Result<HeartbeatAnswer> SqliteJobStore::beat(const HeartbeatRequest& request) {
  const auto now = connection_.now(request.now);
  if (!now) return now.error();
  const auto& worker = request.worker;
  {
    auto row = connection_.query(statements::workers_beat);
    row.bind(":id", id_text(worker.id.value()))
        .bind(":name", worker.name)
        .bind(":host", worker.host)
        .bind(":pid", worker.pid)
        .bind(":version", worker.version)
        .bind(":queues", encode_strings(worker.queues))
        .bind(":state", to_string(worker.state))
        .bind(":now", timestamp_text(*now));
    if (auto done = row.run(); !done) return done.error();
  }
  HeartbeatAnswer answer;
  const auto known = is_known(worker);
  if (!known) return known.error();
  answer.known = *known;

  std::set<DispatchId> current;
  auto rows = connection_.query(statements::jobs_running);
  rows.bind(":worker", id_text(worker.id.value()));
  while (rows.next()) {
    const auto uuid = Uuid::parse(rows.text(0));
    if (!uuid) continue;
    const DispatchId id(*uuid);
    current.insert(id);
    const bool runs =
        std::find(request.running.begin(), request.running.end(), id) != request.running.end();
    if (runs && !rows.is_null(1)) answer.cancelled.push_back(id);
  }
  if (auto read = rows.result(); !read) return read.error();
  for (const auto& id : request.running) {
    if (!current.contains(id)) answer.lost.push_back(id);
  }
  return answer;
}

/// Whether the row is as the worker says. One that has signed off may say so again.
Result<bool> SqliteJobStore::is_known(const WorkerInfo& worker) {
  const auto state = state_of(worker.id);
  if (!state) return state.error();
  return *state == to_string(worker.state);
}

Result<bool> SqliteJobStore::is_alive(WorkerId worker) {
  const auto state = state_of(worker);
  if (!state) return state.error();
  return *state && lives(**state);
}

Result<std::optional<std::string>> SqliteJobStore::state_of(WorkerId worker) {
  auto row = connection_.query(statements::workers_state);
  row.bind(":id", id_text(worker.value()));
  std::optional<std::string> state;
  if (row.next()) state = row.text(0);
  if (auto read = row.result(); !read) return read.error();
  return state;
}

Result<std::vector<WorkerInfo>> SqliteJobStore::read_workers_on(const std::string& host) {
  std::vector<WorkerInfo> workers;
  auto rows = connection_.query(statements::workers_on_host);
  rows.bind(":host", host);
  while (rows.next()) {
    const auto id = Uuid::parse(rows.text(0));
    const auto queues = decode_strings(rows.text(5));
    const auto state = parse_worker_state(rows.text(6));
    // A row that a person has written by hand is nobody's that we could ask for.
    if (!id || !queues || !state) continue;
    workers.push_back({WorkerId(*id), rows.text(1), rows.text(2), rows.integer(3), rows.text(4),
                       *queues, *state});
  }
  if (auto read = rows.result(); !read) return read.error();
  return workers;
}

Result<std::vector<WorkerId>> SqliteJobStore::expire_workers(Timestamp before) {
  std::vector<WorkerId> died;
  auto rows = connection_.query(statements::workers_expire);
  rows.bind(":before", timestamp_text(before));
  while (rows.next()) {
    if (const auto id = Uuid::parse(rows.text(0))) died.emplace_back(*id);
  }
  if (auto read = rows.result(); !read) return read.error();
  return died;
}

/// A write of this very object ends the next wait, too: it cannot be told from one that another
/// writer has begun meanwhile.
Result<void> SqliteJobStore::await_work(const std::vector<std::string>& /*queues*/,
                                        Deadline deadline) {
  using Woken = SqliteCommitWatch::Woken;
  do {
    if (auto ready = connection_.ready(deadline); !ready) return ready;
    // The first read creates the log.
    const auto others = others_have_committed();
    if (!others) return others.error();
    if (watch_.arm(connection_.log_path())) return {};
    if (!watch_.works() && *others) return {};
    const auto patience =
        watch_.works() ? deadline.remaining() : std::min(deadline.remaining(), look_without_watch);
    if (watch_.wait(patience) != Woken::by_deadline) return {};
  } while (!deadline.passed());
  return {};
}

Result<bool> SqliteJobStore::others_have_committed() {
  const auto version = connection_.data_version();
  if (!version) return version.error();
  return std::exchange(seen_version_, *version) != *version;
}

}  // namespace
}  // namespace store::sqlite

std::unique_ptr<JobStore> make_sqlite_job_store(SqliteOptions options) {
  return std::make_unique<store::sqlite::SqliteJobStore>(std::move(options));
}

}  // namespace postrider
