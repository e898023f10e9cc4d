#include "cli/cli_jobs.hpp"

#include <poll.h>

#include <csignal>

#include <gmock/gmock.h>

namespace postrider::testing {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using Json = nlohmann::json;

namespace {

constexpr std::string_view secret = "c4n4ry";
constexpr const char* nobody = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

void CliJobs::SetUp() {
  auto made = GetParam().make();
  if (IsSkipped() || HasFatalFailure() || !made) return;
  database_ = std::move(*made);
}

void CliJobs::configure(const std::string& worker) {
  shop_.write("postrider.toml", "store = \"" + database_.store +
                                    "\"\n[worker]\nheartbeat = \"100ms\"\npoll = \"200ms\"\n" +
                                    worker +
                                    "[[routes]]\nname = \"all\"\nto = \"file:out.jsonl\"\n");
}

void CliJobs::prepare(const std::string& worker) {
  configure(worker);
  const auto migrated = shop_.run({"migrate"});
  ASSERT_EQ(migrated.code, 0) << migrated.err;
}

std::string CliJobs::enqueue(const std::vector<std::string>& more) {
  const auto made =
      shop_.run(joined({"job", "enqueue", "ship_order", "--queue", "shipping"}, more));
  EXPECT_EQ(made.code, 0) << made.err;
  return made.out.substr(0, made.out.find('\n'));
}

Json CliJobs::show(const std::string& id) {
  const auto shown = shop_.run({"job", "show", id, "--format", "json"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  return Json::parse(shown.out, nullptr, false);
}

std::string CliJobs::will_be(const std::string& id, const std::string& status) {
  std::string now;
  for (int i = 0; i < 600 && now != status; ++i) {
    if (i > 0) ::poll(nullptr, 0, 50);
    now = show(id)["status"].get<std::string>();
  }
  return now;
}

std::unique_ptr<Running> CliJobs::start_worker(const std::string& script,
                                               const std::vector<std::string>& more) {
  shop_.write("handle.sh", script);
  auto words = joined({"worker", "--queue", "shipping", "--log-format", "json"}, more);
  auto worker = shop_.start(joined(std::move(words), {"--exec", "sh", "handle.sh"}));
  EXPECT_TRUE(worker->says("worker_started")) << worker->err();
  return worker;
}

TEST_P(CliJobs, an_enqueued_job_is_shown_listed_and_counted_without_its_payload) {
  prepare();
  const auto id = enqueue({"--payload", std::string(secret), "--delay", "1h", "--priority", "-3"});
  EXPECT_THAT(id, MatchesRegex("[0-9a-f-]{36}"));

  const auto job = show(id);
  EXPECT_EQ(job["job"], "ship_order");
  EXPECT_EQ(job["queue"], "shipping");
  EXPECT_EQ(job["status"], "pending");
  EXPECT_EQ(job["event_type"], "ship_order");
  EXPECT_EQ(job["route"], "@enqueue");
  EXPECT_EQ(job["priority"], -3);
  EXPECT_EQ(job["timeout_ms"], 600'000);

  const auto status = Json::parse(shop_.run({"status", "--format", "json"}).out);
  ASSERT_EQ(status["jobs"].size(), 1U);
  EXPECT_EQ(status["jobs"][0]["queue"], "shipping");
  EXPECT_EQ(status["jobs"][0]["job"], "ship_order");
  EXPECT_EQ(status["jobs"][0]["delayed"], 1);

  for (const auto& words : std::vector<std::vector<std::string>>{{"job", "show", id},
                                                                 {"job", "list"},
                                                                 {"queue", "list"},
                                                                 {"status"},
                                                                 {"deliveries"},
                                                                 {"events"}}) {
    const auto shown = shop_.run(words);
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out + shown.err, Not(HasSubstr(std::string(secret)))) << words.front();
  }
  EXPECT_THAT(shop_.run({"job", "list"}).out, AllOf(HasSubstr(id), HasSubstr("shipping")));
  EXPECT_THAT(shop_.run({"status"}).out, HasSubstr("ship_order"));
}

TEST_P(CliJobs, an_enqueued_job_has_the_hooks_that_it_was_given) {
  prepare();
  const auto job = show(enqueue({"--completed-event", "ship.done", "--retry-event", "ship.again",
                                 "--failed-event", "ship.failed", "--death-event", "ship.died"}));

  EXPECT_EQ(job["hooks"]["completed_event"], "ship.done");
  EXPECT_EQ(job["hooks"]["retry_event"], "ship.again");
  EXPECT_EQ(job["hooks"]["failed_event"], "ship.failed");
  EXPECT_EQ(job["hooks"]["death_event"], "ship.died");
  EXPECT_TRUE(job["failures"].empty());
  EXPECT_TRUE(show(enqueue())["hooks"]["failed_event"].is_null());
}

TEST_P(CliJobs, no_relay_sends_the_event_of_an_enqueued_job) {
  prepare();
  enqueue();
  EXPECT_EQ(shop_.run({"relay"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(shop_.path("out.jsonl")));
}

TEST_P(CliJobs, a_unique_job_that_waits_already_is_named_instead) {
  prepare();
  const auto first = enqueue({"--unique-key", "order 17"});
  const auto second = shop_.run(
      {"job", "enqueue", "ship_order", "--queue", "shipping", "--unique-key", "order 17"});

  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.out, first + "\n");
  EXPECT_THAT(second.err, HasSubstr("nothing was written"));
  EXPECT_EQ(Json::parse(shop_.run({"job", "list", "--format", "json"}).out)["jobs"].size(), 1U);
}

TEST_P(CliJobs, a_waiting_job_is_cancelled_once) {
  prepare();
  const auto id = enqueue();

  const auto done = shop_.run({"job", "cancel", id, "--reason", "the order is withdrawn"});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.out, id + " is cancelled.\n");
  EXPECT_EQ(show(id)["status"], "cancelled");

  const auto again = shop_.run({"job", "cancel", id});
  EXPECT_EQ(again.code, 65);
  EXPECT_THAT(again.err, HasSubstr("cancelled and cannot be cancelled any more"));
  EXPECT_EQ(shop_.run({"job", "cancel", nobody}).code, 65);
  EXPECT_EQ(shop_.run({"job", "show", nobody}).code, 65);
  EXPECT_THAT(shop_.run({"job", "cancel", "17"}).err, HasSubstr("Give a UUID"));
}

TEST_P(CliJobs, a_waiting_job_is_moved) {
  prepare();
  const auto id = enqueue({"--delay", "1h"});

  EXPECT_EQ(shop_.run({"job", "reschedule", id, "--available-at", "2030-01-01T00:00:00Z"}).code, 0);
  EXPECT_EQ(show(id)["available_at"], "2030-01-01T00:00:00.000000Z");
  EXPECT_EQ(shop_.run({"job", "reschedule", id}).code, 0);
  EXPECT_THAT(shop_.run({"status", "--format", "json"}).out, HasSubstr("\"due\": 1"));
  shop_.run({"job", "cancel", id});
  EXPECT_EQ(shop_.run({"job", "reschedule", id, "--delay", "1h"}).code, 65);
}

TEST_P(CliJobs, queues_are_paused_resumed_and_limited) {
  prepare();
  enqueue();
  EXPECT_THAT(shop_.run({"queue", "pause", "shipping", "--reason", "the lorry is late"}).out,
              HasSubstr("is paused"));
  EXPECT_THAT(shop_.run({"queue", "pause", "shipping"}).out, HasSubstr("was paused already"));
  EXPECT_THAT(shop_.run({"queue", "limit", "shipping", "100/1m"}).out,
              HasSubstr("at most 100 jobs in 1m"));
  EXPECT_THAT(shop_.run({"status"}).out, HasSubstr("queue shipping is paused"));

  const auto queues = Json::parse(shop_.run({"queue", "list", "--format", "json"}).out);
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0]["queue"], "shipping");
  EXPECT_EQ(queues[0]["paused"], true);
  EXPECT_EQ(queues[0]["reason"], "the lorry is late");
  EXPECT_EQ(queues[0]["rate_limit"], 100);
  EXPECT_EQ(queues[0]["rate_period_ms"], 60'000);
  EXPECT_EQ(queues[0]["due"], 1);
  EXPECT_THAT(shop_.run({"queue", "list"}).out,
              AllOf(HasSubstr("paused"), HasSubstr("100/1m"), HasSubstr("the lorry is late")));

  EXPECT_THAT(shop_.run({"queue", "resume", "shipping"}).out, HasSubstr("goes on"));
  EXPECT_THAT(shop_.run({"queue", "limit", "shipping", "off"}).out, HasSubstr("no limit"));
  EXPECT_THAT(shop_.run({"queue", "list"}).out, HasSubstr("active"));
}

TEST_P(CliJobs, bad_input_is_refused_with_its_reason_and_leaves_nothing) {
  prepare();
  struct Row {
    std::vector<std::string> words;
    int code;
    std::string reason;
  };
  const auto job = [](const std::vector<std::string>& more) {
    return joined({"job", "enqueue", "ship_order", "--queue", "shipping"}, more);
  };
  const std::vector<Row> rows = {
      {{"job", "enqueue", "", "--queue", "shipping"}, 65, "the job ''"},
      {{"job", "enqueue", "ship_order", "--queue", ""}, 65, "the queue ''"},
      {{"job", "enqueue", "ship_order", "--queue", "Ship/ping"}, 65, "the queue 'Ship/ping'"},
      {{"job", "enqueue", "ship_order"}, 64, "--queue"},
      {job({"--retry-delays", "0s"}), 65, "retry_delays"},
      {job({"--retry-delays", "-1s"}), 65, "--retry-delays"},
      {job({"--retry-delays", "1.5s"}), 65, "--retry-delays"},
      {job({"--retry-delays", "1s,,2s"}), 65, "--retry-delays"},
      {job({"--timeout", "0s"}), 65, "timeout"},
      {job({"--timeout", "1.5s"}), 65, "--timeout"},
      {job({"--timeout", "8d"}), 65, "timeout"},
      {job({"--priority", "101"}), 64, "--priority"},
      {job({"--serial-limit", "2"}), 64, "--serial-limit"},
      {job({"--on-worker-death", "ignore"}), 64, "--on-worker-death"},
      {job({"--unique-key", "a\nb"}), 65, "unique_key"},
      {job({"--failed-event", "ship.*"}), 65, "failed_event is ship.*, a pattern"},
      {job({"--parameter", "x"}), 64, "--parameter"},
      {job({"--available-at", "tomorrow"}), 65, "--available-at"},
      {job({"--id", "17"}), 65, "--id"},
      {{"queue", "pause", ""}, 65, "the queue ''"},
      {{"queue", "limit", "mail", "100"}, 65, "100/1m"},
      {{"queue", "limit", "mail", "0/1s"}, 65, "rate limit"},
      {{"queue", "limit", "mail", "-1/1s"}, 65, "rate limit"},
      {{"queue", "limit", "mail", "1/0s"}, 65, "period"},
      {{"job", "list", "--limit", "0"}, 64, "--limit"},
      {{"job", "list", "--status", "held"}, 64, "--status"},
      {{"worker", "--queue", "shipping"}, 64, "--exec CMD or --http URL"},
      {{"worker", "--queue", "shipping", "--exec"}, 64, "--exec"},
      {{"worker", "--queue", "Ship/ping", "--exec", "true"}, 64, "the queue 'Ship/ping'"},
      {{"worker", "--queue", "mail:0", "--exec", "true"}, 64, "the weight of queue 'mail'"},
      {{"worker", "--queue", "mail:x", "--exec", "true"}, 64, "Write mail or mail:3"},
      {{"worker", "--queue", "mail", "--queue", "mail", "--exec", "true"}, 64, "named twice"},
      {{"worker", "--concurrency", "0", "--queue", "mail", "--exec", "true"}, 64, "concurrency"},
      {{"worker", "--exec", "true"}, 78, "Name at least one queue"},
      {{"worker", "--queue", "mail", "--http", "file:jobs"}, 78, "http"},
      {{"attempt", "current"}, 65, "POSTRIDER_DELIVERY_ID is not set"},
      {{"attempt", "current", "--delivery", "17", "--dispatch", nobody}, 65, "'17' is no id"},
      {{"attempt", "progress", "101"}, 64, "101"},
      {{"attempt", "extend", "soon", "--delivery", nobody, "--dispatch", nobody},
       65,
       "no duration"},
  };
  for (const auto& row : rows) {
    const auto refused = shop_.run(row.words);
    EXPECT_EQ(refused.code, row.code) << row.reason << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(row.reason));
    EXPECT_THAT(refused.out, IsEmpty());
  }
  EXPECT_EQ(Json::parse(shop_.run({"status", "--format", "json"}).out)["events"]["total"], 0);
}

TEST_P(CliJobs, JT_11_a_heartbeat_that_is_too_slow_for_the_threshold_is_a_configuration_error) {
  configure("dead_after = \"300ms\"\n");
  const auto refused = shop_.run({"worker", "--queue", "shipping", "--exec", "true"});
  EXPECT_EQ(refused.code, 78);
  EXPECT_THAT(refused.err, HasSubstr("a quarter of dead_after"));
}

TEST_P(CliJobs, an_attempt_that_is_nobodys_is_stale) {
  prepare();
  const auto asked = shop_.run({"attempt", "current", "--delivery", nobody, "--dispatch", nobody});
  EXPECT_EQ(asked.code, 3);
  EXPECT_EQ(asked.out, "stale\n");
}

TEST_P(CliJobs, a_worker_runs_what_is_enqueued_and_stops_cleanly) {
  prepare();
  const auto before = enqueue({"--payload", "{\"order\":17}"});
  auto worker = start_worker("cat >> events; echo $POSTRIDER_JOB $POSTRIDER_QUEUE >> names\n");
  const auto during = enqueue();
  EXPECT_EQ(will_be(before, "completed"), "completed");
  EXPECT_EQ(will_be(during, "completed"), "completed");
  const auto workers = Json::parse(shop_.run({"worker", "list", "--format", "json"}).out);
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0]["state"], "running");
  EXPECT_EQ(workers[0]["queues"], Json::array({"shipping"}));

