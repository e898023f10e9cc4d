#include "process/job_line.hpp"

#include <sqlite3.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "backends/postgres_database.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

// Each command says first who it is: one line, appended at once.
constexpr std::string_view record_of_run =
    "echo \"$POSTRIDER_JOB $POSTRIDER_DELIVERY_ID $POSTRIDER_DISPATCH_ID $$ "
    "$POSTRIDER_LAST_ATTEMPT\" >> runs\n";

std::string joined(int count, char** values) {
  std::string row;
  for (int i = 0; i < count; ++i)
    row += (i == 0 ? "" : "|") + std::string(values[i] == nullptr ? "" : values[i]);
  return row;
}

std::vector<std::string> sqlite_rows(const std::string& path, const std::string& sql) {
  sqlite3* opened = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &opened), SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, sqlite3_close);
  sqlite3_busy_timeout(opened, 30'000);
  std::vector<std::string> rows;
  const auto collect = [](void* to, int count, char** values, char**) {
    static_cast<std::vector<std::string>*>(to)->push_back(joined(count, values));
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(opened, sql.c_str(), collect, &rows, nullptr), SQLITE_OK)
      << sqlite3_errmsg(opened) << ": " << sql;
  return rows;
}

JobDatabase make_sqlite(Workshop& shop, const Environment& clock) {
  for (const auto& [name, setting] : clock)
    shop.variables[name] = setting;
  const auto path = shop.path("app.db").string();
  return {"sqlite:app.db", [path](const std::string& sql) { return sqlite_rows(path, sql); }, {}};
}

/// On the shared server, or on one whose clock is moved.
struct PostgresWithClock {
  std::unique_ptr<PostgresServer> server;
  std::unique_ptr<PostgresDatabase> database;
  std::unique_ptr<PostgresSession> session;
};

JobDatabase make_postgres(Workshop&, const Environment& clock) {
  auto made = std::make_shared<PostgresWithClock>();
  if (!clock.empty())
    made->server = std::make_unique<PostgresServer>(std::vector<std::string>{}, clock);
  made->database = std::make_unique<PostgresDatabase>(PostgresOptions{}, made->server.get());
  made->session = made->database->open_session();
  const auto store =
      "postgresql://postgres@127.0.0.1:" + std::to_string(made->database->server().port()) + "/" +
      made->database->name();
  auto* const session = made->session.get();
  return {store, [session](const std::string& sql) { return session->rows(sql); }, made};
}

}  // namespace

std::vector<JobDatabaseCase> job_databases() {
  return {{"sqlite", make_sqlite}, {"postgres", make_postgres}};
}

std::string job_database_name(const ::testing::TestParamInfo<JobDatabaseCase>& info) {
  return info.param.name;
}

bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  const auto name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

void JobProcesses::SetUp() {
  if (GetParam().name == "postgres") (void)lacks_postgres();
}

void JobProcesses::prepare(const std::string& worker, const std::string& routes,
                           const Environment& clock) {
  database_ = GetParam().make(shop_, clock);
  shop_.write("runs", "");
  shop_.write("postrider.toml", "store = \"" + database_.store + "\"\n[relay]\nsleep = \"50ms\"\n" +
                                    relay_settings_ + "[worker]\npoll = \"50ms\"\n" + worker +
                                    routes);
  const auto migrated = shop_.run({"migrate"});
  ASSERT_EQ(migrated.code, 0) << migrated.err;
}

std::string JobProcesses::route(const std::string& job, const std::string& more) {
  return "[[routes]]\nname = \"" + job + "\"\njob = \"" + job + "\"\nqueue = \"work\"\n" + more;
}

void JobProcesses::write_events(int from, int to) {
  std::string rows;
  for (int i = from; i < to; ++i) {
    rows += (rows.empty() ? "" : ", ") + std::string("('order', '") + std::to_string(i) +
            "', 'order.placed', '{}')";
  }
  database_.rows("INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES " +
                 rows);
}

void JobProcesses::write_event_of(const std::string& aggregate) {
  database_.rows(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES ('order', '" +
      aggregate + "', 'order.placed', '{}')");
}

std::unique_ptr<Running> JobProcesses::start_relay() {
  auto relay = shop_.start({"relay", "--loop", "--log-format", "json"});
  EXPECT_TRUE(relay->says("relay_started")) << relay->err();
  return relay;
}

std::unique_ptr<Running> JobProcesses::start_worker(const std::string& script,
                                                    const std::vector<std::string>& more) {
  return start_worker_of({"--queue", "work"}, script, more);
}

std::unique_ptr<Running> JobProcesses::start_worker_of(const std::vector<std::string>& from,
                                                       const std::string& script,
                                                       const std::vector<std::string>& more) {
  shop_.write("handle.sh", std::string(record_of_run) + script);
  std::vector<std::string> words = {"worker", "--log-format", "json"};
  words.insert(words.end(), from.begin(), from.end());
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--exec", "sh", "handle.sh"});
  auto worker = shop_.start(words);
  EXPECT_TRUE(worker->says("worker_started")) << worker->err();
  return worker;
}

std::string JobProcesses::value(const std::string& sql) {
  const auto rows = database_.rows(sql);
  return rows.empty() ? "" : rows.front().substr(0, rows.front().find('|'));
}

int JobProcesses::jobs(const std::string& where) {
  return std::stoi(
      value("SELECT count(*) FROM outbox_deliveries WHERE kind = 'job' AND (" + where + ")"));
}

bool JobProcesses::come_to(int number, const std::string& where) {
  return comes_true([&] { return jobs(where) == number; });
}

std::string JobProcesses::job(const std::string& name, const std::string& columns) {
  const auto found =
      database_.rows("SELECT " + columns + " FROM outbox_deliveries WHERE job = '" + name + "'");
  EXPECT_EQ(found.size(), 1U) << name;
  return found.empty() ? "" : found.front();
}

std::vector<HandlerRun> JobProcesses::runs() const {
  std::vector<HandlerRun> all;
  std::istringstream lines(shop_.read("runs"));
  HandlerRun run;
  std::string last;
  while (lines >> run.job >> run.delivery >> run.dispatch >> run.pid >> last) {
    run.last_attempt = last == "true";
    all.push_back(run);
  }
  return all;
}

std::vector<HandlerRun> JobProcesses::runs_come_to(std::size_t number) const {
  EXPECT_TRUE(comes_true([&] { return runs().size() >= number; }));
  return runs();
}

int told(const Running& process, const std::string& kind) {
  const auto log = process.err();
  const auto wanted = "\"kind\":\"" + kind + "\"";
  int count = 0;
  for (auto at = log.find(wanted); at != std::string::npos; at = log.find(wanted, at + 1))
    ++count;
  return count;
}

std::string line_about(const Running& process, const std::string& kind) {
  std::istringstream lines(process.err());
  for (std::string line; std::getline(lines, line);)
    if (line.find("\"kind\":\"" + kind + "\"") != std::string::npos) return line;
  return "";
}

void kill_9(Running& process) {
  process.signal(SIGKILL);
  EXPECT_EQ(process.finish().code, 128 + SIGKILL);
}

void stop_cleanly(Running& process) {
  process.signal(SIGTERM);
  const auto finished = process.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
}

}  // namespace postrider::testing
