// What commands say of their jobs, by `postrider worker --exec` as people call it.
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include "process/job_line.hpp"
#include "process/patience.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

/// The program that a page shows, between its first ```python and the end of that block.
std::string handler_shown_in(const std::string& name) {
  std::ifstream file(POSTRIDER_TEST_SOURCE_DIR "/" + name);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::string fence = "```python\n";
  const auto begin = page.find(fence);
  if (begin == std::string::npos) return "";
  const auto end = page.find("```", begin + fence.size());
  return page.substr(begin + fence.size(), end - begin - fence.size());
}

class JobsCommands : public JobProcesses {
 protected:
  void order(const std::string& number, const std::string& payload) {
    database_.rows(
        "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES "
        "('order', '" +
        number + "', 'order.placed', '" + payload + "')");
  }
  std::string in_shop(const std::string& sql) {
    const auto ran = shop_.run_program({"sqlite3", "shop.db", sql});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  }
  [[nodiscard]] std::unique_ptr<Running> start_handler_shown_in(const std::string& page) {
    const auto handler = handler_shown_in(page);
    EXPECT_THAT(handler, HasSubstr("json.load(sys.stdin)"));
    shop_.write("ship_order.py", handler);
    return shop_.start({"worker", "--queue", "work", "--log-format", "json", "--exec", "python3",
                        "ship_order.py", "shop.db"});
  }
  /// Until the command is to end, each of its runs is put off.
  [[nodiscard]] std::unique_ptr<Running> start_snoozing_worker() {
    return start_worker(
        "[ -e calm ] || echo '{\"outcome\":\"snooze\",\"delay\":\"1ms\"}' "
        ">&$POSTRIDER_RESULT_FD\n");
  }
};

TEST_P(JobsCommands, the_Python_handler_of_the_page_does_its_jobs) {
  prepare("", route("ship_order", "retry_delays = [\"1h\"]\n"));
  const auto relay = start_relay();
  const auto worker = start_handler_shown_in("docs/operate/jobs-exec-http.md");
  order("1", R"({"orderId":1,"item":"lamp"})");
  EXPECT_TRUE(come_to(1, "status = 'pending' AND attempts = 1")) << "there is no table yet";
  in_shop("CREATE TABLE shipments (event_id TEXT PRIMARY KEY, order_id INTEGER, item TEXT)");
  EXPECT_EQ(shop_.run({"job", "reschedule", job("ship_order", "id")}).code, 0);
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << worker->err();

  order("2", R"({"item":"no number"})");
  EXPECT_TRUE(come_to(1, "status = 'failed' AND failure_code = 'bad_order'")) << worker->err();
  order("3", "no JSON");
  EXPECT_TRUE(come_to(1, "status = 'failed' AND failure_code = 'exit_1'")) << worker->err();
  EXPECT_EQ(in_shop("SELECT order_id, item FROM shipments"), "1|lamp\n");
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsCommands, the_Python_handler_of_the_README_does_its_jobs) {
  prepare("", route("ship_order", "retry_delays = [\"1h\"]\n"));
  const auto relay = start_relay();
  const auto worker = start_handler_shown_in("README.md");
  order("1", R"({"item":"lamp"})");
  EXPECT_TRUE(come_to(1, "status = 'pending' AND attempts = 1 AND failure_code = 'exit_75'"))
      << worker->err();
  in_shop("CREATE TABLE shipments (event_id TEXT PRIMARY KEY, item TEXT)");
  EXPECT_EQ(shop_.run({"job", "reschedule", job("ship_order", "id")}).code, 0);
  EXPECT_TRUE(come_to(1, "status = 'completed'")) << worker->err();
  EXPECT_EQ(in_shop("SELECT item FROM shipments"), "lamp\n");

  order("2", "no JSON");
  EXPECT_TRUE(come_to(1, "status = 'failed' AND failure_code = 'exit_1'")) << worker->err();
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

TEST_P(JobsCommands, JT_26_snoozes_use_no_attempt_and_a_job_may_not_be_put_off_for_ever) {
  prepare("", route("print", "retry_delays = []\n"));
  const auto relay = start_relay();
  auto worker = start_snoozing_worker();
  write_event_of("1");
  ASSERT_TRUE(comes_true([&] { return jobs("snoozes > 3") == 1; })) << worker->err();
  stop_cleanly(*worker);
  EXPECT_EQ(job("print", "status, attempts, deaths"), "pending|0|0");

  // The rest of the thousand would take a while.
  database_.rows("UPDATE outbox_deliveries SET snoozes = 998 WHERE job = 'print'");
  const auto before = runs().size();
  worker = start_snoozing_worker();
  EXPECT_TRUE(come_to(1, "status = 'failed'")) << worker->err();
  EXPECT_EQ(job("print", "failure_code, snoozes"), "snoozed_too_often|1000");
  EXPECT_EQ(runs().size(), before + 3);
  stop_cleanly(*worker);
  stop_cleanly(*relay);
}

INSTANTIATE_TEST_SUITE_P(Databases, JobsCommands, ::testing::ValuesIn(job_databases()),
                         job_database_name);

}  // namespace
}  // namespace postrider::testing