  worker->signal(SIGTERM);
  const auto ended = worker->finish();

  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("worker_stopped"), HasSubstr("\"completed\":2")));
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_THAT(shop_.read("events"), HasSubstr("order"));
  EXPECT_EQ(shop_.read("names"), "ship_order shipping\nship_order shipping\n");
  EXPECT_EQ(shop_.run({"worker", "list"}).out, "No worker is running.\n");
  EXPECT_THAT(shop_.run({"worker", "list", "--ended"}).out, HasSubstr("stopped"));
}

TEST_P(CliJobs, exit_codes_of_a_command_decide_what_becomes_of_its_job) {
  prepare();
  const auto failed = enqueue();
  const auto retried = enqueue({"--retry-delays", "1h"});
  auto worker = start_worker(
      "read -r event; case \"$POSTRIDER_LAST_ATTEMPT\" in true) exit 75;; "
      "esac; [ -e once ] && exit 75; touch once; exit 3\n",
      {"--concurrency", "1"});
  EXPECT_EQ(will_be(failed, "failed"), "failed");
  for (int i = 0; i < 600 && show(retried)["attempts"] == 0; ++i)
    ::poll(nullptr, 0, 50);
  EXPECT_EQ(show(retried)["status"], "pending");
  EXPECT_EQ(show(retried)["attempts"], 1);
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->finish().code, 0);
}

