// examples/jobs/ship_order.py, run as a worker runs it, and the page that shows it.

#include <sqlite3.h>

#include "runners/exec_fixture.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::string& file) {
  std::ifstream stream(std::string(POSTRIDER_TEST_SOURCE_DIR) + "/" + file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// What stands between the two lines `# [handler]`.
std::string handler_region(const std::string& source) {
  const std::string mark = "# [handler]\n";
  const auto begin = source.find(mark) + mark.size();
  return source.substr(begin, source.find(mark, begin) - begin);
}

class PythonHandler : public ExecFixture {
 protected:
  PythonHandler() {
    sqlite3_open(path("shop.db").c_str(), &database_);
    run_sql("CREATE TABLE shipments (event_id TEXT PRIMARY KEY, order_id INTEGER, item TEXT)");
    auto handler = options("");
    handler.command = {std::string(POSTRIDER_TEST_SOURCE_DIR) + "/examples/jobs/ship_order.py",
                       path("shop.db")};
    use(handler);
  }
  ~PythonHandler() override { sqlite3_close(database_); }

  std::string run_sql(const std::string& sql) {
    std::string rows;
    const auto collect = [](void* to, int count, char** values, char**) {
      for (int i = 0; i < count; ++i)
        *static_cast<std::string*>(to) += std::string(values[i]) + (i + 1 < count ? "|" : "\n");
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), collect, &rows, nullptr), SQLITE_OK) << sql;
    return rows;
  }

  AttemptEnd end_of_task(const Task& task) {
    runner_->start(task);
    return next_report(*runner_).end;
  }

  sqlite3* database_ = nullptr;
};

TEST_F(PythonHandler, ships_an_order_once_however_often_the_job_comes) {
  EXPECT_EQ(words_of(end_of_task(task(1))), "done");
  EXPECT_EQ(words_of(end_of_task(task(1))), "done");
  EXPECT_EQ(run_sql("SELECT event_id, order_id, item FROM shipments"),
            task(1).event->id.value().to_string() + "|1|lamp\n");
}

TEST_F(PythonHandler, asks_for_a_retry_while_the_database_is_not_ready) {
  run_sql("DROP TABLE shipments");
  EXPECT_EQ(words_of(end_of_task(task(1))), "retry exit_75");
}

TEST_F(PythonHandler, fails_for_good_with_a_code_of_its_own) {
  const auto end = end_of_task(task(1, R"({"item":"lamp"})"));
  EXPECT_EQ(end, AttemptEnd(JobOutcome::fail("bad_order", "no 'orderId' in the order")));
}

TEST_F(PythonHandler, an_exception_that_it_did_not_expect_is_final) {
  EXPECT_EQ(words_of(end_of_task(task(1, "no JSON"))), "fail exit_1");
}

TEST(PythonHandlerPage, shows_the_handler_that_is_tested) {
  const auto region = handler_region(text_of("examples/jobs/ship_order.py"));
  EXPECT_GT(region.size(), 500U);
  EXPECT_THAT(text_of("docs/operate/jobs-exec-http.md"), HasSubstr("```python\n" + region + "```"));
}

}  // namespace
}  // namespace postrider::testing
