// What becomes of jobs, told by events, and the history of their failures: real processes.
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <postrider/job.hpp>

#include "process/job_line.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The routes that the page shows: its first block of TOML behind the headline.
std::string shown_routes() {
  std::ifstream file(POSTRIDER_TEST_SOURCE_DIR "/docs/learn/jobs.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::string fence = "```toml\n";
  const auto begin = page.find(fence, page.find("## Hooks"));
  if (begin == std::string::npos) return "";
  const auto end = page.find("```", begin + fence.size());
  return page.substr(begin + fence.size(), end - begin - fence.size());
}

class JobsHooks : public JobProcesses {
 protected:
  /// Waits for that number of events of a type.
  bool events_come_to(int number, const std::string& type) {
    return comes_true([&] { return events_of(type) == number; });
  }
  int events_of(const std::string& type) {
    return std::stoi(value("SELECT count(*) FROM outbox_events WHERE type = '" + type + "'"));
  }
  /// Of events of a type, in their order.
  std::vector<nlohmann::json> payloads_of(const std::string& type) {
    std::vector<nlohmann::json> payloads;
    for (const auto& text : database_.rows("SELECT payload FROM outbox_events WHERE type = '" +
                                           type + "' ORDER BY seq"))
      payloads.push_back(nlohmann::json::parse(text));
    return payloads;
  }
  static std::string hooked_route(const std::string& more) {
    return route("print",
                 "events = [\"order.placed\"]\nfailed_event = \"print.failed\"\n"
                 "death_event = \"print.died\"\nretry_event = \"print.retried\"\n" +
                     more);
  }
};

TEST_P(JobsHooks, J_22_the_page_s_failed_job_is_compensated_and_told_to_a_file) {
  const auto routes = shown_routes();
  ASSERT_THAT(routes, HasSubstr("failed_event"));
  prepare("", routes);
  const auto relay = start_relay();
  const auto worker =
      start_worker("[ $POSTRIDER_JOB = refund_order ] || exit 75\n", {"--queue", "shipping"});
  write_event_of("17");

  EXPECT_TRUE(comes_true([&] {
    return value(
               "SELECT count(*) FROM outbox_deliveries WHERE job = 'refund_order' AND status = "
               "'completed'") == "1";
  })) << worker->err();
  EXPECT_TRUE(comes_true([&] {
    return shop_.read("shipping.jsonl").find("shipping.failed") != std::string::npos;
  })) << relay->err();

  EXPECT_EQ(job("book_carrier", "status, attempts"), "failed|2");
  const auto payloads = payloads_of("shipping.failed");
  ASSERT_THAT(payloads, SizeIs(1));
  const auto& payload = payloads[0];
  EXPECT_EQ(payload["transition"], "failed");
  EXPECT_EQ(payload["delivery_id"], job("book_carrier", "id"));
  EXPECT_EQ(payload["event_id"], job("book_carrier", "event_id"));
  EXPECT_EQ(payload["attempt"], 2);
  EXPECT_EQ(payload["last_attempt"], true);
  EXPECT_EQ(payload["code"], job("book_carrier", "failure_code"));
  EXPECT_EQ(value("SELECT aggregate_id FROM outbox_events WHERE type = 'shipping.failed'"), "17");
  const auto line = nlohmann::json::parse(shop_.read("shipping.jsonl"));
  EXPECT_EQ(line["headers"]["causation-id"], payload["event_id"]);
  EXPECT_EQ(events_of("shipping.worker_died"), 0);
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsHooks, J_22_the_event_is_written_by_the_transaction_that_ends_the_job) {
  if (GetParam().name != "postgres") GTEST_SKIP() << "transactions have no numbers here";
  prepare("", hooked_route("retry_delays = []\n"));
  const auto relay = start_relay();
  const auto worker = start_worker("exit 1\n");
  write_event_of("1");
  ASSERT_TRUE(events_come_to(1, "print.failed")) << worker->err();

  EXPECT_EQ(value("SELECT count(*) FROM outbox_events AS e CROSS JOIN outbox_deliveries AS d WHERE "
                  "e.type = 'print.failed' AND d.job = 'print' AND e.xid::xid = d.xmin"),
            "1");
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsHooks, J_22_JT_25_each_death_is_told_once_however_many_look_for_it) {
  prepare("heartbeat = \"200ms\"\ndead_after = \"2s\"\n",
          hooked_route("on_worker_death = \"retry\"\nretry_delays = [\"1h\"]\n"));
  const auto one = start_relay();
  const auto two = start_relay();
  const auto worker = start_worker("exec sleep 600\n", {"--concurrency", "6"});
  write_events(0, 6);
  const auto started = runs_come_to(6);
  ASSERT_THAT(started, SizeIs(6)) << worker->err();

  ::kill(started[0].pid, SIGKILL);
  EXPECT_TRUE(events_come_to(1, "print.died")) << worker->err();
  EXPECT_EQ(payloads_of("print.died").at(0)["signal"], SIGKILL);
  kill_9(*worker);
  EXPECT_TRUE(come_to(6, "status = 'pending' AND deaths = 1 AND attempts = 1"));
  stop_cleanly(*one);
  stop_cleanly(*two);

  EXPECT_EQ(events_of("print.died"), 6);
  EXPECT_EQ(events_of("print.retried"), 6);
  EXPECT_EQ(events_of("print.failed"), 0);
  std::vector<std::string> codes;
  for (const auto& payload : payloads_of("print.died"))
    codes.push_back(payload["code"]);
  EXPECT_THAT(codes, Each(std::string("worker_died")));
}

TEST_P(JobsHooks, A_hook_that_feeds_its_own_job_comes_to_an_end) {
  prepare("", route("print",
                    "events = [\"*\"]\nretry_delays = []\n"
                    "failed_event = \"print.failed\"\n"));
  const auto relay = start_relay();
  const auto worker = start_worker("exit 1\n");
  write_event_of("1");

  EXPECT_TRUE(come_to(JobHooks::most_depth + 1, "status = 'failed'")) << worker->err();
  EXPECT_EQ(events_of("print.failed"), JobHooks::most_depth);
  EXPECT_TRUE(comes_true([&] { return told(*relay, "hooks_dropped") == 1; })) << relay->err();
  EXPECT_THAT(line_about(*relay, "hooks_dropped"), HasSubstr("\"warning\""));
  stop_cleanly(*worker);
  stop_cleanly(*relay);
  EXPECT_EQ(events_of("print.failed"), JobHooks::most_depth) << "and nothing came later";
}

TEST_P(JobsHooks, J_21_job_show_tells_of_each_failed_attempt) {
  prepare("", route("print",
                    "retry_delays = [\"1ms\"]\nfailed_event = \"print.failed\"\n"
                    "events = [\"order.placed\"]\n"));
  const auto relay = start_relay();
  const auto worker = start_worker(
      "[ $POSTRIDER_LAST_ATTEMPT = true ] && kill -9 $$\n"
      "echo '{\"outcome\":\"retry\",\"code\":\"paper_out\",\"detail\":\"tray 2\"}' "
      ">&$POSTRIDER_RESULT_FD\n");
  write_event_of("1");
  ASSERT_TRUE(come_to(1, "status = 'failed'")) << worker->err();
  const auto id = job("print", "id");

  const auto shown = shop_.run({"job", "show", id, "--format", "json"});

  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["hooks"]["failed_event"], "print.failed");
  EXPECT_EQ(json["hooks"]["death_event"], nullptr);
  const auto& failures = json["failures"];
  ASSERT_THAT(failures, SizeIs(2));
  EXPECT_EQ(failures[0]["attempt"], 1);
  EXPECT_EQ(failures[0]["code"], "paper_out");
  EXPECT_EQ(failures[0]["detail"], "tray 2");
  EXPECT_EQ(failures[0]["worker"], value("SELECT id FROM outbox_workers"));
  EXPECT_EQ(failures[1]["attempt"], 2);
  EXPECT_EQ(failures[1]["code"], "worker_died");
  EXPECT_EQ(failures[1]["detail"], "signal 9");
  EXPECT_NE(failures[0]["dispatch_id"], failures[1]["dispatch_id"]);

  const auto table = shop_.run({"job", "show", id});
  EXPECT_THAT(table.out, HasSubstr("failed_event = print.failed"));
  EXPECT_THAT(table.out, HasSubstr("paper_out"));
  EXPECT_THAT(table.out, HasSubstr("tray 2"));
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsHooks, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