TEST_P(CliJobs, a_handler_in_any_language_reports_by_the_command_line) {
  prepare();
  // Of the worker's POSTRIDER_… nothing is handed on but this, so that the handler finds the store.
  std::filesystem::rename(shop_.path("postrider.toml"), shop_.path("named.toml"));
  shop_.variables["POSTRIDER_CONFIG"] = "named.toml";
  const auto id = enqueue();
  const std::string postrider = "'" POSTRIDER_TEST_BIN_DIR "/postrider' attempt ";
  auto worker =
      start_worker("set -e\n" + postrider + "current >> said\n" + postrider +
                   "extend 20m >> said\n" + postrider + "progress 40 --note 'page 4' >> said\n" +
                   postrider + "checkpoint page=4 >> said\n");
  EXPECT_EQ(will_be(id, "completed"), "completed") << worker->err();
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->finish().code, 0);

  EXPECT_THAT(shop_.read("said"), MatchesRegex("current, (10m|9m [0-9]+s) left\n"
                                               "(current, (20m|19m [0-9]+s) left\n){3}"));
  const auto job = show(id);
  EXPECT_EQ(job["percent"], 40);
  EXPECT_EQ(job["note"], "page 4");
  EXPECT_EQ(job["checkpoint_bytes"], 6);
}

TEST_P(CliJobs, JT_18_a_handler_that_asks_learns_of_a_cancel_and_the_job_ends_as_cancelled) {
  prepare();
  const auto id = enqueue();
  auto worker = start_worker("trap '' TERM\nwhile '" POSTRIDER_TEST_BIN_DIR
                             "/postrider' attempt current; do sleep 0.05; done\n"
                             "exit 75\n");
  EXPECT_EQ(will_be(id, "dispatched"), "dispatched");
  const auto asked = shop_.run({"job", "cancel", id});
  EXPECT_THAT(asked.out, HasSubstr("is asked to stop it"));

  EXPECT_EQ(will_be(id, "cancelled"), "cancelled") << worker->err();
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->finish().code, 0);
}

TEST_P(CliJobs, JT_15_a_job_longer_than_the_grace_is_given_back_and_the_exit_code_tells) {
  prepare("grace = \"100ms\"\nhard_grace = \"100ms\"\n");
  const auto id = enqueue();
  auto worker = start_worker("trap '' TERM; echo yes > begun; sleep 600\n");
  ASSERT_TRUE(shop_.will_hold("begun", "yes"));
  EXPECT_EQ(will_be(id, "dispatched"), "dispatched");

  worker->signal(SIGTERM);
  const auto ended = worker->finish();

  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("\"released\":1"));
  const auto job = show(id);
  EXPECT_EQ(job["status"], "pending");
  EXPECT_EQ(job["attempts"], 0);
  EXPECT_EQ(job["interruptions"], 1);
  EXPECT_EQ(job["deaths"], 0);
}

TEST_P(CliJobs, JT_15_a_second_signal_asks_running_jobs_to_stop_at_once) {
  prepare("grace = \"10m\"\nhard_grace = \"10m\"\n");
  const auto id = enqueue();
  auto worker =
      start_worker("trap 'exit 143' TERM; echo yes > begun; while true; do sleep 0.05; done\n");
  ASSERT_TRUE(shop_.will_hold("begun", "yes"));

  worker->signal(SIGTERM);
  ASSERT_TRUE(worker->says("worker_quiet"));
  ::poll(nullptr, 0, 1100);  // two signals within a second are one wish
  worker->signal(SIGTERM);
  const auto ended = worker->finish();

  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_EQ(show(id)["status"], "pending");
  EXPECT_EQ(show(id)["attempts"], 0);
  EXPECT_EQ(show(id)["interruptions"], 1);
}

TEST_P(CliJobs, an_endpoint_gets_its_jobs_over_http) {
  prepare();
  const auto id = enqueue({"--payload", "{\"order\":17}"});
  const auto endpoint =
      shop_.start_program({"python3", "-c",
                           "import http.server\n"
                           "class Handler(http.server.BaseHTTPRequestHandler):\n"
                           "  def do_POST(self):\n"
                           "    got = self.rfile.read(int(self.headers['Content-Length']))\n"
                           "    open('got', 'ab').write(got)\n"
                           "    self.send_response(204)\n"
                           "    self.end_headers()\n"
                           "server = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n"
                           "open('port', 'w').write(str(server.server_port) + ' is it')\n"
                           "server.serve_forever()\n"});
  ASSERT_TRUE(shop_.will_hold("port", " is it"));
  const auto text = shop_.read("port");
  const auto url = "http://127.0.0.1:" + text.substr(0, text.find(' ')) + "/jobs";

  const auto worker = shop_.start({"worker", "--queue", "shipping", "--http", url});

  EXPECT_EQ(will_be(id, "completed"), "completed") << worker->err();
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->finish().code, 0);
  EXPECT_THAT(shop_.read("got"), HasSubstr("order"));
}

}  // namespace postrider::testing
